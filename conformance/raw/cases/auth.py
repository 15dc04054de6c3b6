"""Shared Key and Shared Key Lite, and what is said to those who fail."""

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from urllib.parse import urlsplit

from registry import add, case
from report import same
from table import shared
from wire import ACCOUNT, NONE, PATH_STYLE, send, secondary, shared_key, shared_key_lite

REFUSED = (403, "AuthenticationFailed")
MESSAGE = "Server failed to authenticate the request."


def date(minutes):
    return format_datetime(datetime.now(timezone.utc) + timedelta(minutes=minutes), usegmt=True)


def signed_with(scheme=shared_key, **changes):
    """A signer that differs from the right one in one respect."""
    return lambda *args, **kwargs: scheme(*args, **{**kwargs, **changes})


def header(value):
    return lambda *args, **kwargs: value


WRONG_KEY = "d3Jvbmcga2V5"
ACCEPTED = {
    "shared_key": {},
    "shared_key_lite": {"sign": shared_key_lite},
    "date_header_alone": {"x_ms_date": None, "Date": date(0)},
    "date_header_alone_lite": {"x_ms_date": None, "Date": date(0), "sign": shared_key_lite},
    "ms_date_wins_over_date": {"Date": date(-600)},
    "ten_minutes_slow": {"x_ms_date": date(-10)},
    "json_content_type": {"Content_Type": "application/json;odata=nometadata"},
}
for name, options in ACCEPTED.items():
    def accepted(options=options):
        send("GET", f"/{shared().name}()", **options).expect(200)
    add(f"auth_{name}", accepted)

DENIED = {
    "wrong_key": {"sign": signed_with(key=WRONG_KEY)},
    "wrong_key_lite": {"sign": signed_with(shared_key_lite, key=WRONG_KEY)},
    "wrong_account": {"sign": signed_with(account="nosuchaccount")},
    "signature_cut": {"sign": lambda *args, **kwargs: shared_key(*args, **kwargs)[:-8]},
    "signature_empty": {"sign": header(f"SharedKey {ACCOUNT}:")},
    "lite_signature_as_shared_key": {"sign": lambda *args, **kwargs: shared_key_lite(*args, **kwargs).replace("Lite", "")},
    "twenty_minutes_slow": {"x_ms_date": date(-20)},
    "twenty_minutes_fast": {"x_ms_date": date(20)},
    "no_date": {"x_ms_date": None},
    "bad_date": {"x_ms_date": "yesterday"},
}
for name, options in DENIED.items():
    def denied(options=options):
        status, code = REFUSED
        if options.get("x_ms_date", "") is None:
            status, code = (403, 400), ("AuthenticationFailed", "InvalidAuthenticationInfo", "MissingRequiredHeader")
        send("GET", f"/{shared().name}()", **options).expect(status, code)
    add(f"auth_denied_{name}", denied)

for name, value in {"unknown_scheme": "Basic Zm9vOmJhcg==", "no_signature": "SharedKey", "no_account": "SharedKey abc", "word": "x"}.items():
    def malformed(value=value):
        send("GET", f"/{shared().name}()", sign=header(value)).expect(
            (400, 403), ("InvalidAuthenticationInfo", "AuthenticationFailed"))
    add(f"auth_malformed_{name}", malformed)


@case
def auth_content_type_is_signed():
    def other_type(method, path, headers, **kwargs):
        return shared_key(method, path, {**headers, "Content-Type": "text/plain"}, **kwargs)
    send("POST", f"/{shared().name}", {"PartitionKey": "p", "RowKey": "auth"}, sign=other_type).expect(*REFUSED)


@case
def auth_method_is_signed():
    send("DELETE", shared().path(), sign=lambda method, *args, **kwargs: shared_key("GET", *args, **kwargs), If_Match="*").expect(*REFUSED)


@case
def auth_path_is_signed():
    send("GET", f"/{shared().name}()", sign=lambda method, path, *args, **kwargs: shared_key(
        method, "/Tables", *args, **kwargs)).expect(*REFUSED)


@case
def auth_comp_is_signed(table):
    send("GET", f"/{table.name}?comp=acl").expect(200)
    send("GET", f"/{table.name}?comp=acl", sign=lambda method, path, *args, **kwargs: shared_key(
        method, f"/{table.name}", *args, **kwargs)).expect(*REFUSED)


@case
def auth_escaped_path(table):
    table.insert("a b'~()!*é", "p")
    for scheme in (shared_key, shared_key_lite):
        for path in ("(PartitionKey='p',RowKey='a%20b''~()!*%C3%A9')", "(PartitionKey=%27p%27,RowKey=%27a%20b%27%27%7E%28%29%21%2A%C3%A9%27)"):
            send("GET", f"/{table.name}{path}", sign=scheme).expect(200)


@case
def auth_nothing_given():
    send("GET", f"/{shared().name}()", sign=None, x_ms_version="2020-12-06").expect(401, "NoAuthenticationInformation")


@case
def auth_nothing_given_to_an_old_version():
    send("GET", f"/{shared().name}()", sign=None, x_ms_version="2019-02-02").expect((401, 403, 404))


@case
def auth_failure_json():
    reply = send("GET", f"/{shared().name}()", sign=signed_with(key=WRONG_KEY), Accept=NONE, x_ms_client_request_id="c1")
    reply.expect(*REFUSED, MESSAGE).header("x-ms-error-code", "AuthenticationFailed").header("Content-Type", "application/json")
    reply.no_header("x-ms-version", "x-ms-client-request-id", "Cache-Control", "X-Content-Type-Options")
    assert reply.text.startswith('{"odata.error":{"code":"AuthenticationFailed","message":{"lang":"en-US","value":"'), reply.text


@case
def auth_failure_xml():
    reply = send("GET", "/?restype=service&comp=properties", sign=signed_with(key=WRONG_KEY), Accept="application/xml")
    reply.expect(*REFUSED, MESSAGE).header("x-ms-error-code", "AuthenticationFailed").header("Content-Type", "application/xml")
    assert "<m:error " in reply.text and not reply.body.startswith(b"\xef\xbb\xbf"), reply.text


@case
def auth_failure_writes_nothing(table):
    wrong = signed_with(key=WRONG_KEY)
    table.insert(A=1)
    table.put({"A": 2}, sign=wrong).expect(*REFUSED)
    table.delete(sign=wrong).expect(*REFUSED)
    table.post({"PartitionKey": "p", "RowKey": "new"}, sign=wrong).expect(*REFUSED)
    send("DELETE", f"/Tables('{table.name}')", sign=wrong).expect(*REFUSED)
    same((table.stored(), table.rows()), ({"A": 1}, ["r"]))


# The secondary endpoint. Path style: clients sign the path as sent or with the account's plain name.
@case
def secondary_reads(table):
    table.insert(A=1)
    bases = {urlsplit(secondary()).path}
    if PATH_STYLE:
        bases.add("/" + ACCOUNT)
    for base in bases:
        for scheme in (shared_key, shared_key_lite):
            def sign(method, path, headers, **_):
                return scheme(method, path, headers, base=base)
            send("GET", table.path(), endpoint=secondary(), sign=sign).expect(200)


@case
def secondary_refuses_writes(table):
    table.insert(A=1)
    for method, path, body in (("POST", f"/{table.name}", '{"PartitionKey":"p","RowKey":"new"}'), ("PUT", table.path(), "{}"),
                               ("DELETE", table.path(), ""), ("POST", "/Tables", '{"TableName":"neverthere"}')):
        send(method, path, body, endpoint=secondary(), If_Match=None if method == "POST" else "*").expect(
            403, "InsufficientAccountPermissions")
    same((table.stored(), table.rows()), ({"A": 1}, ["r"]))
