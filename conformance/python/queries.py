"""Scenarios on queries over entities."""

import random
import uuid
from datetime import datetime, timezone

from azure.data.tables import EdmType, EntityProperty

from endpoint import expect, keys, row_keys, temporary_table
from report import same


def fill(table, rows):
    """Upserts `{row key: properties}` into the partition `p`, in as few transactions as possible."""
    operations = [("upsert", {"PartitionKey": "p", "RowKey": key, **properties}) for key, properties in rows.items()]
    for start in range(0, len(operations), 100):
        table.submit_transaction(operations[start:start + 100])


def check(rows, *filters):
    """Each of `filters` is a filter, its parameters, and the row keys it must select."""
    with temporary_table() as table:
        fill(table, rows)
        for text, parameters, expected in filters:
            found = row_keys(table.query_entities(text, parameters=parameters))
            same(found, list(expected), f"rows of {text} with {parameters}")


def query_all_in_key_order():
    ordered = [(partition, row) for partition in ("", "10", "9", "A", "a", "b")
               for row in ("", "10", "9", "Z", "_", "a", "ab", "b", "é")]
    shuffled = ordered[:]
    random.Random(7).shuffle(shuffled)
    with temporary_table() as table:
        for partition, row in shuffled:
            table.create_entity({"PartitionKey": partition, "RowKey": row})
        same(keys(table.list_entities()), ordered)


def query_paging_2500():
    expected = [f"{number:05}" for number in range(2500)]
    with temporary_table() as table:
        fill(table, {key: {} for key in expected})
        pages = [row_keys(page) for page in table.list_entities().by_page()]
        assert max(map(len, pages)) <= 1000, f"a page has {max(map(len, pages))} entities"
        same([key for page in pages for key in page], expected)


def query_page_size_and_resume():
    expected = [f"{number:02}" for number in range(25)]
    with temporary_table() as table:
        fill(table, {key: {} for key in expected})
        first = table.query_entities("PartitionKey eq 'p'", results_per_page=10).by_page()
        seen = row_keys(next(first))
        same(seen, expected[:10])
        token = first.continuation_token
        assert token, "no continuation token after the first page"
        rest = table.query_entities("PartitionKey eq 'p'", results_per_page=10).by_page(token)
        pages = [row_keys(page) for page in rest]
        same([page for page in pages if page], [expected[10:20], expected[20:]])


def query_filter_partition():
    with temporary_table() as table:
        for partition in ("a", "b", "ba", "c"):
            table.create_entity({"PartitionKey": partition, "RowKey": "1"})
            table.create_entity({"PartitionKey": partition, "RowKey": "2"})
        same(keys(table.query_entities("PartitionKey eq 'b'")), [("b", "1"), ("b", "2")])


def query_filter_row_range():
    check({key: {} for key in ("a", "b", "ba", "bz", "c", "d")},
          ("PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'c'", None, ["b", "ba", "bz"]),
          ("PartitionKey eq 'p' and RowKey gt 'b' and RowKey le 'c'", None, ["ba", "bz", "c"]),
          ("PartitionKey eq 'q' and RowKey ge 'b'", None, []))


def query_filter_or_of_rows():
    check({key: {} for key in "abcdef"},
          ("PartitionKey eq 'p' and (RowKey eq 'e' or RowKey eq 'a' or RowKey eq 'c' or RowKey eq 'x')", None, "ace"),
          ("RowKey eq 'f' or RowKey eq 'b'", None, "bf"))


def query_filter_each_type():
    def date(day):
        return datetime(2024, 1, day, 0, 0, 0, 5000, tzinfo=timezone.utc)

    def guid(number):
        return uuid.UUID(int=number)

    rows = {str(n): {"Whole": n, "Long": EntityProperty(2**40 + n, EdmType.INT64), "Ratio": n + 0.5, "Flag": n > 1,
                     "When": date(n), "Id": guid(n), "Bytes": bytes([n, 255]), "Text": "t" + str(n)} for n in (1, 2, 3)}
    values = {"Whole": 2, "Long": 2**40 + 2, "Ratio": 2.5, "When": date(2), "Id": guid(2), "Bytes": b"\2\xff", "Text": "t2"}
    filters = []
    for name, value in values.items():
        filters.append((f"{name} eq @v", {"v": value}, "2"))
        filters.append((f"{name} gt @v", {"v": value}, "3"))
        filters.append((f"{name} le @v", {"v": value}, "12"))
    filters += [("Flag eq @v", {"v": True}, "23"), ("Flag eq @v", {"v": False}, "1"), ("Flag lt @v", {"v": True}, "1")]
    check(rows, *filters)


def query_filter_not_and_or():
    check({str(a) + str(b) + str(c): {"A": a, "B": b, "C": c} for a in (0, 1) for b in (0, 1) for c in (0, 1)},
          ("A eq 1 or B eq 1 and C eq 1", None, ["011", "100", "101", "110", "111"]),
          ("(A eq 1 or B eq 1) and C eq 1", None, ["011", "101", "111"]),
          ("not (A eq 1) and B eq 1", None, ["010", "011"]),
          ("not (A eq 1 or B eq 1)", None, ["000", "001"]),
          ("((A eq 0) and (not ((B eq 0)))) or ((C eq 1) and (A ne 0))", None, ["010", "011", "101", "111"]))


def query_filter_quotes():
    check({"1": {"Name": "O'Brien"}, "2": {"Name": "OBrien"}, "3": {"Name": "''"}, "4": {"Name": "x' or 'a' eq 'a"}},
          ("Name eq @v", {"v": "O'Brien"}, "1"),
          ("Name eq 'O''Brien'", None, "1"),
          ("Name eq @v", {"v": "''"}, "3"),
          ("Name eq @v", {"v": "x' or 'a' eq 'a"}, "4"))


def query_filter_missing_property():
    check({"1": {"N": 1}, "2": {"N": 2}, "3": {}},
          ("N eq 1", None, "1"), ("N ne 1", None, "2"), ("N lt 5", None, "12"), ("N ge 0", None, "12"))


def query_filter_bad_syntax():
    with temporary_table() as table:
        for text in ("aaa bbb ccc", "RowKey eq", "RowKey eq 'open", "(RowKey eq 'a'", "RowKey eq 'a' and"):
            expect("InvalidInput", lambda: list(table.query_entities(text)))


def query_select_missing_property():
    with temporary_table() as table:
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": 1})
        same([dict(entity) for entity in table.list_entities(select=["A", "Missing"])], [{"A": 1, "Missing": None}])


def query_empty_result():
    with temporary_table() as table:
        same(list(table.list_entities()), [])
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        same(list(table.query_entities("PartitionKey eq 'other'")), [])
