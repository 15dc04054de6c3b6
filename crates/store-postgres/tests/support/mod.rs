//! Stores on databases of their own.

#![allow(dead_code, reason = "each test file uses a part of it")]

use partita_store::Clock;
use partita_store_postgres::{Options, PostgresStore};
use partita_testing::postgres::Postgres;

/// The URL of a new database, or `None` where there is no PostgreSQL.
pub(crate) fn database() -> Option<String> {
    Postgres::shared().map(Postgres::database)
}

pub(crate) fn options(url: &str) -> Options {
    Options::parse(url).expect("the URL is right")
}

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(options(url)).await.expect("the store opens")
}

pub(crate) async fn open_with_clock(url: &str, clock: Clock) -> PostgresStore {
    PostgresStore::open(options(url).with_clock(clock)).await.expect("the store opens")
}
