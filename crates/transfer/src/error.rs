//! What can go wrong, cut by what the user does next.

use crate::Key;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a transfer ended. Printed it is a sentence.
#[derive(Debug)]
pub enum Error {
    /// The connection string or an option is not usable.
    Option(String),
    /// The service answered with an error that trying again would not change.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The error code of the service; empty if there was none.
        code: String,
        /// What it said.
        message: String,
        /// The entity it was said of.
        entity: Option<Key>,
    },
    /// The service did not answer, or was busy, for as long as we tried.
    Unavailable(String),
    /// A row of a file is not an entity.
    Row {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// A file cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        why: io::Error,
    },
    /// A source that is not a table was damaged.
    Damaged(String),
    /// The two ends of a copy do not go together.
    Different(String),
}

impl Error {
    /// An error of a file.
    pub fn file(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |why| Error::File { path: path.to_owned(), why }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Option(why) | Error::Damaged(why) | Error::Different(why) => f.write_str(why),
            Error::Refused { status, code, message, entity } => {
                if let Some(key) = entity {
                    write!(f, "{key}: ")?;
                }
                // The service adds its request id in further lines.
                let message = message.lines().next().unwrap_or_default().trim_end_matches('.');
                match code.is_empty() {
                    true => write!(f, "the service answered {status}."),
                    false => write!(f, "the service answered {status} {code}: {message}."),
                }
            }
            Error::Unavailable(why) => write!(f, "The service cannot be reached: {why}."),
            Error::Row { file, line, why } => write!(f, "Line {line} of {file} is not an entity: {why}."),
            Error::File { path, why } => write!(f, "Cannot use {}: {why}.", path.display()),
        }
    }
}

impl std::error::Error for Error {}
