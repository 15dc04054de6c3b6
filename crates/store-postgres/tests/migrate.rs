//! The tables of an older version become those of a later one.
//!
//! There is one format today, so the later versions are made up here.

mod support;

use partita_store_postgres::sql::Engine;
use partita_store_postgres::{Migration, Options, PostgresStore, migrate, migration_sql};
use partita_testing::postgres::Postgres;

/// Notes how often it was made.
fn with_second(engine: Engine) -> Vec<String> {
    let mut steps = engine.steps();
    steps.push("CREATE TABLE IF NOT EXISTS partita_second (n bigint); INSERT INTO partita_second VALUES (2)".into());
    steps
}

fn with_third(engine: Engine) -> Vec<String> {
    let mut steps = with_second(engine);
    steps.push("ALTER TABLE partita_second ADD COLUMN third bigint".into());
    steps
}

fn with_broken(engine: Engine) -> Vec<String> {
    let mut steps = with_second(engine);
    steps.push("INSERT INTO partita_second VALUES (3); SELECT 1 / 0".into());
    steps
}

fn format(url: &str) -> String {
    Postgres::sql(url, "SELECT value FROM partita_meta WHERE name = 'format'")
}

/// Six at once: what each of them found.
async fn six(options: &Options) -> Vec<Migration> {
    let runs: Vec<_> = (0..6).map(|_| tokio::spawn(migrate(options.clone()))).collect();
    let mut migrations = Vec::new();
    for run in runs {
        migrations.push(run.await.expect("it runs").expect("it migrates"));
    }
    migrations
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_is_made_once() {
    let Some(url) = support::database() else { return };
    let now = support::options(&url);
    let later = now.clone().with_steps(with_third);
    for migration in six(&now).await {
        assert_eq!(migration.format, 1);
    }
    for migration in six(&later).await {
        assert!(migration.found.is_some() && migration.format == 3, "{migration:?}");
    }
    assert_eq!(format(&url), "3");
    assert_eq!(Postgres::sql(&url, "SELECT n, third FROM partita_second"), "2|");
    assert_eq!(migrate(later.clone()).await, Ok(Migration { found: Some(3), format: 3 }));
    let refused = PostgresStore::open(now).await.expect_err("it is newer");
    assert!(refused.contains("newer version"), "{refused}");
    PostgresStore::open(later).await.expect("it is the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_gets_the_last_format_at_once() {
    let Some(url) = support::database() else { return };
    let later = support::options(&url).with_steps(with_third);
    let nodes: Vec<_> = (0..6).map(|_| tokio::spawn(PostgresStore::open(later.clone()))).collect();
    for node in nodes {
        node.await.expect("it runs").expect("nobody meets a format between");
    }
    assert_eq!(format(&url), "3");
    assert_eq!(Postgres::sql(&url, "SELECT n, third FROM partita_second"), "2|");
}

/// It saw an empty database; when it makes the tables, they are there.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_late_to_an_empty_database_changes_nothing() {
    let Some(url) = support::database() else { return };
    let late = migration_sql(support::options(&url).with_steps(with_second)).await.expect("it is empty");
    drop(support::open(&url).await);
    let refused = Postgres::try_sql(&url, &late).expect_err("somebody was faster");
    assert!(refused.contains("duplicate key"), "{refused}");
    assert_eq!(format(&url), "1");
    assert_eq!(Postgres::sql(&url, "SELECT to_regclass('partita_second') IS NULL"), "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_does_not_migrate() {
    let Some(url) = support::database() else { return };
    drop(support::open(&url).await);
    let later = support::options(&url).with_steps(with_second);
    let refused = PostgresStore::open(later.clone()).await.expect_err("it is older");
    assert!(refused.contains("have format 1") && refused.contains("needs 2") && refused.contains("partita migrate"));
    assert_eq!(format(&url), "1");
    let sql = migration_sql(later.clone()).await.expect("it is older");
    assert!(sql.contains("partita_second") && !sql.contains("partita_row"), "{sql}");
    Postgres::sql(&url, &sql);
    assert_eq!(migrate(later).await, Ok(Migration { found: Some(2), format: 2 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_leaves_the_format_before_it() {
    let Some(url) = support::database() else { return };
    drop(support::open(&url).await);
    let refused = migrate(support::options(&url).with_steps(with_broken)).await.expect_err("it is broken");
    assert!(refused.contains("division by zero"), "{refused}");
    assert_eq!(format(&url), "2");
    assert_eq!(Postgres::sql(&url, "SELECT n FROM partita_second"), "2");
    let mended = migrate(support::options(&url).with_steps(with_third)).await;
    assert_eq!(mended, Ok(Migration { found: Some(2), format: 3 }));
}
