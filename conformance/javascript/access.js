import assert from "node:assert/strict";
import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableServiceClient,
  generateAccountSas,
  generateTableSas,
} from "@azure/data-tables";
import { account, collect, credential, endpoint, expectError, options, sasTable, select, soon } from "./bench.js";

export async function sas_table_read_only(bench) {
  const table = await bench.table({ rowKey: "1", A: 1 });
  const sas = generateTableSas(table.tableName, credential, { expiresOn: soon(), permissions: { query: true } });
  const reader = sasTable(sas, table.tableName);
  assert.equal((await reader.getEntity("p", "1")).A, 1);
  assert.deepEqual(await select(reader), ["1"]);
  const entity = { partitionKey: "p", rowKey: "2" };
  await expectError("AuthorizationPermissionMismatch", reader.createEntity(entity));
  await expectError("AuthorizationPermissionMismatch", reader.upsertEntity(entity));
  await expectError("AuthorizationPermissionMismatch", reader.deleteEntity("p", "1"));
  assert.deepEqual(await select(table), ["1"]);
}

export async function sas_table_key_range(bench) {
  const table = await bench.table(...["a", "b", "c", "d", "e"].map((pk) => ({ partitionKey: pk, rowKey: "5" })));
  const sas = generateTableSas(table.tableName, credential, {
    expiresOn: soon(),
    permissions: { query: true, add: true },
    startPartitionKey: "b",
    startRowKey: "6",
    endPartitionKey: "d",
    endRowKey: "5",
  });
  const ranged = sasTable(sas, table.tableName);
  await ranged.createEntity({ partitionKey: "b", rowKey: "6" });
  await ranged.createEntity({ partitionKey: "c", rowKey: "0" });
  for (const [partitionKey, rowKey] of [["b", "4"], ["d", "6"], ["a", "7"], ["e", "1"]]) {
    await expectError("AuthorizationFailure", ranged.createEntity({ partitionKey, rowKey }));
  }
  const keys = (await collect(ranged.listEntities())).map((row) => row.partitionKey + row.rowKey);
  assert.deepEqual(keys, ["b6", "c0", "c5", "d5"]);
}

export async function sas_table_policy_and_revocation(bench) {
  const table = await bench.table({ rowKey: "1" });
  const accessPolicy = { start: new Date(Date.now() - 3_600_000), expiry: soon(), permission: "r" };
  await table.setAccessPolicy([{ id: "readers", accessPolicy }]);
  const sas = generateTableSas(table.tableName, credential, { identifier: "readers" });
  const reader = sasTable(sas, table.tableName);
  assert.deepEqual(await select(reader), ["1"]);
  const write = reader.createEntity({ partitionKey: "p", rowKey: "2" });
  await expectError("AuthorizationPermissionMismatch", write);
  await table.setAccessPolicy([]);
  await expectError("AuthenticationFailed", select(reader));
}

export async function sas_account(bench) {
  const permissions = { query: true, write: true, list: true, add: true };
  const sas = generateAccountSas(credential, { expiresOn: soon(), permissions, resourceTypes: "sco" });
  const name = bench.name();
  await new TableServiceClient(endpoint, new AzureSASCredential(sas), options).createTable(name);
  const table = sasTable(sas, name);
  await table.createEntity({ partitionKey: "p", rowKey: "1", A: 1 });
  await table.submitTransaction([["create", { partitionKey: "p", rowKey: "2" }]]);
  assert.deepEqual(await select(table), ["1", "2"]);
  await expectError("AuthorizationPermissionMismatch", table.deleteEntity("p", "1"));
}

export async function sas_expired(bench) {
  const table = await bench.table({ rowKey: "1" });
  const expiresOn = new Date(Date.now() - 3_600_000);
  const sas = generateTableSas(table.tableName, credential, { expiresOn, permissions: { query: true } });
  await expectError("AuthenticationFailed", select(sasTable(sas, table.tableName)));
}

export async function access_policies_round_trip(bench) {
  const table = await bench.table();
  assert.equal((await table.getAccessPolicy()).length, 0);
  const policies = [
    {
      id: "all",
      accessPolicy: {
        start: new Date("2024-01-02T03:04:05Z"),
        expiry: new Date("2034-01-02T03:04:05Z"),
        permission: "raud",
      },
    },
    { id: "no dates", accessPolicy: { permission: "r" } },
  ];
  await table.setAccessPolicy(policies);
  assert.deepEqual([...(await table.getAccessPolicy())], policies);
  await table.setAccessPolicy([]);
  assert.equal((await table.getAccessPolicy()).length, 0);
}

export async function wrong_key(bench) {
  const table = await bench.table({ rowKey: "1" });
  const key = Buffer.alloc(64, "wrong").toString("base64");
  const service = new TableServiceClient(endpoint, new AzureNamedKeyCredential(account, key), options);
  await expectError("AuthenticationFailed", collect(service.listTables()));
  await expectError("AuthenticationFailed", service.createTable(bench.name()));
  await expectError("AuthenticationFailed", service.deleteTable(table.tableName));
  assert.deepEqual(await select(table), ["1"]);
}
