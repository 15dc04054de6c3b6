"""Scenarios on keys, shared access signatures and stored access policies."""

from datetime import datetime, timedelta, timezone

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableAccessPolicy, TableSasPermissions, generate_account_sas, generate_table_sas
from azure.data.tables import ResourceTypes

from endpoint import (CREDENTIAL, exists, expect, in_one_hour, keys, service, table_client, temporary_table, unique_name,
                      with_sas)
from report import same

KEY = {"PartitionKey": "p", "RowKey": "r"}


def sas_table_read_only():
    with temporary_table() as table:
        table.create_entity(KEY)
        reader = with_sas(table.table_name, generate_table_sas(
            CREDENTIAL, table.table_name, permission=TableSasPermissions(read=True), expiry=in_one_hour()))
        same(keys(reader.list_entities()), [("p", "r")])
        reader.get_entity("p", "r")
        expect("AuthorizationPermissionMismatch", reader.create_entity, {"PartitionKey": "p", "RowKey": "new"})
        expect("AuthorizationPermissionMismatch", reader.upsert_entity, {**KEY, "N": 1})
        expect("AuthorizationPermissionMismatch", reader.delete_entity, "p", "r")
        same([dict(entity) for entity in table.list_entities()], [KEY])


def sas_table_key_range():
    with temporary_table() as table:
        for partition in "abcd":
            for row in "123":
                table.create_entity({"PartitionKey": partition, "RowKey": row})
        limited = with_sas(table.table_name, generate_table_sas(
            CREDENTIAL, table.table_name, permission="raud", expiry=in_one_hour(),
            start_pk="b", start_rk="2", end_pk="c", end_rk="2"))
        same(keys(limited.list_entities()), [("b", "2"), ("b", "3"), ("c", "1"), ("c", "2")])
        same(keys(limited.query_entities("RowKey eq '1'")), [("c", "1")])
        limited.create_entity({"PartitionKey": "b", "RowKey": "9"})
        for partition, row in (("a", "9"), ("b", "1a"), ("c", "9"), ("d", "9")):
            expect("AuthorizationFailure", limited.create_entity, {"PartitionKey": partition, "RowKey": row})
            assert not exists(table, partition, row), "the refused entity was written"
        expect("AuthorizationFailure", limited.delete_entity, "a", "1")


def sas_table_policy_and_revocation():
    with temporary_table() as table:
        table.create_entity(KEY)
        table.set_table_access_policy({"reader": TableAccessPolicy(permission="r", expiry=in_one_hour())})
        reader = with_sas(table.table_name, generate_table_sas(CREDENTIAL, table.table_name, policy_id="reader"))
        reader.get_entity("p", "r")
        expect("AuthorizationPermissionMismatch", reader.create_entity, {"PartitionKey": "p", "RowKey": "new"})
        table.set_table_access_policy({})
        expect("AuthenticationFailed", reader.get_entity, "p", "r")


def sas_account():
    token = generate_account_sas(CREDENTIAL, ResourceTypes(service=True, container=True, object=True),
                                 permission="rwdlacu", expiry=in_one_hour())
    name = unique_name()
    account = service(AzureSasCredential(token))
    table = account.create_table(name)
    try:
        table.create_entity(KEY)
        same(keys(table.list_entities()), [("p", "r")])
        assert name in [item.name for item in account.list_tables()], "the new table is not listed"
    finally:
        account.delete_table(name)


def sas_expired():
    with temporary_table() as table:
        past = datetime.now(timezone.utc) - timedelta(minutes=5)
        expired = with_sas(table.table_name, generate_table_sas(
            CREDENTIAL, table.table_name, permission="r", start=past - timedelta(hours=1), expiry=past))
        expect("AuthenticationFailed", lambda: list(expired.list_entities()))


def access_policies_round_trip():
    start = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    expiry = datetime(2030, 6, 7, 8, 9, 10, tzinfo=timezone.utc)
    with temporary_table() as table:
        same(table.get_table_access_policy(), {})
        table.set_table_access_policy({
            "full": TableAccessPolicy(permission="raud", start=start, expiry=expiry),
            "permission-only": TableAccessPolicy(permission="r"),
        })
        back = table.get_table_access_policy()
        same(sorted(back), ["full", "permission-only"])
        full = back["full"]
        same((full.permission, full.start, full.expiry), ("raud", start, expiry))
        partial = back["permission-only"]
        same((partial.permission, partial.start, partial.expiry), ("r", None, None))
        table.set_table_access_policy({})
        same(table.get_table_access_policy(), {})


def wrong_key():
    with temporary_table() as table:
        stranger = AzureNamedKeyCredential(CREDENTIAL.named_key.name, "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXk=")
        expect("AuthenticationFailed", table_client(table.table_name, stranger).create_entity, KEY)
        expect("AuthenticationFailed", lambda: list(service(stranger).list_tables()))
        expect("AuthenticationFailed", table_client(table.table_name, stranger).submit_transaction, [("create", KEY)])
        same(list(table.list_entities()), [])
