"""Scenarios on entity group transactions."""

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import UpdateMode

from endpoint import expect, refused, row_keys, table_client, temporary_table, unique_name
from report import same


def row(key, **properties):
    return {"PartitionKey": "p", "RowKey": key, **properties}


def content(entities):
    return {entity["RowKey"]: {name: value for name, value in entity.items() if name not in ("PartitionKey", "RowKey")}
            for entity in entities}


ALL_OPERATIONS = [
    ("create", row("insert", A=1)),
    ("update", row("replace", B=2), {"mode": UpdateMode.REPLACE}),
    ("update", row("merge", B=2), {"mode": UpdateMode.MERGE}),
    ("upsert", row("upsert-replace", B=2), {"mode": UpdateMode.REPLACE}),
    ("upsert", row("upsert-merge", B=2), {"mode": UpdateMode.MERGE}),
    ("upsert", row("upsert-new", B=2), {"mode": UpdateMode.MERGE}),
    ("delete", row("delete")),
]
ALL_OPERATIONS_RESULT = {
    "insert": {"A": 1}, "replace": {"B": 2}, "merge": {"A": 1, "B": 2},
    "upsert-replace": {"B": 2}, "upsert-merge": {"A": 1, "B": 2}, "upsert-new": {"B": 2},
}


def transaction_all_operations():
    with temporary_table() as table:
        for key in ("replace", "merge", "upsert-replace", "upsert-merge", "delete"):
            table.create_entity(row(key, A=1))
        replies = table.submit_transaction(ALL_OPERATIONS)
        same(len(replies), len(ALL_OPERATIONS), "number of replies")
        for operation, reply in zip(ALL_OPERATIONS, replies):
            if operation[0] != "delete":
                same(reply["etag"], table.get_entity("p", operation[1]["RowKey"]).metadata["etag"], "ETag of the part")
        same(content(table.list_entities()), ALL_OPERATIONS_RESULT)


def transaction_100_inserts():
    with temporary_table() as table:
        replies = table.submit_transaction([("create", row(f"{n:03}", N=n)) for n in range(100)])
        same(len(replies), 100, "number of replies")
        same(row_keys(table.list_entities()), [f"{n:03}" for n in range(100)])


def transaction_101_operations():
    with temporary_table() as table:
        operations = [("create", row(f"{n:03}")) for n in range(101)]
        error = expect("InvalidInput", table.submit_transaction, operations)
        same(error.index, 99, "failing index")
        same(row_keys(table.list_entities()), [])


def transaction_conflict_rolls_back():
    with temporary_table() as table:
        table.create_entity(row("c", N=1))
        operations = [("create", row("a")), ("create", row("b")), ("create", row("c")), ("create", row("d"))]
        error = expect("EntityAlreadyExists", table.submit_transaction, operations)
        same((error.status_code, error.index), (409, 2), "status and index")
        same(content(table.list_entities()), {"c": {"N": 1}})


def transaction_stale_etag_rolls_back():
    with temporary_table() as table:
        stale = table.create_entity(row("b", N=1))["etag"]
        table.update_entity(row("b", N=2), mode=UpdateMode.REPLACE)
        conditional = {"mode": UpdateMode.REPLACE, "etag": stale, "match_condition": MatchConditions.IfNotModified}
        error = expect("UpdateConditionNotSatisfied", table.submit_transaction,
                       [("create", row("a")), ("update", row("b", N=3), conditional)])
        same((error.status_code, error.index), (412, 1), "status and index")
        same(content(table.list_entities()), {"b": {"N": 2}})


def transaction_two_partitions():
    with temporary_table() as table:
        other = {"PartitionKey": "q", "RowKey": "b"}
        # The SDK refuses before sending; the raw suite asks the service.
        refused((ValueError, HttpResponseError), table.submit_transaction, [("create", row("a")), ("create", other)])
        same(row_keys(table.list_entities()), [])


def transaction_duplicate_row():
    with temporary_table() as table:
        operations = [("create", row("a")), ("create", row("b")), ("upsert", row("a"))]
        error = expect("InvalidDuplicateRow", table.submit_transaction, operations)
        same(error.index, 2, "failing index")
        same(row_keys(table.list_entities()), [])


def transaction_missing_table():
    expect("TableNotFound", table_client(unique_name()).submit_transaction, [("create", row("a")), ("create", row("b"))])
