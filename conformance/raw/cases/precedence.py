"""Which error wins when several apply: one row per pair, the code of the winner last."""

from registry import add, case
from report import same
from sas import account_sas, table_sas
from table import shared, unique_name
from wire import PATH_STYLE, send, shared_key

import batch

from cases.conditions import STALE


def wrong_key(*args, **kwargs):
    return shared_key(*args, **kwargs, key="d3Jvbmc=")


ABSENT = unique_name("Absent")
AUTHENTICATION, NO_TABLE, SHORT_NAME = (403, "AuthenticationFailed"), (404, "TableNotFound"), (400, "OutOfRangeInput")
BAD_JSON, NO_KEYS, BAD_FILTER = "{", "{}", "?$filter=aaa%20bbb%20ccc"
KEYS = "(PartitionKey='p',RowKey='r')"

PAIRS = {
    "authentication_over_table_name": (AUTHENTICATION, "GET", "/ab()", "", {"sign": wrong_key}),
    "authentication_over_missing_table": (AUTHENTICATION, "GET", f"/{ABSENT}()", "", {"sign": wrong_key}),
    "authentication_over_bad_json": (AUTHENTICATION, "POST", f"/{ABSENT}", BAD_JSON, {"sign": wrong_key}),
    "version_over_authentication": ((400, "InvalidHeaderValue"), "GET", "/Tables", "", {"sign": wrong_key, "x_ms_version": "foo"}),
    "table_name_over_bad_json": (SHORT_NAME, "POST", "/ab", BAD_JSON, {}),
    "table_name_over_missing_tag": (SHORT_NAME, "DELETE", "/ab" + KEYS, "", {}),
    "table_name_over_number_of_keys": (SHORT_NAME, "GET", "/ab(PartitionKey='p')", "", {}),
    "missing_table_over_number_of_keys": (NO_TABLE, "GET", f"/{ABSENT}(PartitionKey='p')", "", {}),
    "missing_table_over_tables_segment": (NO_TABLE, "GET", f"/{ABSENT}/Tables('x')", "", {}),
    "missing_table_over_missing_keys": (NO_TABLE, "POST", f"/{ABSENT}", NO_KEYS, {}),
    "missing_table_over_bad_filter": (NO_TABLE, "GET", f"/{ABSENT}()" + BAD_FILTER, "", {}),
    "missing_table_over_bad_tag": (NO_TABLE, "PUT", f"/{ABSENT}" + KEYS, "{}", {"If_Match": "abc"}),
    "missing_table_over_missing_entity": (NO_TABLE, "PUT", f"/{ABSENT}" + KEYS, "{}", {"If_Match": "*"}),
    "permission_over_table_name": ((403, "AuthorizationPermissionMismatch"), "POST", "/ab", NO_KEYS, {"sas": account_sas("r")}),
    "permission_over_missing_table": ((403, "AuthorizationPermissionMismatch"), "POST", f"/{ABSENT}", NO_KEYS,
                                      {"sas": account_sas("r")}),
    "service_over_resource_type": ((403, "AuthorizationServiceMismatch"), "GET", "/Tables", "",
                                   {"sas": account_sas("r", ss="b", srt="o")}),
    "resource_type_over_permission": ((403, "AuthorizationResourceTypeMismatch"), "GET", "/Tables", "",
                                      {"sas": account_sas("a", srt="o")}),
    "address_over_service": ((403, "AuthorizationSourceIPMismatch"), "GET", "/Tables", "",
                             {"sas": account_sas("l", ss="b", sip="192.0.2.1")}),
    "expiry_over_permission": (AUTHENTICATION, "POST", f"/{ABSENT}", NO_KEYS, {"sas": account_sas("r", se="2020-01-01")}),
}


def wins(outcome, method, path, body, options):
    return lambda: send(method, path, body, **options).expect(*outcome)


for name, row in PAIRS.items():
    add(f"wins_{name}", wins(*row))

if PATH_STYLE:
    add("wins_protocol_over_address", wins((403, "AuthorizationProtocolMismatch"), "GET", "/Tables", "",
                                           {"sas": account_sas("l", spr="https", sip="192.0.2.1")}))


@case
def wins_property_rule_over_conflict(table):
    table.insert()
    table.post({"PartitionKey": "p", "RowKey": "r", **{f"P{n}": n for n in range(253)}}).expect(400, "TooManyProperties")


@case
def wins_missing_entity_over_stale_tag(table):
    table.put({}, If_Match=STALE).expect(404, "ResourceNotFound")


@case
def wins_stale_tag_over_size_of_the_merged_entity(table):
    table.insert(properties={f"P{n}": n for n in range(252)})
    table.patch({"One": 1}, If_Match=STALE).expect(412, "UpdateConditionNotSatisfied")


@case
def wins_duplicate_row_over_conflict(table):
    table.insert("a")
    batch.submit([batch.insert(table, "a"), batch.insert(table, "b"), batch.insert(table, "b")]).failed(
        400, "InvalidDuplicateRow", 2)
    same(table.rows(), ["a"])


@case
def wins_authentication_over_batch():
    reply = batch.post([batch.insert(shared(), "x")], sign=wrong_key).expect(403, "AuthenticationFailed")
    assert not (reply["Content-Type"] or "").startswith("multipart"), "the reply is multipart"


@case
def wins_permission_over_key_range(table):
    token = table_sas(table.name, "r", spk="a", epk="b")
    send("POST", f"/{table.name}", {"PartitionKey": "z", "RowKey": "r"}, sas=token).expect(
        403, "AuthorizationPermissionMismatch")
