//! The tables in the database.
//!
//! Whoever starts first on an empty database makes them. Two who start at once may disturb one another in ways that
//! differ between databases, and all of them pass: whoever was disturbed looks again.

use crate::failure::words;
use crate::pool::jittered;
use crate::sql::{self, Engine};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error as PgError};

const TRIES: u32 = 20;

/// Makes the tables if there are none, and checks their format. An error is half a sentence for the user.
pub(crate) async fn ensure(client: &Client, engine: Engine) -> Result<(), String> {
    let mut tries = 0;
    loop {
        let error = match format_found(client).await {
            Ok(Some(sql::FORMAT)) => return Ok(()),
            Ok(Some(newer)) if newer > sql::FORMAT => {
                return Err(format!("its tables have format {newer}, made by a newer version of Partita"));
            }
            Ok(Some(other)) => return Err(format!("its tables have format {other}, which no version of Partita made")),
            Ok(None) => match client.batch_execute(&engine.schema()).await {
                Ok(()) => continue,
                Err(error) => error,
            },
            Err(error) => error,
        };
        tries += 1;
        if tries == TRIES || !is_disturbance(&error) {
            return Err(format!("its tables cannot be made: {}", words(&error)));
        }
        tokio::time::sleep(jittered(Duration::from_millis(100))).await;
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
