"""What is stored for what was sent: types, their spelling in replies, nulls, ignored members, limits that still fit."""

import json

from registry import add, case
from report import same
from table import shared, unique_name
from wire import NONE, send


SYSTEM = ("odata.metadata", "odata.etag", "PartitionKey", "RowKey", "Timestamp")


def spelled(text):
    """The custom members of a JSON object in their order, numbers as they are written."""
    pairs = json.loads(text, object_pairs_hook=list, parse_float="number {}".format, parse_int="number {}".format)
    return [(name, value) for name, value in pairs if name not in SYSTEM]


def stores(sent, expected):
    """A case: the members `sent` are read back, at minimal metadata, as `expected`."""
    def check():
        row_key = unique_name("v")
        shared().post(f'{{"PartitionKey":"p","RowKey":"{row_key}",{sent}}}').expect(201)
        same(spelled(shared().get(row_key).expect(200).text), spelled("{" + expected + "}"), "stored members")
    return check


def annotated(edm, value):
    return f'"V@odata.type":"Edm.{edm}","V":{value}'


ROUND_TRIPS = {
    "double_with_point": ('"V":3.0', '"V":3.0'),
    "double_whole_annotated": (annotated("Double", "5"), '"V":5.0'),
    "double_string_annotated": (annotated("Double", '"0"'), '"V":0.0'),
    "double_negative": ('"V":-2.5', '"V":-2.5'),
    "double_nan": (annotated("Double", '"NaN"'), annotated("Double", '"NaN"')),
    "double_infinity": (annotated("Double", '"Infinity"'), annotated("Double", '"Infinity"')),
    "double_minus_infinity": (annotated("Double", '"-Infinity"'), annotated("Double", '"-Infinity"')),
    "int32": ('"V":-2147483648', '"V":-2147483648'),
    "int32_annotated": (annotated("Int32", "7"), '"V":7'),
    "int64": (annotated("Int64", '"9223372036854775807"'), annotated("Int64", '"9223372036854775807"')),
    "int64_small": (annotated("Int64", '"64"'), annotated("Int64", '"64"')),
    "int64_annotation_after": ('"V":"64","V@odata.type":"Edm.Int64"', annotated("Int64", '"64"')),
    "boolean": ('"V":false', '"V":false'),
    "boolean_string_annotated": (annotated("Boolean", '"false"'), '"V":false'),
    "string_annotated": (annotated("String", '"x"'), '"V":"x"'),
    "string_spaces_kept": ('"V":"  a  "', '"V":"  a  "'),
    "string_empty": ('"V":""', '"V":""'),
    "string_like_a_date": ('"V":"2020-01-01T00:00:00Z"', '"V":"2020-01-01T00:00:00Z"'),
    "string_like_a_guid": ('"V":"c9da6455-213d-42c9-9a79-3e9149a57833"', '"V":"c9da6455-213d-42c9-9a79-3e9149a57833"'),
    "guid_upper_case": (annotated("Guid", '"C9DA6455-213D-42C9-9A79-3E9149A57833"'),
                        annotated("Guid", '"c9da6455-213d-42c9-9a79-3e9149a57833"')),
    "binary": (annotated("Binary", '"AAEC/w=="'), annotated("Binary", '"AAEC/w=="')),
    "binary_empty": (annotated("Binary", '""'), annotated("Binary", '""')),
    "date_fraction_trimmed": (annotated("DateTime", '"2021-05-06T07:08:09.0606250Z"'),
                              annotated("DateTime", '"2021-05-06T07:08:09.060625Z"')),
    "date_fraction_kept": (annotated("DateTime", '"2021-05-06T07:08:09.111Z"'),
                           annotated("DateTime", '"2021-05-06T07:08:09.111Z"')),
    "date_fraction_vanishes": (annotated("DateTime", '"2021-05-06T07:08:09.000000Z"'),
                               annotated("DateTime", '"2021-05-06T07:08:09Z"')),
    "date_ticks": (annotated("DateTime", '"2021-05-06T07:08:09.1234567Z"'),
                   annotated("DateTime", '"2021-05-06T07:08:09.1234567Z"')),
    "date_without_zone": (annotated("DateTime", '"2021-05-06T07:08:09"'), annotated("DateTime", '"2021-05-06T07:08:09Z"')),
    "date_with_offset": (annotated("DateTime", '"2021-05-06T07:08:09+02:00"'),
                         annotated("DateTime", '"2021-05-06T05:08:09Z"')),
    "date_first": (annotated("DateTime", '"1601-01-01T00:00:00Z"'), annotated("DateTime", '"1601-01-01T00:00:00Z"')),
    "date_last": (annotated("DateTime", '"9999-12-31T23:59:59.9999999Z"'),
                  annotated("DateTime", '"9999-12-31T23:59:59.9999999Z"')),
    "null_is_not_stored": ('"N":null,"V":1', '"V":1'),
    "annotated_null_is_not_stored": ('"N@odata.type":"Edm.Int64","N":null,"V":1', '"V":1'),
    "annotation_without_value": ('"N@odata.type":"Edm.Int64","V":1', '"V":1'),
    "client_timestamp_ignored": ('"Timestamp":"2001-01-01T00:00:00Z","V":1', '"V":1'),
    "null_timestamp_ignored": ('"Timestamp":null,"V":1', '"V":1'),
    "odata_members_ignored": ('"odata.etag":"W/\\"x\\"","odata.type":"a.b","odata.id":"x","V":1', '"V":1'),
    "annotated_keys": ('"PartitionKey@odata.type":"Edm.String","RowKey@odata.type":"Edm.String","V":1', '"V":1'),
    "etag_is_an_ordinary_name": ('"ETag":1,"etag":2,"Etag":3', '"ETag":1,"etag":2,"Etag":3'),
    "names_differ_by_case": ('"v":1,"V":2', '"v":1,"V":2'),
    "underscore_name": ('"_a1":1', '"_a1":1'),
}
for name, (sent, expected) in ROUND_TRIPS.items():
    add(f"stores_{name}", stores(sent, expected))


@case
def stores_large_and_small_doubles():
    numbers = ["1.7976931348623157e308", "5e-324", "0.1", "123456789012345.67", "1.23456789012346e+24", "1e15"]
    body = {"PartitionKey": "p", "RowKey": unique_name("v")}
    text = json.dumps(body)[:-1] + "".join(f',"V{n}":{number}' for n, number in enumerate(numbers)) + "}"
    shared().post(text).expect(201)
    reply = shared().get(body["RowKey"], Accept=NONE)
    for n, number in enumerate(numbers):
        same(repr(reply.json()[f"V{n}"]), repr(float(number)), f"{number}")
        spelled = reply.text.split(f'"V{n}":')[1].split(",")[0].rstrip("}")
        assert any(mark in spelled for mark in ".eE"), f"{number} is spelled {spelled}, as if an integer"


@case
def integer_beyond_int32_is_a_double():
    row_key = unique_name("v")
    shared().post(f'{{"PartitionKey":"p","RowKey":"{row_key}","V":2147483648}}').expect(201)
    properties = shared().stored(row_key)
    same((properties, isinstance(properties["V"], float)), ({"V": 2147483648.0}, True))


@case
def unicode_round_trip():
    row_key = unique_name("v") + " 行😀é"
    names = {"名前": "日本語 😀\u0001\t\"\\/", "Größe": "\ue000\uffef"}
    shared().post(json.dumps({"PartitionKey": "città", "RowKey": row_key, **names})).expect(201)
    same(shared().stored(row_key, "città"), names)
    shared().post(json.dumps({"PartitionKey": "città", "RowKey": row_key + "2", **names}, ensure_ascii=False)).expect(201)
    same(shared().stored(row_key + "2", "città"), names)


@case
def merge_ignores_null(table):
    table.insert(A=1, B=2)
    table.patch({"A": None, "B": 3}, If_Match="*").expect(204)
    same(table.stored(), {"A": 1, "B": 3})
    table.patch({"A": None}).expect(204)
    same(table.stored(), {"A": 1, "B": 3})


@case
def replace_drops_null(table):
    table.insert(A=1, B=2)
    table.put({"A": None, "B": 3}, If_Match="*").expect(204)
    same(table.stored(), {"B": 3})


@case
def merge_changes_a_type(table):
    table.insert(properties={"A": "1", "A@odata.type": "Edm.Int64"}, B=1)
    table.patch({"A": "text"}).expect(204)
    same(table.stored(), {"A": "text", "B": 1})


@case
def keys_in_the_body_of_an_update_are_optional(table):
    table.put({"A": 1}).expect(204)
    table.put({"PartitionKey": "p", "RowKey": "r", "A": 2}).expect(204)
    same(table.stored(), {"A": 2})


@case
def empty_keys(table):
    table.insert("", "", A=1)
    same(send("GET", f"/{table.name}(PartitionKey='',RowKey='')").expect(200).json()["A"], 1)
    table.put({"A": 2}, "", "", If_Match="*").expect(204)
    same(table.rows("PartitionKey eq '' and RowKey eq ''"), [""])
    table.delete("", "").expect(204)


# Sizes that still fit.
def fits(**properties):
    def check():
        row_key = unique_name("v")
        shared().post(json.dumps({"PartitionKey": "p", "RowKey": row_key, **properties}, ensure_ascii=False)).expect(201)
        stored = shared().stored(row_key)
        same({name: stored[name] for name in properties} == properties, True, "stored as sent")
    return check


def entity_of_bytes(size):
    """String properties that make an entity with the keys `p` and a row key of 21 characters exactly this large."""
    left = size - 4 - 2 * (1 + 21)
    properties = {}
    while left:
        name = f"P{len(properties):02}"
        overhead = 8 + 2 * len(name) + 4
        take = min(left - overhead, 2 * 32000)
        if 0 < left - overhead - take <= overhead + 2:
            take -= 2 * 100
        properties[name] = "x" * (take // 2)
        left -= overhead + take
    return properties


add("fits_252_properties", fits(**{f"P{n}": n for n in range(252)}))
add("fits_name_of_255_characters", fits(**{"N" * 255: 1}))
add("fits_string_of_32768_characters", fits(V="x" * 32768))
add("fits_string_of_32768_wide_characters", fits(V="行" * 32768))
add("fits_string_of_16384_surrogate_pairs", fits(V="😀" * 16384))
add("fits_binary_of_65536_bytes", fits(**{"V@odata.type": "Edm.Binary", "V": "AAAA" * 21845 + "AA=="}))
add("fits_entity_of_1_MiB", fits(**entity_of_bytes(1048576)))


@case
def fits_keys_of_1024_characters():
    partition_key, row_key = unique_name("k").ljust(1024, "x"), "y" * 1024
    shared().post({"PartitionKey": partition_key, "RowKey": row_key}).expect(201)
    shared().get(row_key, partition_key).expect(200)


@case
def fits_table_names_of_3_and_63_characters():
    for name in (unique_name()[-3:].translate(str.maketrans("0123456789", "ghijklmnop")), unique_name().ljust(63, "x")):
        reply = send("POST", "/Tables", {"TableName": name}).expect((201, 409))
        if reply.status == 201:
            send("DELETE", f"/Tables('{name}')").expect(204)
