//! `partita restore`: a data folder from a backup.

use super::{Location, size};
use crate::backup::{Backup, NewFolder};
use clap::Args;
use std::path::PathBuf;

/// Makes a data folder from a backup, which stays as it is.
#[derive(Debug, Args)]
pub struct Restore {
    /// The backup.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    #[command(flatten)]
    data: Location,
}

impl Restore {
    /// Makes the folder and says so.
    pub fn run(&self) -> Result<(), String> {
        let backup = Backup::read(&self.from)?;
        let data = &self.data.location;
        let folder = NewFolder::prepare(data)?;
        if let Err(why) = backup.copy_to(&self.from, &folder.partial) {
            folder.abandon();
            return Err(why);
        }
        folder.finish().map_err(|error| format!("Cannot make {}: {error}.", data.display()))?;
        println!("{} holds the data of {}, {}.", data.display(), backup.date, size(backup.bytes()));
        Ok(())
    }
}
