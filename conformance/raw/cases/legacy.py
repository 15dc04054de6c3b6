"""Request shapes of older .NET, Node and Python clients that must keep working."""

from urllib.parse import urlsplit

from batch import BatchReply, Dialect, Op, delete, insert, put, submit
from registry import add, case
from report import same
from table import Table, remove
from wire import ENDPOINT, PATH_STYLE, send, shared_key_lite


@case
def merge_verb(table):
    table.insert(A=1)
    send("MERGE", table.path(), {"B": 2}, If_Match="*").expect(204)
    same(table.stored(), {"A": 1, "B": 2})


def tunnelled(method, body, expected):
    def check():
        table = Table().create()
        try:
            table.insert(A=1)
            send("POST", table.path(), body, X_HTTP_Method=method, If_Match="*").expect(204)
            same(table.stored(), expected)
        finally:
            remove(table.name)
    return check


add("tunnelled_merge", tunnelled("MERGE", '{"B":2}', {"A": 1, "B": 2}))
add("tunnelled_patch", tunnelled("PATCH", '{"B":2}', {"A": 1, "B": 2}))
add("tunnelled_put", tunnelled("PUT", '{"B":2}', {"B": 2}))
add("tunnelled_delete", tunnelled("DELETE", "", None))

DIALECTS = {
    "absolute_urls": Dialect(),
    "without_content_length": Dialect(content_length=False),
    "lf_line_ends": Dialect(eol="\n"),
    "lf_without_content_length": Dialect(eol="\n", content_length=False),
    "quoted_boundary": Dialect(quoted_boundary=True),
    "content_id_inside": Dialect(content_id="inner"),
    "no_content_id": Dialect(content_id=""),
    "path_with_account": Dialect(base=urlsplit(ENDPOINT).path),
    "old_inner_headers": Dialect(inner_headers={"Host": "example.table.core.windows.net", "x-ms-version": "2017-04-17",
                                                "x-ms-date": "Mon, 01 Jan 2018 00:00:00 GMT", "MaxDataServiceVersion": "3.0;NetFx"}),
    "lower_case_headers": Dialect(inner_headers={"content-type": "application/json", "accept": "application/json;odata=nometadata"}),
}


def speaks(dialect):
    def check():
        table = Table().create()
        try:
            for row_key in ("merge", "replace", "gone"):
                table.insert(row_key, A=1)
            submit([insert(table, "ins'ert é"), put(table, "merge", "*", method="MERGE", B=2), put(table, "replace", "*", B=2),
                    put(table, "upsert", method="MERGE", B=2), delete(table, "gone")], dialect).succeeded(204, 204, 204, 204, 204)
            same(table.rows(), ["ins'ert é", "merge", "replace", "upsert"])
            same((table.stored("merge"), table.stored("replace")), ({"A": 1, "B": 2}, {"B": 2}))
        finally:
            remove(table.name)
    return check


for name, dialect in DIALECTS.items():
    add(f"batch_dialect_{name}", speaks(dialect))


@case
def batch_content_id_is_echoed_from_inside_only(table):
    for dialect, expected in ((Dialect(content_id="inner"), "0"), (Dialect(content_id="mime"), None)):
        submit([put(table, "a")], dialect).succeeded(204).parts[0].header("Content-ID", expected)


@case
def batch_format_in_the_part(table):
    suffix = "?$format=application%2Fjson%3Bodata%3Dminimalmetadata"
    submit([Op("POST", f"/{table.name}{suffix}", {"PartitionKey": "p", "RowKey": "a"}, {"Prefer": "return-no-content"}),
            Op("PUT", table.path("p", "b") + suffix, {"A": 1})]).succeeded(204, 204)
    same(table.rows(), ["a", "b"])


@case
def batch_with_stray_blank_lines(table):
    # What the old Node client sends: a blank line more after a DELETE and before the last boundary, no charset, no lengths.
    table.insert("gone")
    lines = ["", "--batch_a", "content-type: multipart/mixed;charset=\"utf-8\";boundary=changeset_a", "", "--changeset_a",
             "content-type: application/http", "content-transfer-encoding: binary", "",
             f"DELETE {ENDPOINT}{table.path('p', 'gone')} HTTP/1.1", "if-match: *", "accept: application/json;odata=minimalmetadata",
             "", "", "", "--changeset_a", "content-type: application/http", "content-transfer-encoding: binary", "",
             f"POST {ENDPOINT}/{table.name} HTTP/1.1", "content-id: 2", "content-type: application/json;odata=nometadata",
             "prefer: return-no-content", "", '{"PartitionKey":"p","RowKey":"a"}', "--changeset_a--", "", "--batch_a--", ""]
    reply = send("POST", "/$batch", "\r\n".join(lines), Content_Type="multipart/mixed; charset=\"utf-8\"; boundary=batch_a")
    BatchReply(reply).succeeded(204, 204)
    same(table.rows(), ["a"])


@case
def dotnet_insert(table):
    # Azure.Data.Tables: SharedKeyLite, $format, a null Timestamp, a whole double with its annotation.
    path = f"/{table.name}?$format=application%2Fjson%3Bodata%3Dminimalmetadata"
    body = ('{"PartitionKey":"p","RowKey":"r","Timestamp":null,"D":4,"D@odata.type":"Edm.Double","L":"7","L@odata.type":"Edm.Int64"}')
    send("POST", path, body, sign=shared_key_lite, Prefer="return-no-content", DataServiceVersion="3.0",
         x_ms_return_client_request_id="true", x_ms_client_request_id="c1").expect(204).header("x-ms-client-request-id", "c1")
    same(table.stored(), {"D": 4.0, "L@odata.type": "Edm.Int64", "L": "7"})


@case
def javascript_insert(table):
    # @azure/data-tables sends doubles as strings with the annotation.
    body = '{"PartitionKey":"p","RowKey":"r","D":"1.23e+24","D@odata.type":"Edm.Double"}'
    send("POST", f"/{table.name}", body, sign=shared_key_lite, Prefer="return-no-content").expect(204)
    same(table.stored(), {"D": 1.23e24})


@case
def python_insert(table):
    # azure-data-tables annotates keys and strings, and wrapped booleans travel as strings.
    body = ('{"PartitionKey":"p","PartitionKey@odata.type":"Edm.String","RowKey":"r","RowKey@odata.type":"Edm.String",'
            '"S":"x","S@odata.type":"Edm.String","B":"false","B@odata.type":"Edm.Boolean"}')
    same(send("POST", f"/{table.name}", body, Accept="application/json;odata=minimalmetadata").expect(201).json()["B"], False)


@case
def dotnet_filter(table):
    table.insert("b", "a", N="61", properties={"N@odata.type": "Edm.Int64"})
    same(table.rows("((PartitionKey eq 'a') and (RowKey ge 'b')) and (N gt 60L)"), ["b"])


@case
def post_to_a_tables_segment_inserts(table):
    send("POST", f"/{table.name}/Tables", {"PartitionKey": "p", "RowKey": "r"}).expect((201, 204))
    same(table.rows(), ["r"])


if PATH_STYLE:
    @case
    def batch_path_without_account(table):
        # Clients made for a host-style endpoint write the path alone.
        submit([insert(table, "a")], Dialect(base="")).succeeded(204)
        same(table.rows(), ["a"])
