"""Entity group transactions: replies part by part, failures with their index, and nothing written when one fails."""

import threading

from batch import BatchReply, Op, body_of, delete, insert, post, put, submit
from registry import add, case
from report import same
from table import Table, remove, unique_name
from wire import ENDPOINT, send

from cases.conditions import STALE


@case
def batch_success_reply(table):
    table.insert("old")
    table.insert("gone")
    reply = submit([insert(table, "a"), insert(table, "b", prefer=None), put(table, "old", "*", A=1),
                    put(table, "new", method="PATCH", A=1), delete(table, "gone")]).succeeded(204, 201, 204, 204, 204)
    first, second, third, fourth, last = reply.parts
    place = f"{ENDPOINT}/{table.name}(PartitionKey='p',RowKey='a')"
    first.header("Location", place).header("DataServiceId", place).header("Preference-Applied", "return-no-content")
    second.header("Location", place.replace("'a'", "'b'")).no_header("DataServiceId", "Preference-Applied")
    same(second.json()["RowKey"], "b")
    for part, row_key in ((first, "a"), (second, "b"), (third, "old"), (fourth, "new")):
        part.header("ETag", table.get(row_key)["ETag"])
    for part in (third, fourth):
        part.no_header("Location", "DataServiceId", "Preference-Applied")
    last.no_header("ETag", "Location")
    same(table.rows(), ["a", "b", "new", "old"])


@case
def batch_part_headers(table):
    first, second = submit([insert(table, "a"), put(table, "b")]).succeeded(204, 204).parts
    first.header("DataServiceVersion", "3.0;").header("Cache-Control", "no-cache").header("X-Content-Type-Options", "nosniff")
    second.header("DataServiceVersion", "1.0;").header("Cache-Control", "no-cache").header("X-Content-Type-Options", "nosniff")


@case
def batch_spelling_of_the_reply(table):
    # The JavaScript SDK takes the text apart with these spellings.
    text = post([insert(table, "a"), put(table, "b")]).expect(202).body.decode()
    assert text.count("--changesetresponse_") == 3 and text.count("--batchresponse_") == 2, "boundaries"
    assert "HTTP/1.1 204 No Content\r\n" in text and "\r\nETag: W/" in text, "status line or ETag"
    assert "\n" not in text.replace("\r\n", ""), "a bare line feed"


@case
def batch_empty_change_set():
    same(submit([]).parts, [])


@case
def batch_updates_without_keys_in_the_body(table):
    table.insert("a", A=1)
    submit([Op("PATCH", table.path("p", "a"), {"B": 2}, {"If-Match": "*"}), Op("PUT", table.path("p", "b"), {})]).succeeded(204, 204)
    same((table.stored("a"), table.stored("b")), ({"A": 1, "B": 2}, {}))


@case
def batch_of_100(table):
    submit([insert(table, f"{n:03}") for n in range(100)]).succeeded(*[204] * 100)
    same(len(table.rows()), 100)


@case
def batch_timestamps_are_stored(table):
    parts = submit([insert(table, str(n)) for n in range(5)]).parts
    same([part["ETag"] for part in parts], [row["odata.etag"] for row in table.query().json()["value"]])


# Failures. Each row: the rows there before, the operations, status, code, index before the message, part of it.
DUPLICATE = "An entity can appear only once in a batch"
PARTITIONS = "All commands in a batch must operate on same entity group."
FAILURES = {
    "conflict": ("c", lambda t: [insert(t, "a"), insert(t, "b"), insert(t, "c"), insert(t, "d")],
                 409, "EntityAlreadyExists", 2, "2:The specified entity already exists."),
    "stale_tag": ("c", lambda t: [insert(t, "a"), put(t, "c", STALE)], 412, "UpdateConditionNotSatisfied", 1, None),
    "missing_entity": ("", lambda t: [insert(t, "a"), put(t, "c", "*")], 404, "ResourceNotFound", 1, None),
    "delete_missing": ("", lambda t: [insert(t, "a"), delete(t, "c")], 404, "ResourceNotFound", 1, None),
    "delete_stale_tag": ("c", lambda t: [insert(t, "a"), delete(t, "c", STALE)], 412, "UpdateConditionNotSatisfied", 1, None),
    "first_of_two": ("a", lambda t: [insert(t, "a"), insert(t, "b")], 409, "EntityAlreadyExists", 0, None),
    "single_conflict": ("a", lambda t: [insert(t, "a")], 409, "EntityAlreadyExists", "none", None),
    "single_stale_tag": ("a", lambda t: [put(t, "a", STALE)], 412, "UpdateConditionNotSatisfied", "none", None),
    "single_missing": ("", lambda t: [put(t, "a", "*")], 404, "ResourceNotFound", "none", None),
    "duplicate_inserts": ("", lambda t: [insert(t, "a"), insert(t, "b"), insert(t, "a")], 400, "InvalidDuplicateRow", 2, DUPLICATE),
    "duplicate_kinds": ("b", lambda t: [put(t, "b", A=1), delete(t, "b")], 400, "InvalidDuplicateRow", 1, DUPLICATE),
    "two_partitions": ("", lambda t: [insert(t, "a"), insert(t, "b"), insert(t, "c", "q"), insert(t, "d", "q")],
                       400, "CommandsInBatchActOnDifferentPartitions", 2, PARTITIONS),
    "two_partitions_upsert": ("", lambda t: [put(t, "a"), put(t, "a", partition_key="q")],
                              400, "CommandsInBatchActOnDifferentPartitions", 1, PARTITIONS),
    "101_operations": ("", lambda t: [insert(t, f"{n:03}") for n in range(101)], 400, "InvalidInput", 99,
                       "99:The batch request operation exceeds the maximum 100 changes per change set."),
    "two_tables": ("", lambda t: [insert(t, "a"), Op("POST", f"/{t.name}x", {"PartitionKey": "p", "RowKey": "b"})],
                   (400, 404), ("InvalidInput", "TableNotFound"), None, None),
    "missing_table": ("", lambda t: [Op("POST", "/" + unique_name(), {"PartitionKey": "p", "RowKey": "b"})],
                      404, "TableNotFound", 0, "0:The table specified does not exist."),
    "bad_table_name": ("", lambda t: [Op("POST", "/with-dash", {"PartitionKey": "p", "RowKey": "b"})],
                       400, "InvalidResourceName", 0, "0:The specifed resource name contains invalid characters."),
    "short_table_name": ("", lambda t: [Op("POST", "/ab", {"PartitionKey": "p", "RowKey": "b"})], 400, "OutOfRangeInput", 0, None),
    "bad_json": ("", lambda t: [insert(t, "a"), Op("POST", f"/{t.name}", "{")], 400, "InvalidInput", 1, None),
    "bad_value": ("", lambda t: [insert(t, "a"), Op("POST", f"/{t.name}", '{"PartitionKey":"p","RowKey":"b","V@odata.type":"Edm.Boolean",'
                                                   '"V":"not a bool"}')], 400, "InvalidInput", 1, None),
    "missing_keys": ("", lambda t: [insert(t, "a"), Op("POST", f"/{t.name}", {"RowKey": "b"})], 400, "PropertiesNeedValue", 1, None),
    "too_many_properties": ("", lambda t: [insert(t, "a"), insert(t, "b", **{f"P{n}": n for n in range(253)})],
                            400, "TooManyProperties", 1, None),
    "large_value": ("", lambda t: [insert(t, "a"), insert(t, "b", V="x" * 32769)], 400, "PropertyValueTooLarge", 1, None),
    "single_large_value": ("", lambda t: [insert(t, "a", V="x" * 32769)], 400, "PropertyValueTooLarge", "none", None),
    "slash_in_key": ("", lambda t: [put(t, "a/b")], 400, "InvalidInput", 0, None),
    "malformed_tag": ("a", lambda t: [put(t, "b"), put(t, "a", "abc")], 400, "InvalidInput", 1, None),
    "delete_without_tag": ("a", lambda t: [put(t, "b"), Op("DELETE", t.path("p", "a"))], 400, "MissingRequiredHeader", 1, None),
}


def fails(before, operations, status, code, index, message):
    def check():
        table = Table().create()
        try:
            for row_key in before:
                table.insert(row_key)
            submit(operations(table)).failed(status, code, index, message)
            same(table.rows(), list(before), "rows afterwards")
        finally:
            remove(table.name)
    return check


for name, row in FAILURES.items():
    add(f"batch_{name}", fails(*row))


@case
def batch_on_two_existing_tables(table):
    other = Table().create()
    try:
        submit([insert(table, "a"), insert(other, "b")]).failed(400, "InvalidInput")
        same((table.rows(), other.rows()), ([], []))
    finally:
        remove(other.name)


@case
def batch_error_part_headers(table):
    table.insert("a")
    part = submit([insert(table, "b"), insert(table, "a")]).failed(409, "EntityAlreadyExists")
    part.header("DataServiceVersion", "3.0;").header("Preference-Applied", "return-no-content")
    part.header("Content-Type", "application/json;odata=minimalmetadata;streaming=true;charset=utf-8")


@case
def batch_over_4_MiB(table):
    operations = [insert(table, f"{n:03}", V="x" * 32000, W="x" * 30000) for n in range(70)]
    post(operations).expect(413, "RequestBodyTooLarge")
    same(table.rows(), [])


@case
def batch_just_below_4_MiB(table):
    operations = [insert(table, f"{n:03}", V="x" * 32000) for n in range(100)]
    submit(operations).succeeded(*[204] * 100)


@case
def batch_boundary_never_closed(table):
    data, content_type = body_of([insert(table, "a"), insert(table, "b")])
    for cut in (len(data) // 2, len(data) // 4, 10):
        reply = send("POST", "/$batch", data[:cut], Content_Type=content_type)
        if reply.status == 202:
            BatchReply(reply).failed(400, None)
        else:
            reply.expect(400)
    same(table.rows(), [], "rows afterwards")


@case
def batch_without_boundary(table):
    data, _ = body_of([insert(table, "a")])
    for content_type in ("multipart/mixed", "application/json"):
        reply = send("POST", "/$batch", data, Content_Type=content_type)
        assert 400 <= reply.status < 500, f"{content_type}: got {reply.status}"
    same(table.rows(), [])


@case
def batch_empty_body():
    reply = send("POST", "/$batch", b"", Content_Type="multipart/mixed; boundary=batch_x")
    assert 400 <= reply.status < 500, f"got {reply.status}"


@case
def batch_with_get():
    reply = send("GET", "/$batch")
    assert 400 <= reply.status < 500, f"got {reply.status}"


def query_in_batch(table, row_key):
    lines = ["--batch_q", "Content-Type: application/http", "Content-Transfer-Encoding: binary", "",
             f"GET {ENDPOINT}{table.path('p', row_key)} HTTP/1.1", "Accept: application/json;odata=minimalmetadata", "", "",
             "--batch_q--", ""]
    return BatchReply(send("POST", "/$batch", "\r\n".join(lines), Content_Type="multipart/mixed; boundary=batch_q"))


@case
def batch_query(table):
    etag = table.insert("a", N=1)
    reply = query_in_batch(table, "a").succeeded(200)
    assert b"changesetresponse_" not in reply.reply.body, "a change set around the answer of a query"
    same(reply.parts[0].header("ETag", etag).json()["N"], 1)


@case
def batch_query_of_a_missing_entity(table):
    query_in_batch(table, "absent").failed(404, "ResourceNotFound", 0)


@case
def batch_is_never_seen_half_done(table):
    # Writers change two rows together; a query of the partition must never see them differ.
    submit([put(table, "a", N=0), put(table, "b", N=0)]).succeeded(204, 204)
    stop, torn = threading.Event(), []

    def read():
        while not stop.is_set():
            numbers = [row["N"] for row in table.query("PartitionKey eq 'p'").json()["value"]]
            if numbers[0] != numbers[1]:
                torn.append(numbers)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for n in range(1, 40):
            submit([put(table, "a", N=n), put(table, "b", N=n)]).succeeded(204, 204)
    finally:
        stop.set()
        reader.join()
    same(torn, [], "torn reads")
