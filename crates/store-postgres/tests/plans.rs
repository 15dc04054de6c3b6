//! Statements get the plans that `sql.rs` promises, whether the tables are empty or full, analyzed or not.

mod support;

use partita_store_postgres::sql::{self, Engine};
use partita_testing::postgres::Postgres;

/// Rows of 200 spaces, some of them tombstones, and some spaces that were dropped.
const FILL: &str = "
    INSERT INTO partita_row
    SELECT n % 200, int4send(n % 50), int4send(n), n, CASE WHEN n % 10 = 0 THEN NULL ELSE int4send(n) END
    FROM generate_series(1, 20000) AS n;
    INSERT INTO partita_dropped (copy, space, swept)
    SELECT copy, n, CASE WHEN copy = 0 THEN n > 1020 END FROM generate_series(0, 63) AS copy, generate_series(1000, 3000) AS n;";

/// A statement with the types of its parameters and some values.
type Case = (&'static str, &'static str, &'static str);

const BATCH: Case = (
    sql::BATCH,
    "bigint, bytea, bigint, bytea[], bigint[], boolean[], bytea[], bigint[], bigint, boolean, bigint",
    "1, 'p', 90, ARRAY['a', 'b']::bytea[], ARRAY[-1, 5], ARRAY[true, false], ARRAY['v', NULL]::bytea[], ARRAY[0, 1], 9, true, 3",
);
const MANY: [Case; 2] = [
    (
        sql::GET_MANY,
        "bigint[], bytea[], bytea[], bigint[], bigint[]",
        "ARRAY[1, 2], ARRAY['p', 'q']::bytea[], ARRAY['a', 'b']::bytea[], ARRAY[0, 1], ARRAY[3, 4]",
    ),
    (
        sql::INSERT_MANY,
        "bigint[], bytea[], bytea[], bigint[], bytea[], bigint[]",
        "ARRAY[1, 2], ARRAY['p', 'q']::bytea[], ARRAY['a', 'b']::bytea[], ARRAY[5, 6], ARRAY['v', 'w']::bytea[], \
         ARRAY[3, 4]",
    ),
];
const ONE_ROW: [Case; 5] = [
    (sql::GET, "bigint, bytea, bytea, bigint", "1, 'p', 'r', 3"),
    (sql::INSERT_ABSENT, "bigint, bytea, bytea, bigint, bytea, bigint", "1, 'p', 'r', 5, 'v', 3"),
    (sql::PUT_ANY, "bigint, bytea, bytea, bigint, bytea, bigint", "1, 'p', 'r', 5, 'v', 3"),
    (sql::CHANGE, "bigint, bytea, bytea, bigint, bytea, bigint, bigint", "1, 'p', 'r', 5, 'v', 4, 3"),
    (sql::IS_DROPPED, "bigint, bigint", "1, 3"),
];
const SCANS: [Case; 2] = [
    (sql::SCAN_FROM, "bigint, bytea, bytea, bigint", "1, 'p', 'r', 100"),
    (sql::SCAN_BETWEEN, "bigint, bytea, bytea, bigint, bytea, bytea", "1, 'p', 'r', 100, 'q', ''"),
];
const SWEEPS: [Case; 5] = [
    (sql::UNSWEPT, "", ""),
    (sql::SWEEP_ROWS, "bigint", "1"),
    (sql::MARK_SWEPT, "bigint, double precision", "1, 2.0"),
    (sql::RAISE_FLOOR, "bigint, double precision", "1, 2.0"),
    (sql::SWEEP_GRAVES, "double precision", "1.0"),
];

/// The plan that a connection of ours would use.
fn plan(url: &str, (statement, types, values): Case) -> String {
    let list = |list: &str| if list.is_empty() { String::new() } else { format!("({list})") };
    let (types, values) = (list(types), list(values));
    let session = Engine::Postgres.session();
    Postgres::sql(url, &format!("{session}; PREPARE it{types} AS {statement}; EXPLAIN EXECUTE it{values}"))
}

#[tokio::test]
async fn rows_are_found_by_their_keys() {
    let Some(url) = support::database() else { return };
    drop(support::open(&url).await);
    for fill in ["", FILL, "ANALYZE"] {
        Postgres::sql(&url, fill);
        for case in ONE_ROW.into_iter().chain([BATCH]).chain(MANY).chain(SCANS).chain(SWEEPS) {
            let plan = plan(&url, case);
            // Sweeps read or raise all copies of the floor, which is all of that table.
            let reads_all = [sql::RAISE_FLOOR, sql::SWEEP_GRAVES].contains(&case.0);
            let other = if reads_all { plan.replace("Seq Scan on partita_floor", "") } else { plan.clone() };
            assert!(!other.contains("Seq Scan"), "{}\n{plan}", case.0);
        }
        for case in ONE_ROW.into_iter().chain(MANY).chain(SCANS) {
            let plan = plan(&url, case);
            assert!(!plan.contains("Sort"), "{}\n{plan}", case.0);
        }
        let key = "Index Cond: ((space = $1) AND (pk = $2) AND (rk = ";
        for case in [sql::GET, sql::CHANGE].map(|sql| ONE_ROW.into_iter().find(|case| case.0 == sql).unwrap()) {
            let plan = plan(&url, case);
            assert!(plan.contains(key), "{}\n{plan}", case.0);
        }
        let plan_of_many = plan(&url, MANY[0]);
        assert!(
            plan_of_many.contains("Index Cond: ((space = u.space) AND (pk = u.pk) AND (rk = u.rk)"),
            "{plan_of_many}"
        );
        for case in MANY.into_iter().chain(ONE_ROW).chain([BATCH]) {
            let plan = plan(&url, case);
            // The copy is the last parameter.
            let (copy, space) = match case.1.contains("bigint[], bytea[], bytea[]") {
                true => ("u.copy".into(), "u.space"),
                false => (format!("${}", case.1.split(',').count()), "$1"),
            };
            let dropped = format!("Index Cond: ((copy = {copy}) AND (space = {space}))");
            let floor = match case.0 == sql::INSERT_MANY {
                true => "Index Cond: (copy = ($6)[1])".into(),
                false => format!("Index Cond: (copy = {copy})"),
            };
            let only_reads = [sql::GET, sql::GET_MANY, sql::IS_DROPPED].contains(&case.0);
            assert!(plan.contains(&dropped), "{}\n{plan}", case.0);
            assert!(plan.contains(&floor) != only_reads, "{}\n{plan}", case.0);
        }
        let plan_of_batch = plan(&url, BATCH);
        assert!(plan_of_batch.contains(key), "{plan_of_batch}");
        for (case, bounds) in SCANS.into_iter().zip([1, 2]) {
            let plan = plan(&url, case);
            let bound = plan.lines().find(|line| line.contains("Index Cond")).unwrap_or_default();
            assert_eq!(bound.matches("ROW(pk, rk)").count(), bounds, "{}\n{plan}", case.0);
            assert!(plan.contains("Index Scan using partita_row_pkey"), "{}\n{plan}", case.0);
        }
        for case in [SWEEPS[1], SWEEPS[4]] {
            let plan = plan(&url, case);
            let by_key =
                plan.lines().any(|line| ["(space = ", "(pk = ", "(rk = "].iter().all(|part| line.contains(part)));
            assert!(by_key && !plan.contains("Join Filter"), "{}\n{plan}", case.0);
        }
        for (case, index) in
            [(SWEEPS[0], "partita_unswept"), (SWEEPS[3], "partita_grave"), (SWEEPS[4], "partita_grave")]
        {
            let plan = plan(&url, case);
            assert!(plan.contains(index), "{}\n{plan}", case.0);
        }
    }
}
