"""If-Match: which request with which tag does what to an entity that is there or not."""

from registry import add, case
from report import same
from table import Table, remove
from wire import send

STALE = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""

NOT_FOUND, STALE_TAG = (404, "ResourceNotFound"), (412, "UpdateConditionNotSatisfied")
OUTCOMES = {
    # (verb, tag): outcome when the entity is absent, when it is there
    ("PUT", "no"): ((204,), (204,)),
    ("PUT", "any"): (NOT_FOUND, (204,)),
    ("PUT", "current"): (NOT_FOUND, (204,)),
    ("PUT", "stale"): (NOT_FOUND, STALE_TAG),
    ("DELETE", "no"): ((400, "MissingRequiredHeader"), (400, "MissingRequiredHeader")),
    ("DELETE", "any"): (NOT_FOUND, (204,)),
    ("DELETE", "current"): (NOT_FOUND, (204,)),
    ("DELETE", "stale"): (NOT_FOUND, STALE_TAG),
}
for verb in ("PATCH", "MERGE"):
    for tag in ("no", "any", "current", "stale"):
        OUTCOMES[verb, tag] = OUTCOMES["PUT", tag]


def condition(verb, tag, present, outcome):
    def check():
        table = Table().create()
        try:
            etag = table.insert(A=1)
            if not present:
                table.delete().expect(204)
            header = {"no": {}, "any": {"If_Match": "*"}, "current": {"If_Match": etag}, "stale": {"If_Match": STALE}}[tag]
            send(verb, table.path(), b"" if verb == "DELETE" else {"B": 2}, **header).expect(*outcome)
            before = {"A": 1} if present else None
            written = {"A": 1, "B": 2} if present and verb in ("PATCH", "MERGE") else {"B": 2}
            same(table.stored(), before if outcome[0] != 204 else None if verb == "DELETE" else written, "entity afterwards")
        finally:
            remove(table.name)
    return check


for (verb, tag), (absent, present) in OUTCOMES.items():
    add(f"{verb.lower()}_with_{tag}_tag_on_absent", condition(verb, tag, False, absent))
    add(f"{verb.lower()}_with_{tag}_tag_on_present", condition(verb, tag, True, present))

MALFORMED = {"word": "abc", "strong": '"strong"', "unquoted": "W/datetime'2001-01-01T00%3A00%3A00Z'",
             "two": STALE + ", " + STALE}


def malformed(value):
    def check():
        table = Table().create()
        try:
            table.insert(A=1)
            for reply in (table.put({}, If_Match=value), table.patch({}, If_Match=value), table.delete(If_Match=value)):
                reply.expect(400, "InvalidInput", "The etag value '")
            same(table.stored(), {"A": 1})
        finally:
            remove(table.name)
    return check


for name, value in MALFORMED.items():
    add(f"etag_malformed_{name}", malformed(value))


@case
def insert_conflict(table):
    table.insert(A=1)
    table.post({"PartitionKey": "p", "RowKey": "r"}).expect(409, "EntityAlreadyExists", "The specified entity already exists.")
    same(table.stored(), {"A": 1})


@case
def conditional_messages(table):
    table.insert()
    table.put({}, If_Match=STALE).expect(
        412, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied.")
    table.put({}, "absent", If_Match=STALE).expect(404, "ResourceNotFound", "The specified resource does not exist.")
