"""Requests that must be refused, and how; each row of these tables is a case. Nothing may be written by any of them."""

import json

from registry import add, case
from report import same
from table import shared, unique_name
from wire import encode, send

from cases.values import annotated, entity_of_bytes

BROKEN = (400, "InvalidInput")


def refuses(status, code, method, path, body=b"", message=None, **headers):
    """A case: the request is refused so. `{T}` in path and body stands for the name of an existing table."""
    def check():
        name = shared().name
        text = body.replace("{T}", name) if isinstance(body, str) else body
        send(method, path.replace("{T}", name), text, **headers).expect(status, code, message)
    return check


def refuses_insert(status, code, body, message=None, **headers):
    """A case: the body of an insert is refused so and writes nothing. `"bad"` in it stands for a row key of its own."""
    def check():
        row_key = unique_name("bad")
        data = body if isinstance(body, bytes) else body.encode()
        shared().post(data.replace(b'"bad"', f'"{row_key}"'.encode()), **headers).expect(status, code, message)
        same(shared().stored(row_key), None, "entity afterwards")
    return check


def entity(**properties):
    return json.dumps({"PartitionKey": "p", "RowKey": "bad", **properties})


BODIES = {
    "empty": b"", "cut": '{"PartitionKey":"p"', "array": "[]", "string": '"x"', "number": "1", "null": "null",
    "trailing_comma": '{"PartitionKey":"p","RowKey":"bad",}', "text_after": '{"PartitionKey":"p","RowKey":"bad"}x',
    "not_utf8": b'{"PartitionKey":"p","RowKey":"bad","V":"\xff\xfe"}',
    "bare_nan": '{"PartitionKey":"p","RowKey":"bad","V":NaN}', "object_value": entity(V={"a": 1}), "array_value": entity(V=[1]),
    "too_deep": '{"PartitionKey":"p","RowKey":"bad","V":' + "[" * 50000 + "]" * 50000 + "}",
    "xml": "<entry/>",
}
for name, body in BODIES.items():
    add(f"json_{name}", refuses_insert(*BROKEN, body))
add("json_duplicate_member", refuses_insert(400, "DuplicatePropertiesSpecified",
                                            '{"PartitionKey":"p","RowKey":"bad","V":1,"V":2}'))

VALUES = {
    "int32_text": ("Int32", '"x"'), "int32_overflow": ("Int32", "2147483648"), "int32_underflow": ("Int32", "-2147483649"),
    "int64_overflow": ("Int64", '"9223372036854775808"'), "int64_fraction": ("Int64", '"1.5"'), "int64_text": ("Int64", '"x"'),
    "double_text": ("Double", '"abc"'), "boolean_text": ("Boolean", '"not a bool"'), "guid_short": ("Guid", '"123"'),
    "guid_letters": ("Guid", '"zzda6455-213d-42c9-9a79-3e9149a57833"'), "date_word": ("DateTime", '"yesterday"'),
    "date_empty": ("DateTime", '""'), "date_month_13": ("DateTime", '"2020-13-01T00:00:00Z"'),
    "date_feb_30": ("DateTime", '"2020-02-30T00:00:00Z"'), "binary_not_base64": ("Binary", '"#?"'),
    "unknown_type": ("Thing", '"x"'), "null_type": ("Null", '"x"'),
}
for name, (edm, value) in VALUES.items():
    add(f"value_{name}", refuses_insert(*BROKEN, f'{{"PartitionKey":"p","RowKey":"bad",{annotated(edm, value)}}}'))
add("value_date_before_1601", refuses_insert(
    400, "OutOfRangeInput", entity(**{"V@odata.type": "Edm.DateTime", "V": "1600-12-31T00:00:00Z"})))

NEED = (400, "PropertiesNeedValue")
add("key_partition_missing", refuses_insert(*NEED, '{"RowKey":"bad"}', "The values are not specified for all properties"))
add("key_row_missing", refuses_insert(*NEED, '{"PartitionKey":"p"}'))
add("key_partition_null", refuses_insert(*NEED, '{"PartitionKey":null,"RowKey":"bad"}'))
add("key_row_null", refuses_insert(*NEED, '{"PartitionKey":"p","RowKey":null}'))
add("key_both_missing", refuses_insert(*NEED, "{}"))
add("key_number", refuses_insert(*BROKEN, '{"PartitionKey":"p","RowKey":1}'))
add("key_boolean", refuses_insert(*BROKEN, '{"PartitionKey":true,"RowKey":"bad"}'))
add("key_annotated_guid", refuses_insert(*BROKEN, '{"PartitionKey":"p","RowKey":"c9da6455-213d-42c9-9a79-3e9149a57833",'
                                                  '"RowKey@odata.type":"Edm.Guid"}'))
for name, character in {"slash": "/", "backslash": "\\", "hash": "#", "question": "?", "tab": "\t", "newline": "\n",
                        "nul": "\0", "delete": "\x7f", "c1": "\x85"}.items():
    add(f"key_{name}_in_row_key", refuses_insert(
        400, "OutOfRangeInput", json.dumps({"PartitionKey": "p", "RowKey": f"a{character}b"})))
    add(f"key_{name}_in_partition_key", refuses_insert(
        400, "OutOfRangeInput", json.dumps({"PartitionKey": f"a{character}b", "RowKey": "bad"})))
TOO_LONG = (400, ("KeyValueTooLarge", "PropertyValueTooLarge"))
add("key_row_too_long", refuses_insert(*TOO_LONG, json.dumps({"PartitionKey": "p", "RowKey": "x" * 1025})))
add("key_partition_too_long", refuses_insert(*TOO_LONG, json.dumps({"PartitionKey": "x" * 1025, "RowKey": "bad"})))
add("key_too_long_in_get", refuses(404, "ResourceNotFound", "GET", "/{T}(PartitionKey='p',RowKey='" + "x" * 1025 + "')"))
add("key_too_long_in_upsert", refuses(*TOO_LONG, "PUT", "/{T}(PartitionKey='p',RowKey='" + "x" * 1025 + "')", "{}"))
for name, character, code in (("slash", "/", "InvalidInput"), ("backslash", "\\", "InvalidInput"),
                              ("hash", "#", "OutOfRangeInput"), ("question", "?", "OutOfRangeInput"),
                              ("tab", "\t", "OutOfRangeInput")):
    add(f"key_{name}_in_url", refuses(400, code, "PUT", f"/{{T}}(PartitionKey='p',RowKey='a{encode(character)}b')", "{}"))

add("properties_253", refuses_insert(400, "TooManyProperties", entity(**{f"P{n}": n for n in range(253)}),
                                     "The entity contains more properties than allowed."))
add("property_name_256", refuses_insert(400, "PropertyNameTooLong", entity(**{"N" * 256: 1}),
                                        "The property name exceeds the maximum allowed length (255)."))
for name, spelled in {"digit_first": "1a", "dash": "a-b", "space": "a b", "dot": "a.b", "slash": "a/b", "quote": "a'b"}.items():
    add(f"property_name_{name}", refuses_insert(400, "PropertyNameInvalid", entity(**{spelled: 1})))
TOO_LARGE = (400, "PropertyValueTooLarge")
add("string_32769", refuses_insert(*TOO_LARGE, entity(V="x" * 32769)))
add("string_32769_wide", refuses_insert(*TOO_LARGE, entity(V="行" * 32769)))
add("string_16385_pairs", refuses_insert(*TOO_LARGE, entity(V="😀" * 16385)))
add("binary_65537", refuses_insert(*TOO_LARGE, entity(**{"V@odata.type": "Edm.Binary", "V": "AAAA" * 21845 + "AAA="})))
add("entity_over_1_MiB", refuses_insert(400, "EntityTooLarge", json.dumps(
    {"PartitionKey": "p", "RowKey": unique_name("v"), **entity_of_bytes(1048578)})))
add("body_over_4_MiB", refuses_insert(413, "RequestBodyTooLarge", entity(V="x").ljust(4 * 1024 * 1024 + 1)))


@case
def merge_result_with_too_many_properties(table):
    table.insert(properties={f"P{n}": n for n in range(252)})
    table.patch({"One": 1, "P0": 5}).expect(400, "TooManyProperties")
    same(table.stored(), {f"P{n}": n for n in range(252)})


@case
def merge_result_too_large(table):
    table.insert(properties={f"P{n:02}": "x" * 32000 for n in range(16)})
    table.patch({"More": "x" * 32000}).expect(400, "EntityTooLarge")
    assert "More" not in table.stored(), "the refused property was written"


# Table names, in a creation and in the URL of every operation that names a table.
NAMES = {
    "two_characters": ("ab", "OutOfRangeInput"), "64_characters": ("a" * 64, "OutOfRangeInput"),
    "dash": ("with-dash", "InvalidResourceName"), "digit_first": ("1abc", "InvalidResourceName"),
    "underscore": ("a_bc", "InvalidResourceName"), "not_ascii": ("täble", "InvalidResourceName"),
}
for name, (text, code) in NAMES.items():
    path = "/" + encode(text)
    add(f"table_name_{name}_create", refuses(400, code, "POST", "/Tables", json.dumps({"TableName": text})))
    add(f"table_name_{name}_insert", refuses(400, code, "POST", path, '{"PartitionKey":"p","RowKey":"bad"}'))
    add(f"table_name_{name}_query", refuses(400, code, "GET", path + "()"))
add("table_name_message", refuses(400, "InvalidResourceName", "POST", "/Tables", '{"TableName":"with-dash"}',
                                  "The specifed resource name contains invalid characters."))
add("table_name_length_message", refuses(400, "OutOfRangeInput", "POST", "/Tables", '{"TableName":"ab"}',
                                         "The specified resource name length is not within the permissible limits."))
add("table_name_reserved", refuses(*BROKEN, "POST", "/Tables", '{"TableName":"Tables"}'))
add("table_name_empty", refuses(400, ("InvalidInput", "PropertiesNeedValue"),
                                "POST", "/Tables", '{"TableName":""}'))
add("table_name_missing", refuses(400, None, "POST", "/Tables", "{}"))
add("table_name_number", refuses(400, None, "POST", "/Tables", '{"TableName":5}'))
add("table_name_bad_json", refuses(*BROKEN, "POST", "/Tables", "{"))

# Query options.
for name, value in {"0": "0", "1001": "1001", "negative": "-1", "word": "x"}.items():
    add(f"top_{name}", refuses(*BROKEN, "GET", f"/{{T}}()?$top={value}"))
for option in ("$orderby=RowKey", "$skip=1", "$expand=A", "$inlinecount=allpages"):
    name = option[1:].split("=")[0]
    add(f"option_{name}_on_entities", refuses((501, 400), ("NotImplemented", "InvalidInput"), "GET", f"/{{T}}()?{option}"))
add("option_orderby_on_tables", refuses((501, 400), ("NotImplemented", "InvalidInput"), "GET", "/Tables?$orderby=TableName"))
for name, text in {"startswith": "startswith(RowKey,'a')", "substringof": "substringof('a',RowKey)",
                   "arithmetic": "A add 1 eq 2", "tolower": "tolower(RowKey) eq 'a'"}.items():
    add(f"filter_function_{name}", refuses((501, 400), ("NotImplemented", "InvalidInput"),
                                           "GET", f"/{{T}}()?$filter={encode(text)}"))
for name, token in {"word": "x", "length": "1!99!cGs-", "base64": "1!4!####", "version": "9!4!cGs-"}.items():
    add(f"token_bad_{name}", refuses(*BROKEN, "GET", f"/{{T}}()?NextPartitionKey={encode(token)}"))
add("token_bad_table", refuses(*BROKEN, "GET", "/Tables?NextTableName=x"))
FILTERS = {
    "three_words": "aaa bbb ccc", "open_string": "RowKey eq 'a", "open_parenthesis": "(RowKey eq 'a'", "closed_twice": "RowKey eq 'a')",
    "no_right_side": "RowKey eq", "no_left_side": "eq 'a'", "no_operator": "RowKey 'a'", "operator_case": "RowKey EQ 'a'",
    "dangling_and": "RowKey eq 'a' and", "dangling_not": "not", "null": "A eq null", "number_alone": "1", "string_alone": "'a'",
    "bad_date": "A eq datetime'yesterday'", "bad_guid": "A eq guid'1'", "bad_binary": "A eq X'0g'", "odd_binary": "A eq X'012'",
    "int64_overflow": "A eq 9223372036854775808L", "two_comparisons": "A eq 1 B eq 2", "empty_parentheses": "()",
    "sql": "1=1; drop table x", "equals_sign": "A = 1",
}
for name, text in FILTERS.items():
    add(f"filter_bad_{name}", refuses(*BROKEN, "GET", f"/{{T}}()?$filter={encode(text)}"))
add("filter_syntax_message", refuses(*BROKEN, "GET", "/{T}()?$filter=aaa%20bbb%20ccc",
                                     message="Syntax error at position 7 in 'aaa bbb ccc'."))

# Methods, paths, headers.
add("keys_too_few", refuses(*BROKEN, "GET", "/{T}(PartitionKey='p')", message="The number of keys specified in the URI does not match"))
add("keys_as_tables_segment", refuses(*BROKEN, "GET", "/{T}/Tables('x')"))
add("service_operation_on_a_table", refuses(400, "InvalidQueryParameterValue", "GET", "/{T}?restype=service&comp=properties"))
add("method_unknown", refuses((405, 501, 400), None, "FOO", "/Tables"))
add("method_put_on_tables", refuses(405, None, "PUT", "/Tables", "{}"))
add("method_delete_on_a_collection", refuses((405, 400), None, "DELETE", "/{T}()", If_Match="*"))
add("method_post_on_an_entity", refuses((405, 400), None, "POST", "/{T}(PartitionKey='p',RowKey='bad')", "{}"))
add("x_method_with_put", refuses(400, "XMethodNotUsingPost", "PUT", "/{T}(PartitionKey='p',RowKey='bad')", "{}",
                                 X_HTTP_Method="MERGE"))
add("x_method_unknown", refuses(400, "XMethodIncorrectValue", "POST", "/{T}(PartitionKey='p',RowKey='bad')", "{}",
                                X_HTTP_Method="FOO"))
add("content_type_multipart", refuses_insert(415, "MediaTypeNotSupported", entity(), Content_Type="multipart/mixed; boundary=x"))
add("content_type_text", refuses_insert(415, "MediaTypeNotSupported", entity(), Content_Type="text/plain"))
for name, version in {"word": "foo", "before_the_first": "2008-01-01", "shape": "2019-2-2"}.items():
    add(f"version_bad_{name}", refuses(400, "InvalidHeaderValue", "GET", "/{T}()", x_ms_version=version))


@case
def path_with_escaped_slashes(table):
    # The slashes are decoded before the path is split, so this names the table.
    send("GET", f"/{table.name}%2F%2F").expect(200)
