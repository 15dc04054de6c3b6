import assert from "node:assert/strict";
import { collect, expectError, rowKeys } from "./bench.js";

const create = (rowKey, properties) => ["create", { partitionKey: "p", rowKey, ...properties }];
const numbered = (count) => Array.from({ length: count }, (_, i) => create(String(i).padStart(3, "0")));
const stored = async (table) => rowKeys(await collect(table.listEntities()));

export async function transaction_all_operations(bench) {
  const rows = ["deleted", "merged", "replaced", "upsert merged", "upsert replaced"];
  const table = await bench.table(...rows.map((rowKey) => ({ rowKey, Old: 1 })));
  const row = (rowKey) => ({ partitionKey: "p", rowKey, New: 2 });
  const { etag } = await table.getEntity("p", "merged");
  const result = await table.submitTransaction([
    ["create", row("created")],
    ["update", row("replaced"), "Replace"],
    ["update", row("merged"), "Merge", { etag }],
    ["upsert", row("upsert replaced"), "Replace"],
    ["upsert", row("upsert merged"), "Merge"],
    ["upsert", row("upsert created"), "Merge"],
    ["delete", row("deleted")],
  ]);
  assert.equal(result.status, 202);
  assert.deepEqual(result.subResponses.map((part) => part.status), Array(7).fill(204));
  const properties = Object.fromEntries((await collect(table.listEntities())).map((e) => [e.rowKey, [e.Old, e.New]]));
  assert.deepEqual(properties, {
    created: [undefined, 2],
    merged: [1, 2],
    replaced: [undefined, 2],
    "upsert created": [undefined, 2],
    "upsert merged": [1, 2],
    "upsert replaced": [undefined, 2],
  });
  assert.equal((await table.getEntity("p", "created")).etag, result.subResponses[0].etag);
}

export async function transaction_100_inserts(bench) {
  const table = await bench.table();
  const result = await table.submitTransaction(numbered(100));
  assert.equal(result.subResponses.length, 100);
  assert.equal((await stored(table)).length, 100);
}

export async function transaction_101_operations(bench) {
  const table = await bench.table();
  await expectError("InvalidInput", table.submitTransaction(numbered(101)));
  assert.deepEqual(await stored(table), []);
}

export async function transaction_conflict_rolls_back(bench) {
  const table = await bench.table({ rowKey: "2", Value: "first" });
  const conflict = table.submitTransaction([create("1"), create("2", { Value: "second" }), create("3")]);
  const error = await expectError("EntityAlreadyExists", conflict);
  assert.match(error.message, /^1:/);
  assert.deepEqual(await stored(table), ["2"]);
  assert.equal((await table.getEntity("p", "2")).Value, "first");
}

export async function transaction_stale_etag_rolls_back(bench) {
  const table = await bench.table({ rowKey: "1", A: 1 });
  const { etag } = await table.getEntity("p", "1");
  await table.updateEntity({ partitionKey: "p", rowKey: "1", A: 2 });
  const stale = ["update", { partitionKey: "p", rowKey: "1", A: 3 }, "Replace", { etag }];
  const error = await expectError("UpdateConditionNotSatisfied", table.submitTransaction([create("0"), stale]));
  assert.match(error.message, /^1:/);
  assert.deepEqual(await stored(table), ["1"]);
  assert.equal((await table.getEntity("p", "1")).A, 2);
}

export async function transaction_two_partitions(bench) {
  const table = await bench.table();
  await assert.rejects(
    table.submitTransaction([create("1"), ["create", { partitionKey: "q", rowKey: "2" }]]),
    /same partitionKey/,
  );
  // The SDK refuses such a transaction by itself, so that the service's answer is seen only by changing what is sent.
  table.pipeline.addPolicy({
    name: "otherPartition",
    sendRequest(request, next) {
      request.body = request.body.replace('"PartitionKey":"p","RowKey":"2"', '"PartitionKey":"q","RowKey":"2"');
      return next(request);
    },
  });
  const mixed = table.submitTransaction([create("1"), create("2")]);
  await expectError("CommandsInBatchActOnDifferentPartitions", mixed);
  assert.deepEqual(await stored(bench.client(table.tableName)), []);
}

export async function transaction_duplicate_row(bench) {
  const table = await bench.table();
  const twice = [create("1"), create("2"), ["upsert", { partitionKey: "p", rowKey: "1" }, "Merge"]];
  await expectError("InvalidDuplicateRow", table.submitTransaction(twice));
  assert.deepEqual(await stored(table), []);
}

export async function transaction_missing_table(bench) {
  const table = bench.client(bench.name());
  await expectError("TableNotFound", table.submitTransaction([create("1"), create("2")]));
}
