import assert from "node:assert/strict";
import { expectError } from "./bench.js";

/** Inserts one row and reads it back, with `{ type, value }` pairs where `typed` is asked for. */
async function roundTrip(bench, properties, typed = false) {
  const table = await bench.table({ rowKey: "1", ...properties });
  return table.getEntity("p", "1", { disableTypeConversion: typed });
}

async function keysRoundTrip(bench, partitionKey, rowKey) {
  const table = await bench.table();
  await table.createEntity({ partitionKey, rowKey, Value: "first" });
  await table.updateEntity({ partitionKey, rowKey, Value: "second" }, "Replace");
  const entity = await table.getEntity(partitionKey, rowKey);
  assert.deepEqual([entity.partitionKey, entity.rowKey, entity.Value], [partitionKey, rowKey, "second"]);
  await table.deleteEntity(partitionKey, rowKey);
  await expectError("ResourceNotFound", table.getEntity(partitionKey, rowKey));
}

export async function insert_and_get_all_types(bench) {
  const values = {
    AString: "text",
    AnInt32: -2147483648,
    AnInt64: 1099511627776n,
    ADouble: 0.1,
    ABoolean: true,
    ADateTime: new Date("2024-02-29T12:34:56.789Z"),
    AGuid: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    ABinary: new Uint8Array([0, 1, 127, 128, 255]),
  };
  const table = await bench.table({ rowKey: "1", ...values });
  const { etag, timestamp, partitionKey, rowKey, "odata.metadata": _, ...converted } = await table.getEntity("p", "1");
  assert.deepEqual({ ...converted, ABinary: new Uint8Array(converted.ABinary) }, values);
  assert.deepEqual([partitionKey, rowKey], ["p", "1"]);
  assert.match(etag, /^W\/"datetime'.*'"$/);
  assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 600_000);

  const typed = await table.getEntity("p", "1", { disableTypeConversion: true });
  const types = Object.keys(values).map((name) => typed[name].type);
  assert.deepEqual(types, ["String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"]);
}

export async function insert_conflict(bench) {
  const table = await bench.table({ rowKey: "1", Value: "first" });
  await expectError("EntityAlreadyExists", table.createEntity({ partitionKey: "p", rowKey: "1", Value: "second" }));
  assert.equal((await table.getEntity("p", "1")).Value, "first");
}

export async function insert_null_property(bench) {
  const entity = await roundTrip(bench, { Nothing: null, Something: 1 });
  assert.equal(entity.Something, 1);
  assert.ok(!("Nothing" in entity));
}

export async function insert_empty_string_and_binary(bench) {
  const entity = await roundTrip(bench, { Text: "", Bytes: new Uint8Array() });
  assert.equal(entity.Text, "");
  assert.equal(entity.Bytes.length, 0);
}

export async function insert_unicode(bench) {
  const entity = await roundTrip(bench, { Größe名: "Zażółć 日本語 😀" });
  assert.equal(entity["Größe名"], "Zażółć 日本語 😀");
  await keysRoundTrip(bench, "Ключ 日本", "é😀𝄞");
}

export async function insert_special_characters_in_keys(bench) {
  await keysRoundTrip(bench, "it's 100% a+b & c:d", "''@home, %27 \"x\"=1;");
}

export async function insert_empty_keys(bench) {
  await keysRoundTrip(bench, "", "");
}

export async function insert_missing_table(bench) {
  const table = bench.client(bench.name());
  await expectError("TableNotFound", table.createEntity({ partitionKey: "p", rowKey: "1" }));
}

export async function get_missing_entity(bench) {
  const table = await bench.table({ rowKey: "1" });
  await expectError("ResourceNotFound", table.getEntity("p", "2"));
}

export async function get_with_select(bench) {
  const table = await bench.table({ rowKey: "1", A: 1, B: 2, C: 3 });
  const entity = await table.getEntity("p", "1", { queryOptions: { select: ["A", "C"] } });
  const names = Object.keys(entity).filter((name) => name !== "etag" && !name.startsWith("odata."));
  assert.deepEqual(names.sort(), ["A", "C"]);
}

export async function insert_special_doubles(bench) {
  const values = {
    NotANumber: { type: "Double", value: "NaN" },
    Positive: { type: "Double", value: "Infinity" },
    Negative: { type: "Double", value: "-Infinity" },
  };
  const entity = await roundTrip(bench, values, true);
  for (const [name, value] of Object.entries(values)) assert.deepEqual(entity[name], value);
}

export async function insert_int64_extremes(bench) {
  const values = { Smallest: -9223372036854775808n, Largest: 9223372036854775807n };
  const entity = await roundTrip(bench, values);
  for (const [name, value] of Object.entries(values)) assert.equal(entity[name], value);
}

export async function insert_dates_with_fractions(bench) {
  const values = {
    Fraction: new Date("2024-02-29T12:34:56.789Z"),
    First: new Date("1601-01-01T00:00:00.000Z"),
    Last: new Date("9999-12-31T23:59:59.999Z"),
  };
  const entity = await roundTrip(bench, values);
  for (const [name, value] of Object.entries(values)) assert.deepEqual(entity[name], value);
}

export async function update_replace(bench) {
  const table = await bench.table({ rowKey: "1", A: 1, B: 2 });
  await table.updateEntity({ partitionKey: "p", rowKey: "1", B: 3 }, "Replace");
  const entity = await table.getEntity("p", "1");
  assert.ok(!("A" in entity));
  assert.equal(entity.B, 3);
}

export async function update_merge(bench) {
  const table = await bench.table({ rowKey: "1", A: 1, B: 2 });
  await table.updateEntity({ partitionKey: "p", rowKey: "1", B: "three" }, "Merge");
  const entity = await table.getEntity("p", "1");
  assert.deepEqual([entity.A, entity.B], [1, "three"]);
}

export async function upsert_replace(bench) {
  const table = await bench.table();
  await table.upsertEntity({ partitionKey: "p", rowKey: "1", A: 1 }, "Replace");
  assert.equal((await table.getEntity("p", "1")).A, 1);
  await table.upsertEntity({ partitionKey: "p", rowKey: "1", B: 2 }, "Replace");
  const entity = await table.getEntity("p", "1");
  assert.ok(!("A" in entity));
  assert.equal(entity.B, 2);
}

export async function upsert_merge(bench) {
  const table = await bench.table();
  await table.upsertEntity({ partitionKey: "p", rowKey: "1", A: 1 }, "Merge");
  await table.upsertEntity({ partitionKey: "p", rowKey: "1", B: 2 }, "Merge");
  const entity = await table.getEntity("p", "1");
  assert.deepEqual([entity.A, entity.B], [1, 2]);
}

export async function update_missing_entity(bench) {
  const table = await bench.table();
  for (const mode of ["Replace", "Merge"]) {
    await expectError("ResourceNotFound", table.updateEntity({ partitionKey: "p", rowKey: "1", A: 1 }, mode));
  }
  await expectError("ResourceNotFound", table.getEntity("p", "1"));
}

export async function update_with_etag(bench) {
  const table = await bench.table({ rowKey: "1", A: 1 });
  for (const mode of ["Replace", "Merge"]) {
    const { etag } = await table.getEntity("p", "1");
    const updated = await table.updateEntity({ partitionKey: "p", rowKey: "1", A: 1 }, mode, { etag });
    assert.notEqual(updated.etag, etag);
    assert.equal((await table.getEntity("p", "1")).etag, updated.etag);
  }
}

export async function update_with_stale_etag(bench) {
  const table = await bench.table({ rowKey: "1", A: 1 });
  const { etag } = await table.getEntity("p", "1");
  await table.updateEntity({ partitionKey: "p", rowKey: "1", A: 2 });
  for (const mode of ["Replace", "Merge"]) {
    const update = table.updateEntity({ partitionKey: "p", rowKey: "1", A: 3 }, mode, { etag });
    await expectError("UpdateConditionNotSatisfied", update);
  }
  assert.equal((await table.getEntity("p", "1")).A, 2);
}

export async function etag_race(bench) {
  const table = await bench.table({ rowKey: "1", Winner: -1 });
  const { etag } = await table.getEntity("p", "1");
  const updates = Array.from({ length: 20 }, (_, Winner) =>
    table.updateEntity({ partitionKey: "p", rowKey: "1", Winner }, "Replace", { etag }),
  );
  const results = await Promise.allSettled(updates);
  const winners = [...results.keys()].filter((index) => results[index].status === "fulfilled");
  assert.equal(winners.length, 1, `${winners.length} updates won`);
  for (const { status, reason } of results) {
    if (status === "rejected") await expectError("UpdateConditionNotSatisfied", Promise.reject(reason));
  }
  assert.equal((await table.getEntity("p", "1")).Winner, winners[0]);
}

export async function delete_entity(bench) {
  const table = await bench.table({ rowKey: "1" });
  await table.deleteEntity("p", "1");
  await expectError("ResourceNotFound", table.getEntity("p", "1"));
}

export async function delete_with_stale_etag(bench) {
  const table = await bench.table({ rowKey: "1", A: 1 });
  const { etag } = await table.getEntity("p", "1");
  await table.updateEntity({ partitionKey: "p", rowKey: "1", A: 2 });
  await expectError("UpdateConditionNotSatisfied", table.deleteEntity("p", "1", { etag }));
  assert.equal((await table.getEntity("p", "1")).A, 2);
}

export async function delete_missing_entity(bench) {
  const table = await bench.table();
  await expectError("ResourceNotFound", table.deleteEntity("p", "1"));
}

export async function limit_property_value(bench) {
  const table = await bench.table({ rowKey: "fits", Text: "é".repeat(32_768) });
  const tooLong = { partitionKey: "p", rowKey: "too long", Text: "é".repeat(32_769) };
  await expectError("PropertyValueTooLarge", table.createEntity(tooLong));
}

export async function limit_properties(bench) {
  const numbered = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`P${i}`, i]));
  const table = await bench.table({ rowKey: "fits", ...numbered(252) });
  const tooMany = { partitionKey: "p", rowKey: "too many", ...numbered(253) };
  await expectError("TooManyProperties", table.createEntity(tooMany));
}

export async function limit_entity_size(bench) {
  // A property of 32,768 characters counts 64 KiB, whatever the length of its JSON.
  const large = (count) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`P${i}`, "x".repeat(32_768)]));
  const table = await bench.table({ rowKey: "fits", ...large(15) });
  const tooLarge = { partitionKey: "p", rowKey: "too large", ...large(16) };
  await expectError("EntityTooLarge", table.createEntity(tooLarge));
}
