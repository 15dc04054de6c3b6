"""$filter: which rows each filter selects. The rows are those of `rows` below, in the partition `p`."""

from registry import add, case
from report import same
from table import shared
from wire import send


def rows(table):
    def date(day):
        return {"When@odata.type": "Edm.DateTime", "When": f"2020-01-0{day}T00:00:00.0000001Z"}

    def typed(edm, value):
        return {"V@odata.type": f"Edm.{edm}", "V": value}

    for n in (1, 2, 3):
        table.insert(f"n{n}", N=n, L=str(2**40 + n), Ratio=n + 0.5, Flag=n > 1, Name=f"name{n}", Pic="0" + str(n) + "A=",
                     Ref=f"0000000{n}-0000-0000-0000-000000000000",
                     properties={"L@odata.type": "Edm.Int64", "Ref@odata.type": "Edm.Guid", "Pic@odata.type": "Edm.Binary", **date(n)})
    table.insert("bare")
    for n, value in enumerate(("O'Brien", "a b", "é😀", "Z", "")):
        table.insert(f"s{n}", Text=value)
    for name, edm, value in (("i", "Int32", 5), ("l", "Int64", "5"), ("d", "Double", 5.0), ("s", "String", "5"), ("b", "Boolean", True),
                             ("nan", "Double", "NaN")):
        table.insert(f"v-{name}", properties=typed(edm, value))


ALL_N, ALL_V = ["n1", "n2", "n3"], ["v-b", "v-d", "v-i", "v-l", "v-nan", "v-s"]
SELECTS = {
    "int32_eq": ("N eq 2", ["n2"]), "int32_gt": ("N gt 1", ["n2", "n3"]), "int32_negative": ("N gt -1", ALL_N),
    "int64_eq": ("L eq 1099511627778L", ["n2"]), "int64_lt": ("L lt 1099511627778L", ["n1"]),
    "int64_lower_case_suffix": ("L eq 1099511627778l", ["n2"]),
    "double_eq": ("Ratio eq 2.5", ["n2"]), "double_le": ("Ratio le 2.5", ["n1", "n2"]), "double_exponent": ("Ratio lt 0.25e1", ["n1"]),
    "double_with_int_literal": ("Ratio gt 2", ["n2", "n3"]),
    "boolean_eq": ("Flag eq true", ["n2", "n3"]), "boolean_lt": ("Flag lt true", ["n1"]), "boolean_bare": ("Flag", ["n2", "n3"]),
    "date_eq": ("When eq datetime'2020-01-02T00:00:00.0000001Z'", ["n2"]),
    "date_tick": ("When gt datetime'2020-01-02T00:00:00Z'", ["n2", "n3"]),
    "date_without_zone": ("When ge datetime'2020-01-03T00:00:00'", ["n3"]),
    "guid_eq": ("Ref eq guid'00000002-0000-0000-0000-000000000000'", ["n2"]),
    "guid_gt": ("Ref gt guid'00000001-0000-0000-0000-000000000000'", ["n2", "n3"]),
    "binary_eq": ("Pic eq X'D360'", ["n2"]), "binary_long_form": ("Pic eq binary'd360'", ["n2"]),
    "binary_gt": ("Pic gt X'D360'", ["n3"]),
    "string_eq": ("Name eq 'name2'", ["n2"]), "string_ordinal": ("Text lt 'a'", ["s0", "s3", "s4"]),
    "string_quote": ("Text eq 'O''Brien'", ["s0"]), "string_space": ("Text eq 'a b'", ["s1"]), "string_unicode": ("Text eq 'é😀'", ["s2"]),
    "string_empty": ("Text eq ''", ["s4"]), "string_is_case_sensitive": ("Text eq 'z'", []),
    "literal_first": ("2 eq N", ["n2"]), "literal_first_order": ("2 lt N", ["n3"]),
    "missing_ne": ("N ne 1", ["n2", "n3"]), "missing_lt": ("N lt 100", ALL_N), "name_is_case_sensitive": ("n eq 1", []),
    "unknown_property": ("Nowhere eq 1", []),
    "and_before_or": ("N eq 1 or N eq 2 and Flag eq false", ["n1"]),
    "parentheses": ("(N eq 1 or N eq 2) and Flag eq true", ["n2"]),
    "nested_parentheses": ("(((N eq 1)) or ((N eq 3)))", ["n1", "n3"]), "no_spaces_at_parentheses": ("(N eq 1)or(N eq 3)", ["n1", "n3"]),
    "not_of_parentheses": ("not (N lt 3) and N ge 1", ["n3"]), "not_bare": ("not Flag and N ge 1", ["n1"]),
    "true": ("true and N eq 1", ["n1"]), "false": ("false", []), "many_spaces": ("  N   eq   1  ", ["n1"]),
    "empty": ("", None),
    "type_eq_int": ("V eq 5", ["v-d", "v-i", "v-l"]), "type_eq_string": ("V eq '5'", ["v-s"]),
    "type_ne_string": ("V ne ''", ALL_V), "type_gt_string": ("V gt ''", ["v-s"]),
    "type_lt_string": ("V lt '' and RowKey ne 'v-nan'", ["v-b", "v-d", "v-i", "v-l"]), "nan_lt": ("V lt 1.5 and RowKey eq 'v-nan'", []),
    "nan_ne": ("V ne 1.5 and RowKey eq 'v-nan'", ["v-nan"]),
    "row_key_is_a_string": ("RowKey eq 5", []), "row_key_range": ("RowKey ge 's1' and RowKey lt 's3'", ["s1", "s2"]),
    "row_key_prefix": ("PartitionKey eq 'p' and RowKey ge 'v' and RowKey lt 'w'", ALL_V),
    "point": ("PartitionKey eq 'p' and RowKey eq 'n1'", ["n1"]), "point_and_property": ("PartitionKey eq 'p' and RowKey eq 'n1' and N eq 2", []),
    "keys_by_or": ("(PartitionKey eq 'p' and RowKey eq 's1') or (PartitionKey eq 'p' and RowKey eq 'n1')", ["n1", "s1"]),
    "contradiction": ("RowKey gt 'b' and RowKey lt 'a'", []), "other_partition": ("PartitionKey eq 'q'", []),
    "row_key_ne": ("RowKey ne 'n1' and N ge 1", ["n2", "n3"]), "timestamp": ("Timestamp gt datetime'2001-01-01T00:00:00Z' and N eq 1", ["n1"]),
    "deep": ("(" * 100 + "N eq 1" + ")" * 100, ["n1"]),
}


def selects(text, expected):
    def check():
        table = shared(rows)
        same(table.rows(text), table.rows() if expected is None else expected, "rows")
    return check


for name, (text, expected) in SELECTS.items():
    add(f"filter_{name}", selects(text, expected))


@case
def filter_not_of_a_missing_property():
    assert "bare" in shared(rows).rows("not (N eq 1)"), "the negation of a comparison that is false is not true"


@case
def filter_with_special_characters(table):
    table.insert("+,$", ":@", Chars="?'/!_^#")
    same(table.rows("PartitionKey eq ':@' and RowKey eq '+,$' and Chars eq '?''/!_^#'"), ["+,$"])


@case
def filter_on_table_names(table):
    for text in (f"TableName%20eq%20'{table.name}'", f"TableName%20eq%20'{table.name.upper()}'",
                 f"(TableName%20ge%20'{table.name}')%20and%20(TableName%20le%20'{table.name}')"):
        reply = send("GET", f"/Tables?$filter={text}").expect(200).json()
        same([row["TableName"] for row in reply["value"]], [table.name], text)


@case
def filter_point_without_a_match():
    reply = shared(rows).query("PartitionKey eq 'p' and RowKey eq 'none'").expect(200)
    reply.no_header("x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey")
    same(reply.json()["value"], [])
