"""Pages, continuation tokens in Azure's form, and the order of keys."""

import base64
import re

import batch
from registry import case
from report import same
from table import Table, remove, unique_name
from wire import encode, send

PARTITION, ROW, TABLE = (f"x-ms-continuation-{name}" for name in ("NextPartitionKey", "NextRowKey", "NextTableName"))


def decode(token):
    """The bytes inside `1!length!text`."""
    found = re.fullmatch(r"1!(\d+)!([A-Za-z0-9*_-]*)", token or "")
    assert found, f"token {token!r} is not of the form 1!length!text"
    same(len(found[2]), int(found[1]), "length in the token")
    return base64.b64decode(found[2].replace("-", "=").replace("*", "+").replace("_", "/"))


def token(reply):
    """The options that fetch the next page, or None after the last."""
    if reply[PARTITION] is None:
        return None
    assert reply[PARTITION] and reply[ROW] != "", "an empty token header"
    row = f"&NextRowKey={encode(reply[ROW])}" if reply[ROW] else ""
    return f"NextPartitionKey={encode(reply[PARTITION])}{row}"


def pages(table, size, filter=None):
    """All pages of a query as lists of (PartitionKey, RowKey)."""
    found, position = [], ""
    while position is not None and len(found) < 100:
        reply = table.query(filter, f"$top={size}" + ("&" + position if position else "")).expect(200)
        found.append([(row["PartitionKey"], row["RowKey"]) for row in reply.json()["value"]])
        assert len(found[-1]) <= size, f"a page of {len(found[-1])} rows, asked for {size}"
        position = token(reply)
    return found


def joined(found):
    return [row for page in found for row in page]


@case
def token_names_the_next_row(table):
    for row_key in ("1010", "1011", "1012", "1013"):
        table.insert(row_key, "pk801016e8")
    reply = table.query(options="$top=2").expect(200)
    reply.header(PARTITION, "1!16!cGs4MDEwMTZlOA--").header(ROW, "1!8!MTAxMg--")
    same(table.rows(options=token(reply)), ["1012", "1013"])


@case
def token_survives_the_removal_of_its_row(table):
    for row_key in "abcd":
        table.insert(row_key)
    position = token(table.query(options="$top=1"))
    table.delete("b").expect(204)
    same(table.rows(options=position), ["c", "d"])


@case
def token_of_any_key(table):
    keys = sorted([("", ""), ("", "a"), ("it's", "100%"), ("a+b", "=&"), ("~~~~", ">>>?"[:3]), ("città", "行"), ("x", "x" * 1000)])
    for partition_key, row_key in keys:
        table.insert(row_key, partition_key)
    same(joined(pages(table, 1)), keys)


@case
def token_with_a_filter(table):
    for n in range(20):
        table.insert(f"{n:02}", N=n % 2)
    found = pages(table, 3, "N eq 1")
    same(joined(found), [("p", f"{n:02}") for n in range(1, 20, 2)])


@case
def token_outside_the_filter(table):
    for row_key in "abc":
        table.insert(row_key)
    position = token(table.query(options="$top=2"))
    same(table.rows("RowKey eq 'a'", position), [])


@case
def token_without_row_key(table):
    for partition_key in "abc":
        table.insert("r", partition_key)
    encoded = base64.b64encode(b"b").decode().replace("=", "-")
    reply = table.query(options="NextPartitionKey=" + encode(f"1!{len(encoded)}!{encoded}")).expect(200)
    same([row["PartitionKey"] for row in reply.json()["value"]], ["b", "c"])


@case
def token_of_tables():
    stem = unique_name("Page")
    tables = [Table(stem + end).create() for end in ("A", "b", "C")]
    try:
        where = f"$filter=TableName%20ge%20'{stem}'%20and%20TableName%20lt%20'{stem}%7B'&$top=2"
        reply = send("GET", "/Tables?" + where).expect(200)
        same([row["TableName"] for row in reply.json()["value"]], [stem + "A", stem + "b"])
        content = decode(reply[TABLE])
        assert content.startswith((stem + "C").lower().encode() + b"\x01"), f"token holds {content!r}"
        reply = send("GET", f"/Tables?{where}&NextTableName={encode(reply[TABLE])}").expect(200)
        same([row["TableName"] for row in reply.json()["value"]], [stem + "C"])
    finally:
        for table in tables:
            remove(table.name)


@case
def page_of_1000(table):
    for start in range(0, 1100, 100):
        batch.submit([batch.insert(table, f"{n:04}") for n in range(start, start + 100)]).succeeded(*[204] * 100)
    for options in ("", "$top=1000"):
        reply = table.query(options=options).expect(200)
        same(len(reply.json()["value"]), 1000, "rows of a page")
        same(len(table.rows(options=token(reply))), 100, "rows of the rest")


@case
def no_token_at_the_end(table):
    table.insert("a")
    table.query().expect(200).no_header(PARTITION, ROW)


@case
def order_of_keys(table):
    # By UTF-16 code unit: the surrogates of the emoji come before U+FF5E, in UTF-8 they come after.
    keys = ["", "!", "10", "9", "A", "B", "_", "a", "ab", "b", "é", "行", "😀", "～"]
    for key in reversed(keys):
        table.insert(key)
    same(table.rows(), keys)
    same([row for _, row in joined(pages(table, 3))], keys, "by pages")
    same(table.rows("RowKey gt '行' and RowKey lt '～'"), ["😀"])
