"""Status, headers and exact bodies of successful replies and of error bodies."""

import json
import re

from registry import add, case
from report import same
from table import Table, remove, shared, unique_name
from wire import ACCOUNT, ENDPOINT, FULL, MINIMAL, NONE, entity_path, send

LEVELS = {"none": NONE, "minimal": MINIMAL, "full": FULL}
JSON_TYPE = "{};streaming=true;charset=utf-8"
GUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
TIMESTAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,6}[1-9])?Z"


def creating(**headers):
    """The reply to the creation of a table, and its name; the table is removed again."""
    name = unique_name()
    try:
        return send("POST", "/Tables", {"TableName": name}, **headers), name
    finally:
        remove(name)


def table_body(level, name):
    body = {"odata.metadata": f"{ENDPOINT}/$metadata#Tables/@Element"} if level != "none" else {}
    return {**body, **table_row(level, name)}


def table_row(level, name):
    full = {"odata.type": f"{ACCOUNT}.Tables", "odata.id": f"{ENDPOINT}/Tables('{name}')",
            "odata.editLink": f"Tables('{name}')"}
    return {**(full if level == "full" else {}), "TableName": name}


def created_table(level):
    def check():
        reply, name = creating(Accept=LEVELS[level])
        reply.expect(201).header("Location", f"{ENDPOINT}/Tables('{name}')")
        reply.no_header("Preference-Applied", "DataServiceId", "ETag")
        same(reply.json(), table_body(level, name), "body")
    return check


def got_table(level):
    def check():
        table = shared(person)
        reply = send("GET", f"/Tables('{table.name}')", Accept=LEVELS[level]).expect(200)
        same(reply.json(), table_body(level, table.name), "body")
    return check


def listed_tables(level):
    def check():
        table = shared(person)
        reply = send("GET", f"/Tables?$filter=TableName%20eq%20'{table.name}'", Accept=LEVELS[level]).expect(200)
        context = {"odata.metadata": f"{ENDPOINT}/$metadata#Tables"} if level != "none" else {}
        same(reply.json(), {**context, "value": [table_row(level, table.name)]}, "body")
    return check


for level in LEVELS:
    add(f"create_table_body_{level}", created_table(level))
    add(f"get_table_body_{level}", got_table(level))
    add(f"list_tables_body_{level}", listed_tables(level))


@case
def create_table_return_no_content():
    reply, name = creating(Prefer="return-no-content")
    reply.expect(204).header("Preference-Applied", "return-no-content")
    for header in ("Location", "DataServiceId"):
        reply.header(header, f"{ENDPOINT}/Tables('{name}')")
    same(reply.body, b"", "body")


@case
def create_table_return_content():
    reply, _ = creating(Prefer="return-content")
    reply.expect(201).header("Preference-Applied", "return-content").no_header("DataServiceId")


@case
def delete_table_reply(table):
    reply = send("DELETE", f"/Tables('{table.name}')").expect(204)
    same(reply.body, b"", "body")
    send("DELETE", f"/Tables('{table.name}')").expect(404, "ResourceNotFound", "The specified resource does not exist.")
    send("GET", f"/Tables('{table.name}')").expect(404, "ResourceNotFound")
    table.query().expect(404, "TableNotFound", "The table specified does not exist.")


@case
def create_table_twice_in_another_case(table):
    reply = send("POST", "/Tables", {"TableName": table.name.swapcase()})
    reply.expect(409, "TableAlreadyExists", "The table specified already exists.")
    same(send("GET", f"/Tables('{table.name.lower()}')").expect(200).json()["TableName"], table.name)


@case
def table_collection_with_parentheses():
    send("GET", "/Tables()?$top=1").expect(200)


# The entity of the protocol's own example, with its annotations in the order a client may choose.
PERSON = ('{"PartitionKey":"UK","RowKey":"0001","Name":"Ann","Age":39,"Visits":"933311100","Visits@odata.type":"Edm.Int64",'
          '"Born@odata.type":"Edm.DateTime","Born":"1973-10-04T00:00:00Z","Pic":"AQID","Pic@odata.type":"Edm.Binary",'
          '"Ref":"c9da6455-213d-42c9-9a79-3e9149a57833","Ref@odata.type":"Edm.Guid","Ok":true,"Rate":3.0}')
PLAIN = ('"Name":"Ann","Age":39,"Visits":"933311100","Born":"1973-10-04T00:00:00Z","Pic":"AQID",'
         '"Ref":"c9da6455-213d-42c9-9a79-3e9149a57833","Ok":true,"Rate":3.0}')
TYPED = ('"Name":"Ann","Age":39,"Visits@odata.type":"Edm.Int64","Visits":"933311100","Born@odata.type":"Edm.DateTime",'
         '"Born":"1973-10-04T00:00:00Z","Pic@odata.type":"Edm.Binary","Pic":"AQID","Ref@odata.type":"Edm.Guid",'
         '"Ref":"c9da6455-213d-42c9-9a79-3e9149a57833","Ok":true,"Rate":3.0}')


def person(table):
    table.post(PERSON).expect(201)


def person_text(level, table, timestamp, context):
    """The exact text of the entity at a metadata level; `context` is its `odata.metadata` member or nothing."""
    etag = json.dumps(f"W/\"datetime'{timestamp.replace(':', '%3A')}'\"")
    keys, link = '"PartitionKey":"UK","RowKey":"0001",', f"{table.name}(PartitionKey='UK',RowKey='0001')"
    if level == "none":
        return "{" + keys + f'"Timestamp":"{timestamp}",' + PLAIN
    if level == "minimal":
        return "{" + context + f'"odata.etag":{etag},' + keys + f'"Timestamp":"{timestamp}",' + TYPED
    return ("{" + context + f'"odata.type":"{ACCOUNT}.{table.name}","odata.id":"{ENDPOINT}/{link}","odata.etag":{etag},'
            f'"odata.editLink":"{link}",' + keys + f'"Timestamp@odata.type":"Edm.DateTime","Timestamp":"{timestamp}",' + TYPED)


def element_context(table):
    return f'"odata.metadata":"{ENDPOINT}/$metadata#{table.name}/@Element",'


def got_entity(level):
    def check():
        table = shared(person)
        reply = table.get("0001", "UK", Accept=LEVELS[level]).expect(200)
        same(reply.text, person_text(level, table, reply.json()["Timestamp"], element_context(table)), "body")
    return check


def queried_entities(level):
    def check():
        table = shared(person)
        reply = table.query("PartitionKey eq 'UK'", Accept=LEVELS[level]).expect(200).no_header("ETag")
        timestamp = reply.json()["value"][0]["Timestamp"]
        context = f'"odata.metadata":"{ENDPOINT}/$metadata#{table.name}",' if level != "none" else ""
        same(reply.text, "{" + context + '"value":[' + person_text(level, table, timestamp, "") + "]}", "body")
    return check


def inserted_entity(level):
    def check():
        table = Table().create()
        try:
            reply = table.post(PERSON, Accept=LEVELS[level]).expect(201)
        finally:
            remove(table.name)
        reply.no_header("Preference-Applied", "DataServiceId")
        reply.header("Location", f"{ENDPOINT}/{table.name}(PartitionKey='UK',RowKey='0001')")
        same(reply.text, person_text(level, table, reply.json()["Timestamp"], element_context(table)), "body")
    return check


for level in LEVELS:
    add(f"get_entity_body_{level}", got_entity(level))
    add(f"query_entities_body_{level}", queried_entities(level))
    add(f"insert_entity_body_{level}", inserted_entity(level))


def reply_headers(level):
    """A case: what every JSON reply says about its content, at this metadata level."""
    def check():
        table, accept = shared(person), {"Accept": LEVELS[level]}
        created, _ = creating(**accept)
        for reply in (created, table.get("0001", "UK", **accept), table.query(**accept), send("GET", "/Tables?$top=1", **accept),
                      table.post({"PartitionKey": "headers", "RowKey": unique_name()}, **accept)):
            reply.expect((200, 201)).header("Content-Type", JSON_TYPE.format(LEVELS[level]))
            reply.header("Cache-Control", "no-cache").header("X-Content-Type-Options", "nosniff")
    return check


for level in LEVELS:
    add(f"reply_headers_{level}", reply_headers(level))


@case
def insert_return_no_content(table):
    reply = table.post({"PartitionKey": "p", "RowKey": "r"}, Prefer="return-no-content").expect(204)
    reply.header("Preference-Applied", "return-no-content")
    for header in ("Location", "DataServiceId"):
        reply.header(header, f"{ENDPOINT}/{table.name}(PartitionKey='p',RowKey='r')")
    reply.header("ETag", table.get()["ETag"])


@case
def insert_return_content(table):
    reply = table.post({"PartitionKey": "p", "RowKey": "r"}, Prefer="return-content").expect(201)
    reply.header("Preference-Applied", "return-content").no_header("DataServiceId")


@case
def location_of_special_keys(table):
    reply = table.post({"PartitionKey": "A'aaa\"_b", "RowKey": ":@ +,$"}).expect(201)
    reply.header("Location", f"{ENDPOINT}/{table.name}(PartitionKey='A''aaa%22_b',RowKey='%3A%40%20%2B%2C%24')")


@case
def update_replies(table):
    table.insert()
    for reply in (table.put({"A": 1}), table.patch({"A": 2}), table.put({"A": 3}, If_Match="*"), table.patch({}, If_Match="*")):
        reply.expect(204).no_header("Location", "DataServiceId", "Preference-Applied")
        same((reply.body, reply["ETag"] is None), (b"", False), "body, ETag missing")
    table.delete().expect(204).no_header("ETag")


@case
def no_content_type_without_content(table):
    table.insert()
    for reply in (table.put({}), table.delete(), table.post({"PartitionKey": "p", "RowKey": "r"}, Prefer="return-no-content")):
        reply.expect(204).no_header("Content-Type")


@case
def etag_is_the_timestamp(table):
    for number in range(20):
        table.insert(str(number))
    for row in table.query().json()["value"]:
        assert re.fullmatch(TIMESTAMP, row["Timestamp"]), f"Timestamp {row['Timestamp']}"
        same(row["odata.etag"], f"W/\"datetime'{row['Timestamp'].replace(':', '%3A')}'\"")
    reply = table.get("0")
    same(reply["ETag"], reply.json()["odata.etag"])


@case
def etag_changes_with_every_write(table):
    tags = [table.insert()] + [table.put({"A": 1})["ETag"] for _ in range(10)]
    same(len(set(tags)), 11, "distinct ETags of 11 writes")


@case
def empty_query_body(table):
    same(table.query(Accept=NONE).expect(200).text, '{"value":[]}')
    same(table.query().text, f'{{"odata.metadata":"{ENDPOINT}/$metadata#{table.name}","value":[]}}')


@case
def no_data_service_version_header(table):
    table.query().expect(200).no_header("DataServiceVersion")


# Content negotiation: Accept, $format, the level of the reply.
def negotiated(accept, format, level):
    def check():
        options = f"$format={format}" if format else ""
        reply = shared(person).query(options=options, Accept=accept).expect(200)
        assert (reply["Content-Type"] or "").startswith(LEVELS[level]), f"Content-Type {reply['Content-Type']}"
        same("odata.metadata" in reply.json(), level != "none", "odata.metadata present")
    return check


for name, accept, format, level in (
        ("plain_json", "application/json", "", "minimal"),
        ("spaces", "application/json; odata=nometadata", "", "none"),
        ("absent", None, "", "minimal"),
        ("anything", "*/*", "", "minimal"),
        ("format_wins", FULL, "application/json;odata=nometadata", "none"),
        ("format_escaped", NONE, "application%2Fjson%3Bodata%3Dminimalmetadata", "minimal")):
    add(f"accept_{name}", negotiated(accept, format, level))


@case
def accept_atom():
    shared(person).query(Accept="application/atom+xml").expect(415, "AtomFormatNotSupported")


@case
def accept_unknown_type():
    shared(person).query(Accept="image/png").expect(415, "MediaTypeNotSupported")


# $select: options, what they add to the context URL, the members of the row.
SELECTIONS = {
    "two": ("Name,Age", "Name,Age", ["Name", "Age"]),
    "escaped_comma": ("Name%2CAge", "Name,Age", ["Name", "Age"]),
    "space": ("Name,%20Age", "Name,%20Age", ["Name", "Age"]),
    "keys": ("PartitionKey,RowKey", "PartitionKey,RowKey", ["PartitionKey", "RowKey"]),
    "typed": ("Visits", "Visits", ["Visits@odata.type", "Visits"]),
    "missing": ("Name,Missing", "Name,Missing", ["Name", "Missing"]),
}


def selected(option, members):
    def check():
        row = shared(person).query("Age eq 39", "$select=" + option).expect(200).json()["value"][0]
        same([name for name in row if name != "odata.etag"], members, "members")
    return check


for name, (option, _, members) in SELECTIONS.items():
    add(f"select_{name}", selected(option, members))


@case
def select_in_the_context():
    table = shared(person)
    for option, context, _ in SELECTIONS.values():
        reply = table.query(options="$select=" + option).expect(200).json()
        same(reply["odata.metadata"], f"{ENDPOINT}/$metadata#{table.name}&$select={context}")


@case
def select_missing_is_null():
    row = shared(person).query(options="$select=Missing", Accept=NONE).expect(200).json()["value"][0]
    same(row, {"Missing": None})
    same(shared(person).get("0001", "UK", "?$select=Name,Missing", Accept=NONE).expect(200).json(),
         {"Name": "Ann", "Missing": None})


@case
def select_on_one_entity():
    table = shared(person)
    reply = table.get("0001", "UK", "?$select=Name,Age").expect(200)
    same(reply.json()["odata.metadata"], f"{ENDPOINT}/$metadata#{table.name}/@Element&$select=Name,Age")
    same(set(reply.json()) - {"odata.metadata", "odata.etag"}, {"Name", "Age"}, "members")


@case
def select_is_case_sensitive():
    same(shared(person).query(options="$select=name", Accept=NONE).json()["value"][0], {"name": None})


@case
def select_star():
    row = shared(person).query(options="$select=*", Accept=NONE).expect(200).json()["value"][0]
    same(list(row)[:4], ["PartitionKey", "RowKey", "Timestamp", "Name"])


@case
def escaped_option_names():
    same(shared(person).rows(options="%24filter=Age%20eq%2039&%24top=1"), ["0001"])


@case
def plus_is_a_space_in_the_query():
    same(shared(person).rows(options="$filter=Age+eq+39"), ["0001"])


@case
def unknown_query_parameters_are_ignored():
    shared(person).query(options="_=1&foo=bar&timeout=20").expect(200)


# Headers common to all replies.
@case
def request_id_headers():
    reply = shared(person).query(x_ms_client_request_id="my-id-1").expect(200)
    reply.header("x-ms-client-request-id", "my-id-1")
    assert re.fullmatch(GUID, reply["x-ms-request-id"] or ""), f"x-ms-request-id {reply['x-ms-request-id']!r}"
    assert reply["Date"], "no Date"


@case
def version_is_echoed():
    for version in ("2015-04-05", "2020-12-06"):
        shared(person).query(x_ms_version=version).expect(200).header("x-ms-version", version)
        shared(person).get("absent", x_ms_version=version).expect(404).header("x-ms-version", version)


for version in ("2009-04-14", "2009-09-19", "2013-08-15", "2015-12-11", "2026-10-06", "2099-01-01"):
    def accepted(version=version):
        shared(person).query(x_ms_version=version).expect(200)
    add(f"version_{version}_is_accepted", accepted)


@case
def version_absent():
    shared(person).query(x_ms_version=None).expect(200)


@case
def expect_100_continue(table):
    # The client does not wait for the 100, so both answers to the header are fine; the write must succeed.
    table.post({"PartitionKey": "p", "RowKey": "r"}, Expect="100-continue").expect(201)


# Error bodies.
@case
def error_body_json(table):
    reply = table.get("absent").expect(404, "ResourceNotFound")
    pattern = (r'\{"odata\.error":\{"code":"ResourceNotFound","message":\{"lang":"en-US","value":"The specified resource '
               r'does not exist\.\\nRequestId:(.{36})\\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z"\}\}\}')
    found = re.fullmatch(pattern, reply.text)
    assert found, f"body {reply.text!r}"
    same(found[1], reply["x-ms-request-id"], "request id")


for level in LEVELS:
    def error_level(level=level):
        reply = shared(person).get("absent", Accept=LEVELS[level]).expect(404)
        reply.header("Content-Type", JSON_TYPE.format(LEVELS[level]))
    add(f"error_content_type_{level}", error_level)


@case
def error_body_xml(table):
    reply = send("PUT", f"/{table.name}?comp=acl", "<oops", Accept="application/xml", Content_Type="application/xml")
    reply.expect(400, "InvalidXmlDocument", "XML specified is not syntactically valid.")
    reply.header("Content-Type", "application/xml").header("x-ms-error-code", "InvalidXmlDocument")
    start = ('<?xml version="1.0" encoding="utf-8"?><m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/'
             'metadata"><m:code>InvalidXmlDocument</m:code><m:message xml:lang="en-US">')
    same(reply.body.decode()[:len(start)], start, "start of the body")
    assert re.search(r"\nRequestId:.{36}\nTime:\S*\.\d{7}Z</m:message></m:error>$", reply.text), f"end {reply.text[-90:]!r}"


@case
def late_error_headers(table):
    table.insert()
    reply = table.post({"PartitionKey": "p", "RowKey": "r"}, Prefer="return-no-content").expect(409, "EntityAlreadyExists")
    reply.header("Preference-Applied", "return-no-content").header("Cache-Control", "no-cache")
    reply.header("X-Content-Type-Options", "nosniff")


@case
def early_error_headers():
    reply = send("GET", f"/{unique_name()}()").expect(404, "TableNotFound")
    reply.no_header("Cache-Control").header("X-Content-Type-Options", "nosniff")


# Paths.
@case
def entity_path_spellings(table):
    table.insert("a b'c", "p'q")
    for path in (f"/{table.name}(PartitionKey='p''q',RowKey='a%20b''c')",
                 f"/{table.name}(PartitionKey=%27p%27%27q%27,RowKey=%27a%20b%27%27c%27)",
                 f"/{table.name}(PartitionKey=%27p''q%27,RowKey='a%20b%27%27c')"):
        send("GET", path).expect(200)


@case
def entity_through_another_case_of_the_name(table):
    table.insert(A=1)
    same(send("GET", entity_path(table.name.swapcase(), "p", "r")).expect(200).json()["A"], 1)


@case
def missing_entity_and_missing_table():
    send("GET", entity_path(unique_name(), "p", "r")).expect(404, "TableNotFound")
    shared(person).get("absent").expect(404, "ResourceNotFound")


@case
def query_without_parentheses():
    send("GET", f"/{shared(person).name}").expect(200)


@case
def list_tables_in_order_of_lower_case_names():
    stem = unique_name("Sort")
    names = [stem + end for end in ("a", "B", "c", "D")]
    try:
        for name in reversed(names):
            send("POST", "/Tables", {"TableName": name}).expect(201)
        reply = send("GET", f"/Tables?$filter=TableName%20ge%20'{stem}'%20and%20TableName%20lt%20'{stem}%7B'")
        same([row["TableName"] for row in reply.expect(200).json()["value"]], names)
    finally:
        for name in names:
            remove(name)
