import assert from "node:assert/strict";
import { odata } from "@azure/data-tables";
import { collect, expectError, spy } from "./bench.js";

async function listed(bench, filter) {
  const tables = await collect(bench.service.listTables({ queryOptions: { filter } }));
  return tables.map((table) => table.name);
}

export async function create_table_and_list(bench) {
  const name = bench.name("MixedCase");
  await bench.service.createTable(name);
  assert.ok((await listed(bench)).includes(name));
}

export async function create_table_twice(bench) {
  const name = bench.name();
  await bench.service.createTable(name);
  const reply = spy();
  await bench.service.createTable(name, reply);
  assert.equal(reply.status, 409);
  assert.equal(reply.code, "TableAlreadyExists");
}

export async function create_table_bad_names(bench) {
  await expectError("OutOfRangeInput", bench.service.createTable("ab"));
  await expectError("InvalidResourceName", bench.service.createTable("with-dash"));
}

export async function delete_table_and_recreate(bench) {
  const table = await bench.table({ rowKey: "1" });
  await table.deleteTable();
  const reply = spy();
  await table.createTable(reply);
  assert.equal(reply.status, 201);
  assert.deepEqual(await collect(table.listEntities()), []);
}

export async function delete_table_missing(bench) {
  const reply = spy();
  await bench.service.deleteTable(bench.name(), reply);
  assert.equal(reply.status, 404);
  assert.equal(reply.code, "ResourceNotFound");
}

export async function list_tables_with_filter(bench) {
  const prefix = bench.name("Filter");
  const names = ["a", "b", "c"].map((suffix) => bench.name(prefix + suffix));
  for (const name of names) await bench.service.createTable(name);
  assert.deepEqual(await listed(bench, odata`TableName eq ${names[1]}`), [names[1]]);
  assert.deepEqual(await listed(bench, odata`TableName ge ${prefix} and TableName lt ${prefix + "{"}`), names);
  assert.deepEqual(await listed(bench, odata`TableName eq ${bench.name()}`), []);
}

export async function list_tables_paged(bench) {
  const prefix = bench.name("Paged");
  const names = [..."abcdefg"].map((suffix) => bench.name(prefix + suffix));
  for (const name of names) await bench.service.createTable(name);
  const filter = odata`TableName ge ${prefix} and TableName lt ${prefix + "{"}`;
  const pages = await collect(bench.service.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 3 }));
  assert.ok(pages.every((page) => page.length <= 3));
  assert.deepEqual(pages.flat().map((table) => table.name), names);
}

export async function table_name_any_case(bench) {
  const name = bench.name("MixedCase");
  await bench.service.createTable(name);
  await bench.client(name.toUpperCase()).createEntity({ partitionKey: "p", rowKey: "1", Value: "kept" });
  const entity = await bench.client(name.toLowerCase()).getEntity("p", "1");
  assert.equal(entity.Value, "kept");
}
