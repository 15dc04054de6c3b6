"""HTTP with the Table service, one request at a time, nothing hidden: signing, sending, and the reply as it came.

Paths are relative to the endpoint and already percent-encoded; they go on the request line as they are.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import re
from email.utils import formatdate
from urllib.parse import quote, urlsplit

ENDPOINT = os.environ["TABLES_ENDPOINT"].rstrip("/")
ACCOUNT = os.environ["TABLES_ACCOUNT"]
KEY = os.environ["TABLES_KEY"]
VERSION = "2019-02-02"

NONE = "application/json;odata=nometadata"
MINIMAL = "application/json;odata=minimalmetadata"
FULL = "application/json;odata=fullmetadata"

_url = urlsplit(ENDPOINT)
PATH_STYLE = _url.path.strip("/") == ACCOUNT


def secondary():
    """The secondary endpoint: the account's name gets the suffix `-secondary`, in the path or in the host."""
    return ENDPOINT.replace(ACCOUNT, ACCOUNT + "-secondary", 1) if not PATH_STYLE else ENDPOINT + "-secondary"


def hmac_sha256(text, key=KEY):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def canonical_resource(path, base=None):
    """`/account`, the path as it stands on the request line, and of the query only `comp`."""
    path, _, query = path.partition("?")
    comp = re.search(r"(?:^|&)comp=([^&]*)", query)
    base = urlsplit(ENDPOINT).path if base is None else base
    return f"/{ACCOUNT}{base}{path}" + (f"?comp={comp[1]}" if comp else "")


def shared_key(method, path, headers, key=KEY, account=ACCOUNT, base=None):
    lower = {name.lower(): value for name, value in headers.items()}
    lines = [method, lower.get("content-md5", ""), lower.get("content-type", ""),
             lower.get("x-ms-date", lower.get("date", "")), canonical_resource(path, base)]
    return f"SharedKey {account}:" + hmac_sha256("\n".join(lines), key)


def shared_key_lite(method, path, headers, key=KEY, account=ACCOUNT, base=None):
    lower = {name.lower(): value for name, value in headers.items()}
    date = lower.get("x-ms-date", lower.get("date", ""))
    return f"SharedKeyLite {account}:" + hmac_sha256(date + "\n" + canonical_resource(path, base), key)


class Reply:
    """Status, headers and body, with a short text of all three for failures."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __getitem__(self, header):
        return self.headers.get(header.lower())

    @property
    def text(self):
        return self.body.decode("utf-8-sig")

    def json(self):
        return json.loads(self.text)

    @property
    def code(self):
        """The error code of a JSON or XML error body, whatever the flavour of the XML."""
        found = re.search(r'"code"\s*:\s*"(\w+)"|<(?:m:)?[Cc]ode>(\w+)<', self.body.decode("utf-8", "replace"))
        return found and (found[1] or found[2])

    @property
    def message(self):
        """The error message without the lines of request id and time."""
        found = re.search(r'"value"\s*:\s*"((?:[^"\\]|\\.)*)"|<(?:m:)?[Mm]essage[^>]*>([^<]*)<', self.text)
        text = json.loads(f'"{found[1]}"') if found and found[1] is not None else (found[2] if found else "")
        return text.split("\nRequestId:")[0]

    def expect(self, status, code=None, message=None):
        """Demands a status, and for errors a code and a message; several values mean any of them."""
        self.demand(self.status in several(status), status, code)
        if code is not None:
            self.demand(self.code in several(code), status, code)
        if message is not None and message not in self.message:
            raise AssertionError(f"message {self.message!r}, expected {message!r}")
        return self

    def demand(self, holds, status, code):
        if not holds:
            got = f"{self.status} {self.code or ''}".strip()
            wanted = f"{status} {code or ''}".strip()
            raise AssertionError(f"got {got}, expected {wanted}; {self.body[:120].decode('utf-8', 'replace')}")

    def header(self, name, value):
        if self[name] != value:
            raise AssertionError(f"header {name}: got {self[name]!r}, expected {value!r}")
        return self

    def no_header(self, *names):
        for name in names:
            if self[name] is not None:
                raise AssertionError(f"header {name}: {self[name]!r}, expected none")
        return self


def several(value):
    return value if isinstance(value, tuple) else (value,)


def send(method, path, body=b"", sign=shared_key, endpoint=ENDPOINT, sas=None, **headers):
    """Sends one request. Header names are written with `_` for `-`; the value None leaves a default header out.

    `sas` is a query string that takes the place of the signature.
    """
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    lower = {name.lower() for name in named}
    defaults = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION, "Accept": MINIMAL}
    if body or method in ("POST", "PUT", "PATCH", "MERGE"):
        defaults["Content-Type"] = "application/json"
        defaults["Content-Length"] = str(len(body))
    named.update((name, value) for name, value in defaults.items() if name.lower() not in lower)
    named = {name: str(value) for name, value in named.items() if value is not None}
    url = urlsplit(endpoint)
    if sas is not None:
        path += ("&" if "?" in path else "?") + sas
    elif sign is not None:
        named["Authorization"] = sign(method, path, named, base=url.path)
    return exchange(url, method, url.path + path, named, body)


def exchange(url, method, target, headers, body):
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.netloc, timeout=60)
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        try:
            connection.endheaders(body or None)
        except (BrokenPipeError, ConnectionResetError):
            pass  # A server may refuse a body before it has read it all; its reply is what counts.
        reply = connection.getresponse()
        # A header that came twice must show as two values, not silently as one.
        found = {}
        for name, value in reply.getheaders():
            found[name.lower()] = f"{found[name.lower()]}, {value}" if name.lower() in found else value
        return Reply(reply.status, found, reply.read())
    finally:
        connection.close()


def encode(text):
    """A key or a query value, percent-encoded for a URL."""
    return quote(text, safe="")


def entity_path(table, partition_key, row_key):
    partition_key, row_key = (encode(key.replace("'", "''")) for key in (partition_key, row_key))
    return f"/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')"
