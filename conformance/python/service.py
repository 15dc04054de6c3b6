"""Scenarios on the service as a whole."""

from datetime import datetime

from azure.data.tables import TableAnalyticsLogging, TableCorsRule, TableMetrics, TableRetentionPolicy

from endpoint import service
from report import same


def service_properties_round_trip():
    client = service()
    before = client.get_service_properties()
    try:
        client.set_service_properties(
            analytics_logging=TableAnalyticsLogging(
                read=True, write=True, delete=True, retention_policy=TableRetentionPolicy(enabled=True, days=5)),
            hour_metrics=TableMetrics(
                enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=True, days=6)),
            minute_metrics=TableMetrics(enabled=False),
            cors=[TableCorsRule(["http://a.example", "http://b.example"], ["GET", "PUT"], allowed_headers=["x-ms-meta-a"],
                                exposed_headers=["x-ms-meta-b"], max_age_in_seconds=60)])
        after = client.get_service_properties()
    finally:
        client.set_service_properties(**before)
    logging, hour, minute = after["analytics_logging"], after["hour_metrics"], after["minute_metrics"]
    same((logging.read, logging.write, logging.delete, logging.retention_policy.days), (True, True, True, 5), "logging")
    same((hour.enabled, hour.include_apis, hour.retention_policy.days), (True, True, 6), "hour metrics")
    same((minute.enabled, minute.retention_policy.enabled), (False, False), "minute metrics")
    same(len(after["cors"]), 1, "number of CORS rules")
    rule = after["cors"][0]
    same((rule.allowed_origins, rule.allowed_methods), (["http://a.example", "http://b.example"], ["GET", "PUT"]))
    same((rule.allowed_headers, rule.exposed_headers, rule.max_age_in_seconds), (["x-ms-meta-a"], ["x-ms-meta-b"], 60))


def service_stats():
    replication = service().get_service_stats()["geo_replication"]
    assert replication["status"] in ("live", "bootstrap", "unavailable"), f"status is {replication['status']!r}"
    if replication["status"] == "live":
        assert isinstance(replication["last_sync_time"], datetime), "no LastSyncTime"
