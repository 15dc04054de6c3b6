import assert from "node:assert/strict";
import { odata } from "@azure/data-tables";
import { collect, expectError, rowKeys, select } from "./bench.js";

async function insertMany(table, partitionKey, count) {
  for (let start = 0; start < count; start += 100) {
    const rows = Array.from({ length: Math.min(100, count - start) }, (_, i) => [
      "create",
      { partitionKey, rowKey: String(start + i).padStart(5, "0") },
    ]);
    await table.submitTransaction(rows);
  }
}

export async function query_all_in_key_order(bench) {
  const partitions = ["", "10", "9", "A", "Z", "a", "b", "z", "é"];
  const keys = partitions.flatMap((partition) => ["1", "10", "2", "B", "a"].map((row) => [partition, row]));
  const table = await bench.table();
  const shuffled = keys.map((key) => ({ key, at: Math.random() })).sort((a, b) => a.at - b.at);
  for (const { key } of shuffled) await table.createEntity({ partitionKey: key[0], rowKey: key[1] });
  const rows = await collect(table.listEntities());
  assert.deepEqual(rows.map((row) => [row.partitionKey, row.rowKey]), keys);
}

export async function query_paging_2500(bench) {
  const table = await bench.table();
  const partitions = ["a", "b", "c", "d", "e"];
  for (const partition of partitions) await insertMany(table, partition, 500);
  const pages = await collect(table.listEntities().byPage());
  assert.ok(pages.every((page) => page.length <= 1000), `pages of ${pages.map((page) => page.length)}`);
  const keys = pages.flat().map((row) => `${row.partitionKey}/${row.rowKey}`);
  assert.equal(keys.length, 2500);
  assert.equal(new Set(keys).size, 2500);
  assert.equal((await collect(table.listEntities())).length, 2500);
}

export async function query_page_size_and_resume(bench) {
  const table = await bench.table();
  await insertMany(table, "p", 25);
  const first = (await table.listEntities().byPage({ maxPageSize: 10 }).next()).value;
  assert.equal(first.length, 10);
  const resume = { maxPageSize: 10, continuationToken: first.continuationToken };
  const rest = await collect(bench.client(table.tableName).listEntities().byPage(resume));
  assert.ok(rest.every((page) => page.length <= 10));
  const keys = rowKeys([...first, ...rest.flat()]);
  assert.deepEqual(keys, Array.from({ length: 25 }, (_, i) => String(i).padStart(5, "0")));
}

export async function query_filter_partition(bench) {
  const table = await bench.table({ rowKey: "1" }, { rowKey: "2" }, { partitionKey: "q", rowKey: "3" });
  assert.deepEqual(await select(table, "PartitionKey eq 'p'"), ["1", "2"]);
}

export async function query_filter_row_range(bench) {
  const rows = ["a", "b", "c", "d", "e"].map((rowKey) => ({ rowKey }));
  const table = await bench.table(...rows, { partitionKey: "q", rowKey: "c" });
  assert.deepEqual(await select(table, "PartitionKey eq 'p' and RowKey ge 'b' and RowKey lt 'e'"), ["b", "c", "d"]);
  assert.deepEqual(await select(table, "PartitionKey eq 'p' and RowKey gt 'b' and RowKey le 'e'"), ["c", "d", "e"]);
}

export async function query_filter_or_of_rows(bench) {
  const rows = ["a", "b", "c", "d", "e"].map((rowKey) => ({ rowKey }));
  const table = await bench.table(...rows, { partitionKey: "q", rowKey: "c" });
  const filter = "PartitionKey eq 'p' and (RowKey eq 'e' or RowKey eq 'a' or RowKey eq 'c' or RowKey eq 'x')";
  assert.deepEqual(await select(table, filter), ["a", "c", "e"]);
}

export async function query_filter_each_type(bench) {
  const guid = (digit) => "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".replaceAll("x", digit);
  const row = (rowKey, n) => ({
    rowKey,
    AnInt32: n,
    AnInt64: BigInt(n) + 1099511627776n,
    ADouble: n + 0.5,
    ABoolean: n > 2,
    ADateTime: new Date(Date.UTC(2024, 0, n, 1, 2, 3, 456)),
    AGuid: { type: "Guid", value: guid(n) },
    ABinary: new Uint8Array([n, 255]),
    AString: `s${n}`,
  });
  const table = await bench.table(row("1", 1), row("2", 2), row("3", 3));
  const literals = {
    AnInt32: "2",
    AnInt64: "1099511627778L",
    ADouble: "2.5",
    ADateTime: "datetime'2024-01-02T01:02:03.456Z'",
    AGuid: `guid'${guid(2)}'`,
    ABinary: "X'02ff'",
    AString: "'s2'",
  };
  for (const [name, literal] of Object.entries(literals)) {
    assert.deepEqual(await select(table, `${name} eq ${literal}`), ["2"], `${name} eq`);
    assert.deepEqual(await select(table, `${name} gt ${literal}`), ["3"], `${name} gt`);
    assert.deepEqual(await select(table, `${name} le ${literal}`), ["1", "2"], `${name} le`);
  }
  assert.deepEqual(await select(table, "ABoolean eq true"), ["3"], "ABoolean eq");
  assert.deepEqual(await select(table, "ABoolean gt false"), ["3"], "ABoolean gt");
}

export async function query_filter_not_and_or(bench) {
  const table = await bench.table(
    { rowKey: "1", A: 1, B: 1 },
    { rowKey: "2", A: 1, B: 2 },
    { rowKey: "3", A: 2, B: 1 },
    { rowKey: "4", A: 2, B: 2 },
  );
  assert.deepEqual(await select(table, "not (A eq 1)"), ["3", "4"]);
  assert.deepEqual(await select(table, "A eq 1 or A eq 2 and B eq 2"), ["1", "2", "4"]);
  assert.deepEqual(await select(table, "(A eq 1 or A eq 2) and B eq 2"), ["2", "4"]);
  assert.deepEqual(await select(table, "not (A eq 1 and B eq 1) and not (A eq 2 and B eq 2)"), ["2", "3"]);
}

export async function query_filter_quotes(bench) {
  const names = ["O'Brien", "O''Brien", "OBrien", "' or RowKey ne '"];
  const table = await bench.table(...names.map((Name, i) => ({ rowKey: String(i), Name })));
  for (const [i, name] of names.entries()) {
    assert.deepEqual(await select(table, odata`Name eq ${name}`), [String(i)], name);
  }
}

export async function query_filter_missing_property(bench) {
  const table = await bench.table({ rowKey: "1", A: 1 }, { rowKey: "2", A: 2 }, { rowKey: "3", B: 1 });
  assert.deepEqual(await select(table, "A eq 1"), ["1"]);
  assert.deepEqual(await select(table, "A ne 1"), ["2"]);
  assert.deepEqual(await select(table, "A lt 5"), ["1", "2"]);
}

export async function query_filter_bad_syntax(bench) {
  const table = await bench.table({ rowKey: "1" });
  for (const filter of ["aaa bbb ccc", "PartitionKey eq 'open", "(A eq 1"]) {
    await expectError("InvalidInput", select(table, filter));
  }
}

export async function query_select_missing_property(bench) {
  const table = await bench.table({ rowKey: "1", A: 1 }, { rowKey: "2", A: 2 });
  const rows = await collect(table.listEntities({ queryOptions: { select: ["rowKey", "Nowhere"] } }));
  assert.deepEqual(rowKeys(rows), ["1", "2"]);
  assert.ok(rows.every((row) => row.Nowhere == null && !("A" in row)));
}

export async function query_empty_result(bench) {
  const table = await bench.table();
  assert.deepEqual(await collect(table.listEntities()), []);
  await table.createEntity({ partitionKey: "p", rowKey: "1" });
  assert.deepEqual(await select(table, "PartitionKey eq 'p' and RowKey eq '2'"), []);
}
