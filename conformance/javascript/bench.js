// What a scenario works with: clients for the endpoint under test, tables of its own, and the checks they share.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient } from "@azure/data-tables";

export const endpoint = process.env.TABLES_ENDPOINT.replace(/\/$/, "");
export const account = process.env.TABLES_ACCOUNT;
export const credential = new AzureNamedKeyCredential(account, process.env.TABLES_KEY);
export const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

/** An hour from now, for signatures that should hold. */
export const soon = () => new Date(Date.now() + 3_600_000);

const STATUS = {
  AuthenticationFailed: 403,
  AuthorizationFailure: 403,
  AuthorizationPermissionMismatch: 403,
  CommandsInBatchActOnDifferentPartitions: 400,
  EntityAlreadyExists: 409,
  EntityTooLarge: 400,
  InvalidDuplicateRow: 400,
  InvalidInput: 400,
  InvalidResourceName: 400,
  OutOfRangeInput: 400,
  PropertyValueTooLarge: 400,
  ResourceNotFound: 404,
  TableAlreadyExists: 409,
  TableNotFound: 404,
  TooManyProperties: 400,
  UpdateConditionNotSatisfied: 412,
};

/** Awaits a request that must be refused with `code` and the status that belongs to it. Returns the error. */
export async function expectError(code, request) {
  let error;
  try {
    await request;
  } catch (refusal) {
    error = refusal;
  }
  assert.ok(error, `expected ${code}, but the request succeeded`);
  // The code stands in the JSON body or in the header x-ms-error-code; in a failed transaction the SDK lifts it out.
  const got = error.details?.odataError?.code ?? error.details?.errorCode ?? error.code ?? error.message;
  const refused = `${error.statusCode} ${got}`;
  assert.ok(refused === `${STATUS[code]} ${code}`, `expected ${code}, got ${refused}`);
  return error;
}

/** An `onResponse` option that remembers the last reply, for the errors which the SDK swallows. */
export function spy() {
  const seen = {
    onResponse(response) {
      seen.status = response.status;
      seen.code = response.parsedBody?.odataError?.code;
    },
  };
  return seen;
}

export async function collect(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

export const rowKeys = (rows) => rows.map((row) => row.rowKey);

/** The row keys that a filter selects, in the order of the reply. */
export async function select(table, filter) {
  return rowKeys(await collect(table.listEntities({ queryOptions: { filter } })));
}

export function sasTable(sas, name) {
  return new TableClient(endpoint, name, new AzureSASCredential(sas), options);
}

export class Bench {
  service = new TableServiceClient(endpoint, credential, options);
  #names = [];

  /** A table name nobody else uses; the table is removed after the scenario if it exists then. */
  name(prefix = "Js") {
    const name = `${prefix}${randomBytes(8).toString("hex")}`;
    this.#names.push(name);
    return name;
  }

  client(name) {
    return new TableClient(endpoint, name, credential, options);
  }

  /** A new table, with rows if some are given. */
  async table(...rows) {
    const table = this.client(this.name());
    await table.createTable();
    for (const row of rows) await table.createEntity({ partitionKey: "p", ...row });
    return table;
  }

  async clear() {
    for (const name of this.#names) await this.service.deleteTable(name).catch(() => {});
  }
}
