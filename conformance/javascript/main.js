// Runs every exported scenario and prints one line for each. A scenario is a function named as in scenarios.txt.
import { Bench } from "./bench.js";
import * as access from "./access.js";
import * as entities from "./entities.js";
import * as queries from "./queries.js";
import * as service from "./service.js";
import * as tables from "./tables.js";
import * as transactions from "./transactions.js";

const SCENARIO_SECONDS_MAX = 120;

function timeout() {
  let timer;
  const expired = new Promise((_, reject) => {
    const error = new Error(`no result after ${SCENARIO_SECONDS_MAX} s`);
    timer = setTimeout(reject, SCENARIO_SECONDS_MAX * 1000, error);
  });
  return { expired, cancel: () => clearTimeout(timer) };
}

let passed = 0;
let failed = 0;
for (const group of [tables, entities, queries, transactions, access, service]) {
  for (const [name, scenario] of Object.entries(group)) {
    const bench = new Bench();
    const { expired, cancel } = timeout();
    try {
      await Promise.race([scenario(bench), expired]);
      console.log(`ok ${name}`);
      passed += 1;
    } catch (error) {
      const reason = `${error.statusCode ?? ""} ${error.message}`.replace(/\s+/g, " ").trim();
      console.log(`FAIL ${name}: ${reason.slice(0, 300)}`);
      failed += 1;
    } finally {
      cancel();
      await bench.clear();
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
