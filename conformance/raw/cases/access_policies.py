"""Stored access policies as XML, both ways."""

from registry import add, case
from report import same
from table import Table, remove, unique_name
from wire import send, shared_key_lite

XML = {"Accept": "application/xml", "Content_Type": "application/xml"}
START = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>'
INVALID = (400, "InvalidXmlDocument")


def put_xml(table, body):
    return send("PUT", f"/{table.name}?comp=acl", body, **XML)


def set_policies(table, identifiers):
    return put_xml(table, f'<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>{identifiers}</SignedIdentifiers>')


def get_policies(table):
    return send("GET", f"/{table.name}?comp=acl", Accept="application/xml").expect(200)


def identifier(name, policy):
    return f"<SignedIdentifier><Id>{name}</Id>{policy}</SignedIdentifier>"


# What is sent, and what is read back.
FULL = ("<AccessPolicy><Start>2026-01-01T00:00:00.0000000Z</Start><Expiry>2026-02-01T00:00:00.0000000Z</Expiry>"
        "<Permission>raud</Permission></AccessPolicy>")
ROUND_TRIPS = {
    "full": (FULL, FULL),
    "days": ("<AccessPolicy><Start>2026-01-01</Start><Expiry>2026-02-01</Expiry><Permission>raud</Permission></AccessPolicy>", FULL),
    "seconds": ("<AccessPolicy><Expiry>2026-02-01T00:00:00Z</Expiry></AccessPolicy>",
                "<AccessPolicy><Expiry>2026-02-01T00:00:00.0000000Z</Expiry></AccessPolicy>"),
    "fraction": ("<AccessPolicy><Start>2026-02-01T01:02:03.123Z</Start></AccessPolicy>",
                 "<AccessPolicy><Start>2026-02-01T01:02:03.1230000Z</Start></AccessPolicy>"),
    "permission_only": ("<AccessPolicy><Permission>r</Permission></AccessPolicy>", "<AccessPolicy><Permission>r</Permission></AccessPolicy>"),
    "empty_policy": ("<AccessPolicy/>", ""),
    "no_policy": ("", ""),
}


def round_trip(sent, expected):
    def check():
        table = Table().create()
        try:
            reply = set_policies(table, identifier("one", sent)).expect(204)
            same(reply.body, b"", "body")
            same(get_policies(table).body, START + f"<SignedIdentifiers>{identifier('one', expected)}</SignedIdentifiers>".encode(), "body")
        finally:
            remove(table.name)
    return check


for name, (sent, expected) in ROUND_TRIPS.items():
    add(f"acl_{name}", round_trip(sent, expected))

BAD = {
    "six": "".join(identifier(f"id{n}", FULL) for n in range(6)),
    "long_id": identifier("x" * 65, FULL),
    "unclosed": "<SignedIdentifier>",
    "bad_date": identifier("a", "<AccessPolicy><Start>tomorrow</Start></AccessPolicy>"),
    "bad_permission": identifier("a", "<AccessPolicy><Permission>xyz</Permission></AccessPolicy>"),
}


def refused(body, codes):
    def check():
        table = Table().create()
        try:
            set_policies(table, identifier("kept", FULL)).expect(204)
            set_policies(table, body).expect(400, codes)
            assert b"<Id>kept</Id>" in get_policies(table).body, "the refused document changed the policies"
        finally:
            remove(table.name)
    return check


for name, body in BAD.items():
    strict = name in ("six", "long_id", "unclosed")
    add(f"acl_refused_{name}", refused(body, "InvalidXmlDocument" if strict else ("InvalidXmlDocument", "InvalidXmlNodeValue")))


@case
def acl_not_xml(table):
    for body in ("hello", "<a>", "<SignedIdentifiers>", '{"a":1}'):
        put_xml(table, body).expect(*INVALID)


@case
def acl_of_a_new_table(table):
    reply = get_policies(table)
    same(reply.body, START + b"<SignedIdentifiers />", "body")
    reply.header("Content-Type", "application/xml").no_header("Cache-Control")


@case
def acl_five_in_order(table):
    set_policies(table, "".join(identifier(f"id{n}", FULL) for n in range(5))).expect(204)
    text = get_policies(table).text
    same([text.count(f"<Id>id{n}</Id>") for n in range(5)], [1] * 5)


@case
def acl_id_of_64_characters(table):
    set_policies(table, identifier("x" * 64, FULL)).expect(204)


@case
def acl_escapes(table):
    set_policies(table, identifier("a&amp;b&lt;c&#233;", FULL)).expect(204)
    assert "<Id>a&amp;b&lt;cé</Id>" in get_policies(table).text, get_policies(table).text


@case
def acl_cleared(table):
    for body in ("", '<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers />'):
        set_policies(table, identifier("one", FULL)).expect(204)
        put_xml(table, body).expect(204)
        assert get_policies(table).text.endswith("<SignedIdentifiers />"), f"policies are left after {body!r}"


@case
def acl_with_shared_key_lite(table):
    send("GET", f"/{table.name}?comp=acl", sign=shared_key_lite, Accept="application/xml").expect(200)


@case
def acl_of_a_missing_table():
    for method in ("GET", "PUT"):
        send(method, f"/{unique_name()}?comp=acl", **XML).expect(404, ("TableNotFound", "ResourceNotFound"))


@case
def acl_of_a_bad_table_name():
    reply = send("GET", "/ab?comp=acl", Accept="application/xml").expect(400, "OutOfRangeInput")
    reply.header("Content-Type", "application/xml").header("x-ms-error-code", "OutOfRangeInput")


@case
def acl_does_not_survive_its_table(table):
    set_policies(table, identifier("one", FULL)).expect(204)
    send("DELETE", f"/Tables('{table.name}')").expect(204)
    table.create()
    assert b"<Id>" not in get_policies(table).body, "a new table has policies"
