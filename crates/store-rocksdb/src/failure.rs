//! RocksDB's errors in the words of the contract, and the failure that ends all writing.

use partita_store::Error;
use rocksdb::ErrorKind;
use std::sync::OnceLock;

/// An error of a read.
pub(crate) fn read_error(error: rocksdb::Error) -> Error {
    match error.kind() {
        ErrorKind::Corruption => Error::Corrupt(error.into_string()),
        _ => Error::Unavailable(error.into_string()),
    }
}

/// Set once a write or sync has failed. What is in the log is then unknown, and a sync that is tried again may report
/// success though the kernel has already thrown the pages away. So nothing is written until the folder is opened anew,
/// which reads the log as it is.
#[derive(Debug, Default)]
pub(crate) struct Failure(OnceLock<String>);

impl Failure {
    /// Remembers the first failure.
    pub(crate) fn set(&self, why: &str) {
        // A second failure tells nothing that the first did not.
        let _ = self.0.set(why.to_owned());
    }

    /// Nothing, or the error for whoever wants to write after a failure.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.0.get() {
            None => Ok(()),
            Some(why) => Err(Error::WritesRefused(why.clone())),
        }
    }

    /// What failed.
    pub(crate) fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
}
