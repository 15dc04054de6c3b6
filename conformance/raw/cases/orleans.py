"""What Microsoft Orleans asks of a table: membership, reminders, grain storage."""

from batch import insert, put, submit
from registry import case
from report import same
from wire import NONE, encode, send

CLUSTER = "cluster-1"
VERSION_ROW = "VersionRow"


def membership(table):
    """A cluster with its version row and one silo; returns both ETags."""
    submit([insert(table, VERSION_ROW, CLUSTER, MembershipVersion=0)]).succeeded(204)
    first = submit([insert(table, "10.0.0.1-11111-1", CLUSTER, Status="Active"),
                    put(table, VERSION_ROW, "*", CLUSTER, MembershipVersion=1)]).succeeded(204, 204)
    return first.parts[0]["ETag"], first.parts[1]["ETag"]


@case
def orleans_membership_update(table):
    silo, version = membership(table)
    submit([put(table, "10.0.0.1-11111-1", silo, CLUSTER, Status="Dead"),
            put(table, VERSION_ROW, version, CLUSTER, MembershipVersion=2)]).succeeded(204, 204)
    same((table.stored("10.0.0.1-11111-1", CLUSTER)["Status"], table.stored(VERSION_ROW, CLUSTER)["MembershipVersion"]), ("Dead", 2))


@case
def orleans_membership_stale_version(table):
    silo, version = membership(table)
    table.put({"MembershipVersion": 5}, VERSION_ROW, CLUSTER, If_Match=version).expect(204)
    submit([put(table, "10.0.0.1-11111-1", silo, CLUSTER, Status="Dead"),
            put(table, VERSION_ROW, version, CLUSTER, MembershipVersion=2)]).failed(412, "UpdateConditionNotSatisfied", 1)
    same(table.stored("10.0.0.1-11111-1", CLUSTER)["Status"], "Active")


@case
def orleans_membership_join_twice(table):
    _, version = membership(table)
    submit([insert(table, "10.0.0.1-11111-1", CLUSTER, Status="Joining"),
            put(table, VERSION_ROW, version, CLUSTER, MembershipVersion=2)]).failed(409, "EntityAlreadyExists", 0)
    same(table.stored(VERSION_ROW, CLUSTER)["MembershipVersion"], 1)


@case
def orleans_membership_read(table):
    membership(table)
    same(sorted(table.rows(f"PartitionKey eq '{CLUSTER}'")), ["10.0.0.1-11111-1", VERSION_ROW])
    same(table.rows(f"(PartitionKey eq '{CLUSTER}') and ((RowKey eq '10.0.0.1-11111-1') or (RowKey eq '{VERSION_ROW}'))"),
         ["10.0.0.1-11111-1", VERSION_ROW])


@case
def orleans_filter_of_hundreds_of_rows(table):
    # Statistics and streams join hundreds of row keys by or; the URL grows to about 30 KB.
    keys = [f"silo-{n:04}.orleans.internal-11111-{1700000000 + n}" for n in range(400)]
    for start in range(0, 400, 100):
        submit([insert(table, key, CLUSTER) for key in keys[start:start + 100]])
    text = f"PartitionKey eq '{CLUSTER}' and (" + " or ".join(f"RowKey eq '{key}'" for key in keys) + ")"
    assert 28000 < len(encode(text)) < 31000, f"the filter has {len(encode(text))} characters"
    same(table.rows(text), sorted(keys))


@case
def orleans_filter_of_hundreds_of_nested_rows(table):
    # The LINQ provider nests one pair of parentheses per term.
    keys = [f"r{n:03}" for n in range(150)]
    for start in (0, 100):
        submit([insert(table, key) for key in keys[start:start + 100]])
    text = f"(RowKey eq '{keys[0]}')"
    for key in keys[1:]:
        text = f"({text} or (RowKey eq '{key}'))"
    same(table.rows(f"(PartitionKey eq 'p') and {text}"), keys)


@case
def orleans_reminder_ranges(table):
    # Reminders are partitioned by the hash of the grain; a silo reads the half-open ranges it owns.
    partitions = [f"service_{n:08X}" for n in (0x0, 0x10, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)]
    for partition_key in partitions:
        table.insert("grain-reminder", partition_key)

    def owned(text):
        return [row["PartitionKey"] for row in table.query(text).expect(200).json()["value"]]

    same(owned("PartitionKey gt 'service_00000000' and PartitionKey le 'service_80000000'"), partitions[1:4])
    same(owned("((PartitionKey gt 'service_7FFFFFFF') and (PartitionKey lt 'service_g')) or "
               "((PartitionKey gt 'service_') and (PartitionKey le 'service_00000010'))"), [*partitions[:2], *partitions[3:]])
    same(owned("PartitionKey gt 'service_' and PartitionKey lt 'service`'"), partitions)


@case
def orleans_empty_row_key(table):
    table.insert("", "grain", State="x")
    same(send("GET", f"/{table.name}(PartitionKey='grain',RowKey='')").expect(200).json()["State"], "x")
    etag = table.put({"State": "y"}, "", "grain", If_Match="*").expect(204)["ETag"]
    same(table.rows("PartitionKey eq 'grain' and RowKey eq ''"), [""])
    table.delete("", "grain", If_Match=etag).expect(204)


@case
def orleans_select_of_a_missing_column(table):
    table.insert("a", Data="x")
    table.insert("b")
    same(table.query(options="$select=RowKey,Data", Accept=NONE).expect(200).json()["value"],
         [{"RowKey": "a", "Data": "x"}, {"RowKey": "b", "Data": None}])
