//! Errors of the database, cut by what we do next.

use tokio_postgres::Error as PgError;
use tokio_postgres::error::{Severity, SqlState};

/// Why a statement was not answered as it should be.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another transaction was faster. Nothing was changed; trying again at once may help.
    Race,
    /// The connection is gone, or silent. A change that was sent may or may not have been made.
    Lost(String),
    /// The database takes no changes: it has become a standby, or somebody made it read-only.
    ReadOnly,
    /// The time of the statement was over. Nothing was changed.
    TimedOut,
    /// The keys are longer than the database can index. Nothing was changed.
    KeyTooLong,
    /// Nothing was changed, for a reason that may pass.
    Refused(String),
    /// What is stored cannot be read.
    Corrupt(String),
}

impl From<PgError> for Failure {
    fn from(error: PgError) -> Failure {
        let Some(found) = error.as_db_error() else { return Failure::Lost(words(&error)) };
        // What ends the connection may have come behind the end of the transaction.
        if matches!(found.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) {
            return Failure::Lost(words(&error));
        }
        let code = found.code();
        match code {
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => Failure::Race,
            &SqlState::READ_ONLY_SQL_TRANSACTION => Failure::ReadOnly,
            &SqlState::QUERY_CANCELED => Failure::TimedOut,
            &SqlState::PROGRAM_LIMIT_EXCEEDED => Failure::KeyTooLong,
            &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => Failure::Corrupt(words(&error)),
            // CockroachDB says so when a node died at the wrong moment.
            &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => Failure::Lost(words(&error)),
            code if code.code().starts_with("08") || code.code().starts_with("57P") => Failure::Lost(words(&error)),
            _ => Failure::Refused(words(&error)),
        }
    }
}

impl Failure {
    /// Whether the connection can be used for something else now.
    pub(crate) fn leaves_connection_sound(&self) -> bool {
        matches!(self, Failure::Race | Failure::TimedOut | Failure::KeyTooLong)
    }

    /// Says what happened, for a log.
    pub(crate) fn into_words(self) -> String {
        match self {
            Failure::Race => "too many others change the same rows".into(),
            Failure::ReadOnly => "the database is read-only".into(),
            Failure::TimedOut => "the database took too long".into(),
            Failure::KeyTooLong => "the keys are longer than the database can index".into(),
            Failure::Lost(why) | Failure::Refused(why) | Failure::Corrupt(why) => why,
        }
    }
}

/// What an error says with what is behind it. None of it holds a password.
pub(crate) fn words(error: &PgError) -> String {
    match error.as_db_error() {
        Some(found) => format!("the database says: {} ({})", found.message(), found.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
