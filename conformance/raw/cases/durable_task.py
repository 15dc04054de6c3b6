"""What the Durable Task framework asks of a table: history in batches guarded by a sentinel row, and the instances table."""

from batch import delete, insert, put, submit
from registry import case
from report import same

INSTANCE = "instance-1"
SENTINEL = "sentinel"


def events(table, first, count):
    return [insert(table, f"{n:016X}", INSTANCE, EventType="TaskCompleted", Result="{}") for n in range(first, first + count)]


def sentinel(table, etag=None, **properties):
    """The sentinel is inserted with the first batch and merged under its ETag with every later one."""
    if etag is None:
        return insert(table, SENTINEL, INSTANCE, ExecutionId="e1", **properties)
    return put(table, SENTINEL, etag, INSTANCE, method="MERGE", ExecutionId="e1", **properties)


@case
def durable_history_grows_under_the_sentinel(table):
    reply = submit(events(table, 0, 20) + [sentinel(table)]).succeeded(*[204] * 21)
    reply = submit(events(table, 20, 99) + [sentinel(table, reply.parts[-1]["ETag"], IsCheckpointComplete=True)])
    reply.succeeded(*[204] * 100)
    found = table.rows(f"PartitionKey eq '{INSTANCE}'")
    same((len(found), found[-1]), (120, SENTINEL))


@case
def durable_history_lost_race(table):
    # Another worker wrote history meanwhile: 412 at the sentinel, inside a 202, and none of the events.
    etag = submit(events(table, 0, 3) + [sentinel(table)]).succeeded(204, 204, 204, 204).parts[-1]["ETag"]
    submit(events(table, 3, 1) + [sentinel(table, etag)]).succeeded(204, 204)
    submit(events(table, 10, 5) + [sentinel(table, etag)]).failed(412, "UpdateConditionNotSatisfied", 5)
    same(len(table.rows()), 5, "rows")


@case
def durable_history_started_twice(table):
    # Two workers start the same instance: 409 inside a 202 for the slower one.
    submit(events(table, 0, 3) + [sentinel(table)]).succeeded(204, 204, 204, 204)
    submit(events(table, 5, 2) + [sentinel(table)]).failed(409, "EntityAlreadyExists", 2)
    same(len(table.rows()), 4, "rows")


@case
def durable_history_read_in_order(table):
    submit(events(table, 0, 50) + [sentinel(table)])
    same(table.rows(f"PartitionKey eq '{INSTANCE}' and RowKey ge '{2:016X}' and RowKey le '{4:016X}'"), [f"{n:016X}" for n in (2, 3, 4)])
    reply = table.query(f"PartitionKey eq '{INSTANCE}' and RowKey eq '{SENTINEL}'", "$select=ExecutionId,RowKey").expect(200)
    same(reply.json()["value"][0]["ExecutionId"], "e1")


@case
def durable_instances(table):
    # The instances table: an upsert by merge, then a merge under If-Match *, then a query by status and time.
    path = {"row_key": "", "partition_key": INSTANCE}
    started = {"CreatedTime@odata.type": "Edm.DateTime", "CreatedTime": "2024-05-06T07:08:09.1234567Z"}
    table.patch({"RuntimeStatus": "Pending", "Name": "f", **started}, **path).expect(204)
    table.patch({"RuntimeStatus": "Running"}, **path, If_Match="*").expect(204)
    same(table.stored("", INSTANCE), {"RuntimeStatus": "Running", "Name": "f", **started})
    text = ("(CreatedTime ge datetime'2024-05-06T07:08:09.1234567Z') and ((RuntimeStatus eq 'Running') or (RuntimeStatus eq 'Pending'))"
            " and (PartitionKey ge 'inst' and PartitionKey lt 'insu')")
    same(table.rows(text), [""])
    table.patch({}, "", "instance-2", If_Match="*").expect(404, "ResourceNotFound")


@case
def durable_purge(table):
    submit(events(table, 0, 99)).succeeded(*[204] * 99)
    rows = table.query(f"PartitionKey eq '{INSTANCE}'", "$select=RowKey").json()["value"]
    submit([delete(table, row["RowKey"], row["odata.etag"], INSTANCE) for row in rows]).succeeded(*[204] * 99)
    same(table.rows(), [])
