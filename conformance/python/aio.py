"""A handful of scenarios once more through the SDK's asynchronous client, which has its own HTTP stack."""

import asyncio

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import UpdateMode
from azure.data.tables.aio import TableClient

from endpoint import CREDENTIAL, ENDPOINT, NO_RETRIES, temporary_table
from report import same
from transactions import ALL_OPERATIONS, ALL_OPERATIONS_RESULT, content, row


def asynchronous(scenario):
    """A plain function that runs the scenario against a temporary table."""
    def plain():
        async def body(name):
            async with TableClient(ENDPOINT, name, credential=CREDENTIAL, **NO_RETRIES) as table:
                await scenario(table)
        with temporary_table() as table:
            asyncio.run(body(table.table_name))
    plain.__name__ = scenario.__name__
    return plain


@asynchronous
async def aio_query_paging_2500(table):
    expected = [f"{number:05}" for number in range(2500)]
    await asyncio.gather(*(
        table.submit_transaction([("upsert", row(key)) for key in expected[start:start + 100]])
        for start in range(0, 2500, 100)))
    same([entity["RowKey"] async for entity in table.list_entities()], expected)


@asynchronous
async def aio_transaction_all_operations(table):
    for key in ("replace", "merge", "upsert-replace", "upsert-merge", "delete"):
        await table.create_entity(row(key, A=1))
    await table.submit_transaction(ALL_OPERATIONS)
    same(content([entity async for entity in table.list_entities()]), ALL_OPERATIONS_RESULT)


@asynchronous
async def aio_insert_special_characters_in_keys(table):
    for key in ("it's", "a b", "100%", "%41", "a+b&c=d", "a:b@c", "~()!*", "città 行😀"):
        await table.create_entity({"PartitionKey": key, "RowKey": key, "N": 1})
        same((await table.get_entity(key, key))["N"], 1, f"entity {key}")
        await table.delete_entity(key, key)


@asynchronous
async def aio_etag_race(table):
    etag = (await table.create_entity(row("r", Winner=-1)))["etag"]

    async def attempt(number):
        try:
            await table.update_entity(row("r", Winner=number), mode=UpdateMode.REPLACE, etag=etag,
                                      match_condition=MatchConditions.IfNotModified)
            return True
        except ResourceModifiedError:
            return False

    won = await asyncio.gather(*map(attempt, range(32)))
    same(won.count(True), 1, "number of winners")
    same((await table.get_entity("p", "r"))["Winner"], won.index(True))
