"""Shared access signatures: permissions per operation, key ranges, addresses, protocols, policies, spoilt tokens."""

import batch
from registry import add, case
from report import same
from sas import account_sas, moment, table_sas
from table import Table, remove, shared, unique_name
from wire import ENDPOINT, PATH_STYLE, VERSION, encode, send

from cases.access_policies import set_policies

DENIED, RANGE, PERMISSION = ((403, code) for code in
                             ("AuthenticationFailed", "AuthorizationFailure", "AuthorizationPermissionMismatch"))

# Operation: the letters it needs, and how to do it on a table that has the entity `there`.
OPERATIONS = {
    "get": ("r", lambda t, sas: t.get("there", sas=sas)),
    "query": ("r", lambda t, sas: t.query(sas=sas)),
    "insert": ("a", lambda t, sas: t.post({"PartitionKey": "p", "RowKey": "new"}, sas=sas)),
    "update": ("u", lambda t, sas: t.put({"A": 2}, "there", If_Match="*", sas=sas)),
    "merge": ("u", lambda t, sas: t.patch({"A": 2}, "there", If_Match="*", sas=sas)),
    "upsert_replace": ("au", lambda t, sas: t.put({"A": 2}, "there", sas=sas)),
    "upsert_merge": ("au", lambda t, sas: t.patch({"A": 2}, "there", sas=sas)),
    "delete": ("d", lambda t, sas: t.delete("there", sas=sas)),
}


def permitted(operation, letters, token):
    """A case: the operation succeeds exactly when the letters cover its need, and changes nothing otherwise."""
    def check():
        need, act = OPERATIONS[operation]
        table = Table().create()
        try:
            table.insert("there", A=1)
            reply = act(table, token(table, letters))
            if set(need) <= set(letters):
                reply.expect((200, 201, 204))
            else:
                reply.expect(*PERMISSION)
                same((table.rows(), table.stored("there")), (["there"], {"A": 1}), "rows and entity afterwards")
        finally:
            remove(table.name)
    return check


for operation in OPERATIONS:
    for letters in ("r", "a", "u", "d", "au", "raud"):
        add(f"sas_table_{letters}_{operation}", permitted(operation, letters, lambda t, sp: table_sas(t.name, sp)))
    for letters in ("r", "a", "u", "d", "au", "wl"):
        add(f"sas_account_{letters}_{operation}", permitted(operation, letters, lambda t, sp: account_sas(sp, srt="o")))


# Account SAS on tables and the service: letters, resource types, request, outcome.
TYPE, SERVICE = (403, "AuthorizationResourceTypeMismatch"), (403, "AuthorizationServiceMismatch")
ACCOUNT_CASES = {
    "list_with_l": ("l", "c", "GET", "/Tables", "", (200,)),
    "list_without_l": ("rwdacu", "c", "GET", "/Tables", "", PERMISSION),
    "list_needs_c": ("l", "so", "GET", "/Tables", "", TYPE),
    "create_without_c_or_w": ("rdlau", "c", "POST", "/Tables", "create", PERMISSION),
    "create_needs_type_c": ("cw", "so", "POST", "/Tables", "create", TYPE),
    "delete_without_d": ("rwlacu", "c", "DELETE", "/Tables('{T}')", "", PERMISSION),
    "delete_needs_type_c": ("d", "so", "DELETE", "/Tables('{T}')", "", TYPE),
    "properties_with_r": ("r", "s", "GET", "/?restype=service&comp=properties", "", (200,)),
    "properties_without_r": ("wdl", "s", "GET", "/?restype=service&comp=properties", "", PERMISSION),
    "properties_need_type_s": ("r", "co", "GET", "/?restype=service&comp=properties", "", TYPE),
    "query_with_o": ("r", "o", "GET", "/{T}()", "", (200,)),
    "query_needs_a_type": ("r", "s", "GET", "/{T}()", "", TYPE),
    "insert_needs_o": ("a", "sc", "POST", "/{T}", '{"PartitionKey":"p","RowKey":"never"}', TYPE),
    "acl_never": ("rwdlacup", "sco", "GET", "/{T}?comp=acl", "", RANGE),
}


def account_case(letters, types, method, path, body, outcome):
    def check():
        name = unique_name()
        text = f'{{"TableName":"{name}"}}' if body == "create" else body
        send(method, path.replace("{T}", shared().name), text, sas=account_sas(letters, srt=types)).expect(*outcome)
    return check


for name, row in ACCOUNT_CASES.items():
    add(f"sas_account_{name}", account_case(*row))


@case
def sas_account_creates_and_deletes():
    for letters in ("cd", "wd"):
        name = unique_name()
        send("POST", "/Tables", {"TableName": name}, sas=account_sas(letters, srt="c")).expect(201)
        send("DELETE", f"/Tables('{name}')", sas=account_sas(letters, srt="c")).expect(204)


@case
def sas_account_of_other_services():
    send("GET", "/Tables", sas=account_sas("l", ss="bqf")).expect(*SERVICE)
    send("GET", "/Tables", sas=account_sas("l", ss="tqb")).expect(200)


@case
def sas_account_versions():
    for version in ("2015-04-05", "2018-03-28", "2020-10-02", "2020-12-06", "2024-11-04", "2026-10-06"):
        send("GET", "/Tables", sas=account_sas("l", sv=version)).expect(200)


@case
def sas_account_in_a_batch(table):
    token = account_sas("a", srt="o")
    batch.submit([batch.insert(table, "a")], sas=token).succeeded(204)
    reply = batch.post([batch.insert(table, "b"), batch.put(table, "c")], sas=token)
    (batch.BatchReply(reply).failed if reply.status == 202 else reply.expect)(*PERMISSION)
    same(table.rows(), ["a"])


# Key ranges: the rows are a1 a2 a3 b1 .. d3; each range with the rows it admits.
RANGES = {
    "inside_one_partition": ({"spk": "b", "srk": "2", "epk": "b", "erk": "3"}, "b2 b3"),
    "across_partitions": ({"spk": "b", "srk": "2", "epk": "d", "erk": "1"}, "b2 b3 c1 c2 c3 d1"),
    "partitions": ({"spk": "b", "epk": "c"}, "b1 b2 b3 c1 c2 c3"),
    "start_only": ({"spk": "c"}, "c1 c2 c3 d1 d2 d3"),
    "start_row_only": ({"spk": "c", "srk": "3"}, "c3 d1 d2 d3"),
    "end_only": ({"epk": "a"}, "a1 a2 a3"),
    "end_row_only": ({"epk": "b", "erk": "1"}, "a1 a2 a3 b1"),
    "empty": ({"spk": "x", "epk": "z"}, ""),
}


def grid(table):
    for partition_key in "abcd":
        batch.submit([batch.insert(table, row_key, partition_key) for row_key in "123"]).succeeded(204, 204, 204)


def restricted(fields, expected):
    def check():
        table = shared(grid)
        token = table_sas(table.name, "r", **fields)

        def found(filter=None):
            return " ".join(row["PartitionKey"] + row["RowKey"] for row in table.query(filter, sas=token).expect(200).json()["value"])

        same(found(), expected, "rows of a query")
        same(found("RowKey eq '2'"), " ".join(row for row in expected.split() if row[1] == "2"), "rows of a filter")
        same(found("RowKey eq '1' or PartitionKey ge ''"), expected, "rows of a filter with or")
        for row in ("a1", "b2", "b3", "c1", "d3"):
            reply = table.get(row[1], row[0], sas=token)
            reply.expect(200) if row in expected.split() else reply.expect(*RANGE)
    return check


for name, (fields, expected) in RANGES.items():
    add(f"sas_range_{name}", restricted(fields, expected))


@case
def sas_range_writes(table):
    table.insert("1", "a", A=1)
    table.insert("1", "b", A=1)
    token = table_sas(table.name, spk="b", srk="1", epk="b", erk="5")
    for row_key, partition_key, allowed in (("1", "b", True), ("1", "a", False)):
        for reply in (table.put({"A": 2}, row_key, partition_key, If_Match="*", sas=token),
                      table.patch({"A": 3}, row_key, partition_key, If_Match="*", sas=token),
                      table.put({"A": 4}, row_key, partition_key, sas=token), table.patch({"A": 5}, row_key, partition_key, sas=token),
                      table.delete(row_key, partition_key, sas=token)):
            reply.expect(204) if allowed else reply.expect(*RANGE)
    same(table.stored("1", "a"), {"A": 1})
    table.post({"PartitionKey": "b", "RowKey": "5"}, sas=token).expect(201)
    for partition_key, row_key in (("b", "6"), ("b", "0"), ("b", "51"), ("a", "3"), ("c", "3"), ("", ""), ("B", "3")):
        reply = table.post({"PartitionKey": partition_key, "RowKey": row_key}, sas=token)
        reply.expect(*RANGE, "This request is not authorized to perform this operation.").header("x-ms-version", VERSION)
    same(table.rows(), ["1", "5"])


@case
def sas_range_update_by_body_keys(table):
    # The URL names the entity; keys in the body must not carry the write out of the range.
    token = table_sas(table.name, spk="b", epk="b")
    table.put({"PartitionKey": "z", "RowKey": "1"}, "1", "b", sas=token)
    same(table.get("1", "z").status, 404, "status of the entity outside")


@case
def sas_range_in_a_batch(table):
    token = table_sas(table.name, spk="p", srk="b", epk="p", erk="d")
    batch.submit([batch.insert(table, "b"), batch.put(table, "c")], sas=token).succeeded(204, 204)
    for outside in (batch.insert(table, "e"), batch.put(table, "a"), batch.put(table, "e", method="MERGE"), batch.delete(table, "a")):
        reply = batch.post([batch.insert(table, "d"), outside], sas=token)
        (batch.BatchReply(reply).failed if reply.status == 202 else reply.expect)(*RANGE)
    same(table.rows(), ["b", "c"])


@case
def sas_range_and_paging():
    table = shared(grid)
    token = table_sas(table.name, "r", spk="b", srk="2", epk="c", erk="1")
    reply = table.query(options="$top=1", sas=token).expect(200)
    position = "&".join(f"{name}={encode(reply['x-ms-continuation-' + name])}" for name in ("NextPartitionKey", "NextRowKey"))
    same(table.rows(options=position, sas=token), ["3", "1"])
    # A token made outside the range, here by the key, must not reach out of it.
    outside = table.query(options="$top=10")
    position = "&".join(f"{name}={encode(outside['x-ms-continuation-' + name])}" for name in ("NextPartitionKey", "NextRowKey"))
    same(table.rows(options=position, sas=token), [])


@case
def sas_range_without_partition_is_invalid():
    table = shared(grid)
    for fields in ({"srk": "1"}, {"erk": "1"}):
        table.query(sas=table_sas(table.name, "r", **fields)).expect((400, 403))


# Batches with a table SAS need the union of their operations' permissions.
@case
def sas_permissions_in_a_batch(table):
    table.insert("there")
    for letters, operation, allowed in (("a", batch.insert(table, "n1"), True), ("r", batch.insert(table, "n2"), False),
                                        ("u", batch.put(table, "there", "*"), True), ("a", batch.put(table, "there", "*"), False),
                                        ("a", batch.put(table, "there"), False), ("u", batch.put(table, "n3"), False),
                                        ("au", batch.put(table, "n4"), True), ("au", batch.delete(table, "there"), False),
                                        ("d", batch.delete(table, "there"), True)):
        reply = batch.post([operation], sas=table_sas(table.name, letters))
        if allowed:
            batch.BatchReply(reply).succeeded(204)
        else:
            (batch.BatchReply(reply).failed if reply.status == 202 else reply.expect)(*PERMISSION)
    same(table.rows(), ["n1", "n4"])


@case
def sas_batch_on_another_table(table):
    other = Table().create()
    try:
        reply = batch.post([batch.insert(other, "a")], sas=table_sas(table.name))
        (batch.BatchReply(reply).parts[0] if reply.status == 202 else reply).expect((400, 403))
        same(other.rows(), [])
    finally:
        remove(other.name)


@case
def sas_inside_the_parts(table):
    # Legacy clients append the token to the URL of each part as well.
    token = table_sas(table.name)
    operations = [batch.insert(table, "a"), batch.put(table, "b")]
    for operation in operations:
        operation.path += "?" + token
    batch.submit(operations, sas=token).succeeded(204, 204)
    same(table.rows(), ["a", "b"])


# Fields of the token on a query of a table with read permission: fields, outcome.
FIELDS = {
    "plain": ({}, (200,)),
    "address_any": ({"sip": "0.0.0.0-255.255.255.255"}, (200,)),
    "address_other": ({"sip": "192.0.2.1"}, (403, "AuthorizationSourceIPMismatch")),
    "address_other_range": ({"sip": "192.0.2.1-192.0.2.9"}, (403, "AuthorizationSourceIPMismatch")),
    "protocol_both": ({"spr": "https,http"}, (200,)),
    "started": ({"st": moment(-600)}, (200,)),
    "not_started": ({"st": moment(600)}, DENIED),
    "expired": ({"se": moment(-60)}, DENIED),
    "expired_long_ago": ({"se": "2020-01-01"}, DENIED),
    "expiry_missing": ({"se": None}, DENIED),
    "permissions_missing": ({"sp": None}, DENIED),
    "expiry_word": ({"se": "tomorrow"}, DENIED),
    "expiry_day": ({"se": "2099-12-31"}, (200,)),
    "expiry_minutes": ({"se": "2099-12-31T23:59Z"}, (200,)),
    "expiry_fraction": ({"se": "2099-12-31T23:59:59.1234567Z"}, (200,)),
    "order_of_letters": ({"sp": "dur"}, (200,)),
    "unknown_policy": ({"sp": None, "se": None, "si": "nosuch"}, DENIED),
    "version_2012": ({"sv": "2012-02-12"}, (200,)),
    "version_2014": ({"sv": "2014-02-14"}, (200,)),
    "version_2015": ({"sv": "2015-04-05"}, (200,)),
    "version_2026": ({"sv": "2026-10-06"}, (200,)),
    "wrong_key": ({"key": "d3Jvbmc="}, DENIED),
}
if PATH_STYLE and ENDPOINT.startswith("http:"):
    FIELDS["protocol_https_only"] = ({"spr": "https"}, (403, "AuthorizationProtocolMismatch"))
    FIELDS["address_loopback"] = ({"sip": "127.0.0.1"}, (200,))


def field_case(fields, outcome):
    def check():
        table = shared(grid)
        table.query(options="$top=1", sas=table_sas(table.name, **{"sp": "r", **fields})).expect(*outcome)
    return check


for name, (fields, outcome) in FIELDS.items():
    add(f"sas_{name}", field_case(fields, outcome))

# A right token, spoilt after signing: a text and what takes its place.
SPOILT = {
    "permissions_raised": ("sp=r", "sp=raud"), "expiry_moved": ("se=2", "se=3"), "range_added": ("sp=r", "sp=r&epk=z"),
    "version_moved": ("sv=2019", "sv=2018"), "signature_missing": ("sig=", "gis="), "signature_cut": ("%3D", ""),
    "permissions_doubled": ("sp=r", "sp=r&sp=raud"), "permissions_doubled_before": ("sp=r", "sp=raud&sp=r"),
    "expiry_doubled": ("se=", "se=2099-01-01&se="), "table_doubled": ("tn=", "tn=other&tn="),
    "signature_doubled": ("sig=", "sig=x&sig="), "range_lifted": ("epk=b", "epk="), "range_removed": ("&epk=b", ""),
}


def spoilt(old, new):
    def check():
        table = shared(grid)
        fields = {"epk": "b"} if old.endswith("epk=b") else {}
        token = table_sas(table.name, "r", **fields)
        assert old in token, "nothing to spoil"
        table.query(sas=token.replace(old, new, 1)).expect((400, 401, 403))
    return check


for name, (old, new) in SPOILT.items():
    add(f"sas_spoilt_{name}", spoilt(old, new))


@case
def sas_case_of_the_table_name():
    table = shared(grid)
    for spelled in (table.name.upper(), table.name.lower()):
        table.query(sas=table_sas(spelled, "r")).expect(200)
        send("GET", f"/{spelled}()", sas=table_sas(table.name, "r")).expect(200)


@case
def sas_of_another_table(table):
    send("GET", f"/{table.name}()", sas=table_sas(shared(grid).name, "r")).expect(*DENIED)


@case
def sas_table_on_tables(table):
    token = table_sas(table.name)
    send("GET", "/Tables", sas=token).expect(*RANGE)
    send("POST", "/Tables", {"TableName": unique_name()}, sas=token).expect(*RANGE)
    send("DELETE", f"/Tables('{table.name}')", sas=token).expect(*RANGE)


@case
def sas_table_on_policies():
    table = shared(grid)
    send("GET", f"/{table.name}?comp=acl", sas=table_sas(table.name)).expect(*RANGE)
    send("PUT", f"/{table.name}?comp=acl", sas=table_sas(table.name)).expect(*RANGE)


@case
def sas_without_version_header():
    table = shared(grid)
    table.query(sas=table_sas(table.name, "r"), x_ms_version=None).expect(200)
    table.query(options="api-version=2019-02-02", sas=table_sas(table.name, "r"), x_ms_version=None).expect(200)


# Stored access policies.
def policy(fields, token, allowed):
    """A case: with this policy, a token with these fields may or may not read."""
    def check():
        table = Table().create()
        try:
            set_policies(table, "<SignedIdentifier><Id>one</Id><AccessPolicy>" + "".join(
                f"<{name}>{value}</{name}>" for name, value in fields.items()) + "</AccessPolicy></SignedIdentifier>").expect(204)
            reply = table.query(sas=table_sas(table.name, **{"sp": None, "se": None, "si": "one", **token}))
            reply.expect(200) if allowed else reply.expect(403)
        finally:
            remove(table.name)
    return check


LATER, EARLIER = moment(3600), moment(-3600)
add("sas_policy_full", policy({"Start": EARLIER, "Expiry": LATER, "Permission": "r"}, {}, True))
add("sas_policy_without_start", policy({"Expiry": LATER, "Permission": "raud"}, {}, True))
add("sas_policy_lacks_permission", policy({"Expiry": LATER, "Permission": "a"}, {}, False))
add("sas_policy_expired", policy({"Expiry": EARLIER, "Permission": "r"}, {}, False))
add("sas_policy_not_started", policy({"Start": LATER, "Expiry": moment(7200), "Permission": "r"}, {}, False))
add("sas_policy_permission_in_token", policy({"Expiry": LATER}, {"sp": "r"}, True))
add("sas_policy_expiry_in_token", policy({"Permission": "r"}, {"se": LATER}, True))
add("sas_policy_all_in_token", policy({}, {"sp": "r", "se": LATER}, True))
add("sas_policy_nothing_anywhere", policy({}, {}, False))
add("sas_policy_no_expiry_anywhere", policy({"Permission": "r"}, {}, False))
add("sas_policy_permission_in_both", policy({"Expiry": LATER, "Permission": "r"}, {"sp": "r"}, False))
add("sas_policy_expiry_in_both", policy({"Expiry": LATER, "Permission": "r"}, {"se": LATER}, False))
add("sas_policy_of_another_name", policy({"Expiry": LATER, "Permission": "r"}, {"si": "two"}, False))


@case
def sas_policy_changes_take_effect(table):
    def permission(letters):
        set_policies(table, f"<SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>{LATER}</Expiry>"
                            f"<Permission>{letters}</Permission></AccessPolicy></SignedIdentifier>").expect(204)
    token = table_sas(table.name, None, se=None, si="one")
    permission("r")
    table.query(sas=token).expect(200)
    permission("a")
    table.query(sas=token).expect(*PERMISSION)
    set_policies(table, "").expect(204)
    table.query(sas=token).expect(*DENIED)
