"""Entity group transactions as multipart bodies: written in the dialects clients speak, and read back."""

import json
import re
import uuid
from dataclasses import dataclass, field

from report import same
from wire import ENDPOINT, Reply, entity_path, send


@dataclass
class Op:
    """One part of a change set."""
    method: str
    path: str
    body: object = None
    headers: dict = field(default_factory=dict)


def insert(table, row_key, partition_key="p", prefer="return-no-content", **properties):
    body = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
    return Op("POST", f"/{table.name}", body, {"Prefer": prefer} if prefer else {})


def put(table, row_key, etag=None, partition_key="p", method="PUT", **properties):
    """A replace or, by method, a merge; without an ETag the upsert of the same kind."""
    body = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
    return Op(method, entity_path(table.name, partition_key, row_key), body, {"If-Match": etag} if etag else {})


def delete(table, row_key, etag="*", partition_key="p"):
    return Op("DELETE", entity_path(table.name, partition_key, row_key), None, {"If-Match": etag})


@dataclass
class Dialect:
    """What differs between clients; the defaults are those of the current Python SDK."""
    eol: str = "\r\n"
    quoted_boundary: bool = False
    content_length: bool = True
    content_id: str = "mime"  # or "inner", or ""
    base: str = ENDPOINT  # "" writes path-absolute request lines without the account
    closing: bool = True
    inner_headers: dict = field(default_factory=dict)


def body_of(ops, dialect=Dialect()):
    """The bytes of a batch with one change set, and its Content-Type."""
    batch, changeset = f"batch_{uuid.uuid4()}", f"changeset_{uuid.uuid4()}"
    lines = [f"--{batch}", f"Content-Type: multipart/mixed; boundary={changeset}", ""]
    for number, op in enumerate(ops):
        lines += [f"--{changeset}", "Content-Type: application/http", "Content-Transfer-Encoding: binary"]
        if dialect.content_id == "mime":
            lines.append(f"Content-ID: {number}")
        lines += ["", f"{op.method} {dialect.base}{op.path} HTTP/1.1"]
        headers = {"Accept": "application/json;odata=minimalmetadata", "DataServiceVersion": "3.0",
                   **dialect.inner_headers, **op.headers}
        body = b""
        if op.body is not None:
            body = op.body if isinstance(op.body, bytes) else (
                op.body if isinstance(op.body, str) else json.dumps(op.body, ensure_ascii=False)).encode()
            headers["Content-Type"] = headers.get("Content-Type", "application/json")
            if dialect.content_length:
                headers["Content-Length"] = str(len(body))
        if dialect.content_id == "inner":
            headers["Content-ID"] = str(number)
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += ["", body]
    lines += [f"--{changeset}--"] + ([f"--{batch}--", ""] if dialect.closing else [])
    eol = dialect.eol.encode()
    data = eol.join(line if isinstance(line, bytes) else line.encode() for line in lines)
    return data, "multipart/mixed; boundary=" + (f'"{batch}"' if dialect.quoted_boundary else batch)


class BatchReply:
    """The parts of a 202 reply, each a `Reply` of its own."""

    def __init__(self, reply):
        self.reply = reply.expect(202)
        outer = re.fullmatch(r"multipart/mixed; ?boundary=(batchresponse_[-\w]+)", reply["Content-Type"] or "")
        if not outer:
            raise AssertionError(f"Content-Type of the batch reply is {reply['Content-Type']!r}")
        text = reply.body.decode()
        inner = re.search(r"boundary=(changesetresponse_[-\w]+)", text)
        chunks = text.split(f"--{inner[1] if inner else outer[1]}")[1:-1]
        self.parts = [self.part(chunk) for chunk in chunks]

    @staticmethod
    def part(chunk):
        _, _, rest = chunk.partition("\r\n\r\n")
        head, _, body = rest.partition("\r\n\r\n")
        status, *headers = head.strip().split("\r\n")
        found = re.match(r"HTTP/1\.1 (\d+)", status)
        if not found:
            raise AssertionError(f"a part begins with {status!r}")
        pairs = (line.partition(": ")[::2] for line in headers)
        return Reply(int(found[1]), {name.lower(): value for name, value in pairs}, body.strip().encode())

    def succeeded(self, *statuses):
        same([part.status for part in self.parts], list(statuses), "statuses of the parts")
        return self

    def failed(self, status, code, index=None, message=None):
        """Exactly one part, with this error; `index` is the number its message must begin with, or "none"."""
        if len(self.parts) != 1:
            raise AssertionError(f"{len(self.parts)} parts ({[part.status for part in self.parts]}), expected one error")
        part = self.parts[0].expect(status, code, message)
        prefix = re.match(r"(\d+):", part.message)
        if index is not None:
            same(prefix[1] if prefix else "none", str(index), "index before the message")
        return part


def post(ops, dialect=Dialect(), **options):
    """Sends the batch and returns the plain reply."""
    data, content_type = body_of(ops, dialect)
    return send("POST", "/$batch", data, **{"Content_Type": content_type, **options})


def submit(ops, dialect=Dialect(), **options):
    return BatchReply(post(ops, dialect, **options))
