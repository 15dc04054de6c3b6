//! The tables in the database, and their format.
//!
//! [`Engine::steps`](crate::sql::Engine::steps) lead to the format of this version. On an empty database whoever comes
//! first makes all of them in one transaction. From an older format each is a transaction of its own, which holds the row
//! of the format, so that of several who migrate at once one makes the step and the others find it made. They may disturb
//! one another in ways that differ between databases, and all of them pass: whoever was disturbed looks again.

use crate::Options;
use crate::failure::words;
use crate::pool::{Pool, jittered};
use crate::sql;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error as PgError};

const TRIES: u32 = 20;

/// What a migration has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The format that was found, or `None` where there were no tables.
    pub found: Option<i64>,
    /// The format of the tables now.
    pub format: i64,
}

/// Makes the tables, or brings them to the format of this version. An error is a sentence for the user.
pub async fn migrate(options: Options) -> Result<Migration, String> {
    let pool = Pool::new(options);
    let unusable = |why| pool.unusable(why);
    let client = pool.reach().await.map_err(unusable)?;
    bring(&client, &pool.steps(), true).await.map_err(unusable)
}

/// What [`migrate`] would do, in SQL for somebody else to run; empty if there is nothing to do. An error is a sentence.
pub async fn migration_sql(options: Options) -> Result<String, String> {
    let pool = Pool::new(options);
    let unusable = |why| pool.unusable(why);
    let client = pool.reach().await.map_err(unusable)?;
    let steps = pool.steps();
    let found = format_found(&client).await.map_err(|error| unusable(words(&error)))?;
    check(found, &steps).map_err(unusable)?;
    let Some(found) = found else {
        return Ok(format!("BEGIN;\n{};\nCOMMIT;\n", creation(&steps)));
    };
    let upgrade = |(from, step): (usize, &String)| {
        format!("BEGIN;\n{};\n{step};\n{};\nCOMMIT;\n", sql::FORMAT_LOCKED, sql::format_raised(from as i64))
    };
    Ok(steps.iter().enumerate().skip(found as usize).map(upgrade).collect())
}

/// Makes the tables if there are none, and checks their format. An error is half a sentence for the user.
pub(crate) async fn ensure(client: &Client, steps: &[String]) -> Result<(), String> {
    bring(client, steps, false).await.map(drop)
}

/// Brings the tables to the last format: from nothing, and from an older one if that is wanted.
async fn bring(client: &Client, steps: &[String], upgrades: bool) -> Result<Migration, String> {
    let format = steps.len() as i64;
    let mut first_found = None;
    let mut tries = 0;
    loop {
        let error = match format_found(client).await {
            Ok(found) => {
                check(found, steps)?;
                let first_found = *first_found.get_or_insert(found);
                let made = match found {
                    Some(found) if found == format => return Ok(Migration { found: first_found, format }),
                    Some(found) if !upgrades => {
                        return Err(format!(
                            "its tables have format {found}, and this version of Partita needs {format}: stop all nodes \
                             and run partita migrate"
                        ));
                    }
                    Some(found) => upgrade(client, found, &steps[found as usize]).await,
                    None => create(client, steps).await,
                };
                match made {
                    Ok(()) => continue,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        tries += 1;
        if tries == TRIES || !is_disturbance(&error) {
            let hint = match error.code() {
                Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    "; partita migrate --print shows what somebody who may has to run"
                }
                _ => "",
            };
            return Err(format!("its tables cannot be made: {}{hint}", words(&error)));
        }
        tokio::time::sleep(jittered(Duration::from_millis(100))).await;
    }
}

/// Whether we know the format. An error is half a sentence.
fn check(found: Option<i64>, steps: &[String]) -> Result<(), String> {
    match found {
        Some(newer) if newer > steps.len() as i64 => {
            Err(format!("its tables have format {newer}, made by a newer version of Partita"))
        }
        Some(other @ ..=0) => Err(format!("its tables have format {other}, which no version of Partita made")),
        _ => Ok(()),
    }
}

/// The format of the tables, or `None` if there are none.
async fn format_found(client: &Client) -> Result<Option<i64>, PgError> {
    match client.query_opt(sql::FORMAT_FOUND, &[]).await {
        Ok(row) => Ok(row.map(|row| row.get(0))),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error),
    }
}

/// All steps, and the format they lead to, which fails where there is one: then nothing was changed.
fn creation(steps: &[String]) -> String {
    format!("{};\n{}", steps.join(";\n"), sql::format_made(steps.len() as i64))
}

/// Makes the tables, unless somebody else has made them meanwhile.
async fn create(client: &Client, steps: &[String]) -> Result<(), PgError> {
    let made = client.batch_execute(&creation(steps)).await;
    // A step may fail in any way on tables that are there already.
    let is_overtaken = made.is_err() && matches!(format_found(client).await, Ok(Some(_)));
    if is_overtaken { Ok(()) } else { made }
}

/// Makes one step, unless somebody else has made it meanwhile.
async fn upgrade(client: &Client, found: i64, step: &str) -> Result<(), PgError> {
    let made = async {
        // To write all rows anew may take long.
        client.batch_execute("BEGIN; SET LOCAL statement_timeout = 0").await?;
        let format: i64 = client.query_one(sql::FORMAT_LOCKED, &[]).await?.get(0);
        if format == found {
            client.batch_execute(&format!("{step}; {}", sql::format_raised(found))).await?;
        }
        client.batch_execute("COMMIT").await
    };
    let made = made.await;
    if made.is_err() {
        let _ = client.batch_execute("ROLLBACK").await;
    }
    made
}

/// Whether the failure comes from somebody who makes the same tables.
fn is_disturbance(error: &PgError) -> bool {
    let disturbances = [
        &SqlState::UNIQUE_VIOLATION,
        &SqlState::DUPLICATE_TABLE,
        &SqlState::DUPLICATE_OBJECT,
        &SqlState::T_R_SERIALIZATION_FAILURE,
        &SqlState::T_R_DEADLOCK_DETECTED,
        // "tuple concurrently updated".
        &SqlState::INTERNAL_ERROR,
    ];
    error.code().is_some_and(|code| disturbances.contains(&code))
}
