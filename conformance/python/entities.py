"""Scenarios on single entities."""

import math
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.data.tables import EdmType, EntityProperty, UpdateMode

from endpoint import exists, expect, table_client, temporary_table, unique_name
from report import same

KEY = {"PartitionKey": "p", "RowKey": "r"}
UNCHANGED = {"match_condition": MatchConditions.IfNotModified}


def stored(table, partition_key="p", row_key="r"):
    """The custom properties of an entity."""
    entity = dict(table.get_entity(partition_key, row_key))
    return {name: value for name, value in entity.items() if name not in ("PartitionKey", "RowKey")}


def round_trip(properties):
    with temporary_table() as table:
        table.create_entity({**KEY, **properties})
        back = stored(table)
    same(back, properties)
    for name, value in properties.items():
        # bool is an int and 5.0 equals 5 in Python, so equality alone would not notice a changed type.
        assert isinstance(back[name], type(value)), f"{name}: got {type(back[name])}, expected {type(value)}"


def insert_and_get_all_types():
    round_trip({
        "Text": "hello",
        "Whole": 42,
        "Long": EntityProperty(2**40, EdmType.INT64),
        "SmallLong": EntityProperty(7, EdmType.INT64),
        "Ratio": 5.0,
        "Flag": True,
        "When": datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=timezone.utc),
        "Id": uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
        "Bytes": bytes(range(256)),
    })


def insert_conflict():
    with temporary_table() as table:
        table.create_entity({**KEY, "N": 1})
        expect("EntityAlreadyExists", table.create_entity, {**KEY, "N": 2})
        same(stored(table), {"N": 1})


def insert_null_property():
    with temporary_table() as table:
        table.create_entity({**KEY, "Nothing": None, "N": 1})
        same(stored(table), {"N": 1})


def insert_empty_string_and_binary():
    round_trip({"Text": "", "Bytes": b""})


def insert_unicode():
    with temporary_table() as table:
        entity = {"PartitionKey": "città", "RowKey": "行😀", "名前": "日本語 😀 é", "Größe": 3}
        table.create_entity(entity)
        same(dict(table.get_entity("città", "行😀")), entity)


def insert_special_characters_in_keys():
    special = ["it's", "''", "a b", "100%", "%41", "a+b", "a&b=c", "a:b@c", '"quoted"', "(x,y)", "a;b!$*~", "[<{|}>]^`"]
    with temporary_table() as table:
        for number, key in enumerate(special):
            table.create_entity({"PartitionKey": key, "RowKey": key, "N": number})
        for number, key in enumerate(special):
            same(stored(table, key, key), {"N": number}, f"entity {key}")
            table.upsert_entity({"PartitionKey": key, "RowKey": key, "N": -number}, mode=UpdateMode.REPLACE)
            same(stored(table, key, key), {"N": -number}, f"entity {key}")
            table.delete_entity(key, key)
        same(list(table.list_entities()), [])


def insert_empty_keys():
    with temporary_table() as table:
        table.create_entity({"PartitionKey": "", "RowKey": "", "N": 1})
        same(stored(table, "", ""), {"N": 1})
        table.upsert_entity({"PartitionKey": "", "RowKey": "", "N": 2}, mode=UpdateMode.REPLACE)
        same([dict(entity) for entity in table.list_entities()], [{"PartitionKey": "", "RowKey": "", "N": 2}])
        table.delete_entity("", "")
        same(list(table.list_entities()), [])


def insert_missing_table():
    expect("TableNotFound", table_client(unique_name()).create_entity, KEY)


def get_missing_entity():
    with temporary_table() as table:
        expect("ResourceNotFound", table.get_entity, "p", "r")


def get_with_select():
    with temporary_table() as table:
        table.create_entity({**KEY, "A": 1, "B": "two", "C": 3.0})
        same(dict(table.get_entity("p", "r", select=["A", "C"])), {"A": 1, "C": 3.0})


def insert_special_doubles():
    with temporary_table() as table:
        table.create_entity({**KEY, "Nan": math.nan, "Up": math.inf, "Down": -math.inf})
        back = stored(table)
        assert isinstance(back["Nan"], float) and math.isnan(back["Nan"]), f"NaN came back as {back['Nan']!r}"
        same((back["Up"], back["Down"]), (math.inf, -math.inf))


def insert_int64_extremes():
    round_trip({"Low": EntityProperty(-2**63, EdmType.INT64), "High": EntityProperty(2**63 - 1, EdmType.INT64)})


def insert_dates_with_fractions():
    round_trip({
        "Milliseconds": datetime(2021, 6, 1, 10, 0, 0, 123000, tzinfo=timezone.utc),
        "First": datetime(1601, 1, 1, tzinfo=timezone.utc),
        "Last": datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc),
    })


def update_replace():
    with temporary_table() as table:
        table.create_entity({**KEY, "A": 1, "B": 2})
        table.update_entity({**KEY, "B": 3}, mode=UpdateMode.REPLACE)
        same(stored(table), {"B": 3})


def update_merge():
    with temporary_table() as table:
        table.create_entity({**KEY, "A": 1, "B": 2})
        table.update_entity({**KEY, "B": "three"}, mode=UpdateMode.MERGE)
        same(stored(table), {"A": 1, "B": "three"})


def upsert_replace():
    with temporary_table() as table:
        table.upsert_entity({**KEY, "A": 1}, mode=UpdateMode.REPLACE)
        same(stored(table), {"A": 1})
        table.upsert_entity({**KEY, "B": 2}, mode=UpdateMode.REPLACE)
        same(stored(table), {"B": 2})


def upsert_merge():
    with temporary_table() as table:
        table.upsert_entity({**KEY, "A": 1}, mode=UpdateMode.MERGE)
        same(stored(table), {"A": 1})
        table.upsert_entity({**KEY, "B": 2}, mode=UpdateMode.MERGE)
        same(stored(table), {"A": 1, "B": 2})


def update_missing_entity():
    with temporary_table() as table:
        for mode in (UpdateMode.REPLACE, UpdateMode.MERGE):
            expect("ResourceNotFound", table.update_entity, {**KEY, "A": 1}, mode=mode)
        assert not exists(table, "p", "r"), "the refused update created the entity"


def update_with_etag():
    with temporary_table() as table:
        before = table.create_entity({**KEY, "A": 1})["etag"]
        after = table.update_entity({**KEY, "A": 2}, mode=UpdateMode.REPLACE, etag=before, **UNCHANGED)["etag"]
        assert after != before, "the ETag did not change"
        same(table.get_entity("p", "r").metadata["etag"], after)
        table.update_entity({**KEY, "B": 3}, mode=UpdateMode.MERGE, etag=after, **UNCHANGED)
        same(stored(table), {"A": 2, "B": 3})


def update_with_stale_etag():
    with temporary_table() as table:
        stale = table.create_entity({**KEY, "A": 1})["etag"]
        table.update_entity({**KEY, "A": 2}, mode=UpdateMode.REPLACE)
        for mode in (UpdateMode.REPLACE, UpdateMode.MERGE):
            expect("UpdateConditionNotSatisfied", table.update_entity, {**KEY, "A": 3},
                   mode=mode, etag=stale, **UNCHANGED)
        same(stored(table), {"A": 2})


def etag_race():
    with temporary_table() as table:
        etag = table.create_entity({**KEY, "Winner": -1})["etag"]

        def attempt(number):
            try:
                table_client(table.table_name).update_entity(
                    {**KEY, "Winner": number}, mode=UpdateMode.REPLACE, etag=etag, **UNCHANGED)
                return True
            except ResourceModifiedError:
                return False

        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(attempt, range(32)))
        same(won.count(True), 1, "number of winners")
        same(stored(table), {"Winner": won.index(True)})


def delete_entity():
    with temporary_table() as table:
        table.create_entity(KEY)
        table.delete_entity("p", "r")
        expect("ResourceNotFound", table.get_entity, "p", "r")


def delete_with_stale_etag():
    with temporary_table() as table:
        stale = table.create_entity({**KEY, "A": 1})["etag"]
        table.update_entity({**KEY, "A": 2}, mode=UpdateMode.REPLACE)
        expect("UpdateConditionNotSatisfied", table.delete_entity, KEY, etag=stale, **UNCHANGED)
        same(stored(table), {"A": 2})


def delete_missing_entity():
    with temporary_table() as table:
        # The SDK swallows the 404; any other answer of the service would surface.
        table.delete_entity("p", "r")
        try:
            table.submit_transaction([("delete", KEY)])
        except HttpResponseError as error:
            same(error.error_code, "ResourceNotFound")
        else:
            raise AssertionError("deleting a missing entity in a transaction was accepted")


def limit_property_value():
    with temporary_table() as table:
        table.create_entity({"PartitionKey": "p", "RowKey": "fits", "Text": "x" * 32768})
        expect("PropertyValueTooLarge", table.create_entity, {**KEY, "Text": "x" * 32769})
        assert not exists(table, "p", "r"), "the refused entity was written"


def limit_properties():
    with temporary_table() as table:
        properties = {f"P{number}": number for number in range(252)}
        table.create_entity({"PartitionKey": "p", "RowKey": "fits", **properties})
        expect("TooManyProperties", table.create_entity, {**KEY, **properties, "P252": 252})
        assert not exists(table, "p", "r"), "the refused entity was written"


def limit_entity_size():
    with temporary_table() as table:
        large = {f"P{number:02}": "x" * 32000 for number in range(17)}
        expect("EntityTooLarge", table.create_entity, {**KEY, **large})
        assert not exists(table, "p", "r"), "the refused entity was written"
        large.pop("P16")
        table.create_entity({**KEY, **large})
