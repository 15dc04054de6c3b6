"""Tables for cases: new for one case, or shared by cases that leave it as it is. All are removed at the end."""

import uuid
from urllib.parse import quote

from wire import entity_path, send

_made = set()


def unique_name(prefix="Raw"):
    return prefix + uuid.uuid4().hex[:20]


class Table:
    """A table by name, with the operations in their plainest form."""

    def __init__(self, name=None):
        self.name = name or unique_name()

    def create(self):
        send("POST", "/Tables", {"TableName": self.name}).expect(201)
        _made.add(self.name)
        return self

    def path(self, partition_key="p", row_key="r"):
        return entity_path(self.name, partition_key, row_key)

    def insert(self, row_key="r", partition_key="p", properties=None, **named):
        """Inserts an entity that must be accepted, and returns its ETag."""
        body = {"PartitionKey": partition_key, "RowKey": row_key, **(properties or {}), **named}
        return send("POST", f"/{self.name}", body, Prefer="return-no-content").expect(204)["ETag"]

    def post(self, body, **headers):
        return send("POST", f"/{self.name}", body, **headers)

    def get(self, row_key="r", partition_key="p", query="", **headers):
        return send("GET", self.path(partition_key, row_key) + query, **headers)

    def put(self, body, row_key="r", partition_key="p", **headers):
        return send("PUT", self.path(partition_key, row_key), body, **headers)

    def patch(self, body, row_key="r", partition_key="p", **headers):
        return send("PATCH", self.path(partition_key, row_key), body, **headers)

    def delete(self, row_key="r", partition_key="p", **headers):
        return send("DELETE", self.path(partition_key, row_key), **{"If_Match": "*", **headers})

    def query(self, filter=None, options="", **headers):
        text = "&".join(part for part in ("$filter=" + quote(filter, safe="") if filter is not None else "", options) if part)
        return send("GET", f"/{self.name}()" + ("?" + text if text else ""), **headers)

    def rows(self, filter=None, options="", **headers):
        """The row keys a query returns."""
        return [row["RowKey"] for row in self.query(filter, options, **headers).expect(200).json()["value"]]

    def stored(self, row_key="r", partition_key="p"):
        """The custom properties of an entity, annotations included; None when it is not there."""
        reply = self.get(row_key, partition_key)
        if reply.status == 404:
            return None
        system = ("odata.metadata", "odata.etag", "PartitionKey", "RowKey", "Timestamp")
        return {name: value for name, value in reply.expect(200).json().items() if name not in system}


_shared = {}


def shared(fill=None):
    """One table for all cases that name the same `fill`; `fill` puts its rows in."""
    if fill not in _shared:
        table = Table().create()
        _shared[fill] = table
        if fill:
            fill(table)
    return _shared[fill]


def remove(name):
    send("DELETE", f"/Tables('{name}')").expect((204, 404))
    _made.discard(name)


def remove_all():
    for name in list(_made):
        remove(name)
    _shared.clear()
