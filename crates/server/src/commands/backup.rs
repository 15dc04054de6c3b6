//! `partita backup`: a consistent copy of the data while the server goes on.

use super::{Location, expect_data, size};
use crate::backup::{self, NewFolder};
use crate::control;
use clap::Args;
use partita_store_rocksdb::{Options, RocksStore};
use partita_transfer::count;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Copies the data folder into a new folder, as of one moment and while the server goes on.
#[derive(Debug, Args)]
pub struct Backup {
    #[command(flatten)]
    data: Location,
    /// The folder to make; it must not exist, or be empty.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Share no file with the data, even on the same file system.
    #[arg(long)]
    copy: bool,
}

impl Backup {
    /// Makes the backup and says so.
    pub fn run(&self) -> Result<(), String> {
        let began = SystemTime::now();
        let data = &self.data.location;
        expect_data(data)?;
        let folder = NewFolder::prepare(&self.to)?;
        let made = checkpoint(data, &folder.partial)
            .and_then(|()| backup::Backup::write(&folder.partial, self.copy, began).map_err(|error| error.to_string()));
        match made {
            Err(why) => {
                folder.abandon();
                Err(format!("No backup of {} was made: {why}.", data.display()))
            }
            Ok(backup) => {
                let unfinished = |error| format!("No backup of {} was made: {error}.", data.display());
                folder.finish().map_err(unfinished)?;
                let files = count(backup.files.len() as u64, "file");
                println!("{} is a backup of {files}, {}.", self.to.display(), size(backup.bytes()));
                Ok(())
            }
        }
    }
}

/// Has the server make a checkpoint, or makes it where there is none. An error is the reason.
fn checkpoint(data: &Path, to: &Path) -> Result<(), String> {
    let data = fs::canonicalize(data).map_err(|error| error.to_string())?;
    match control::ask_for_backup(&data, to) {
        Some(made) => made,
        None => {
            let store = RocksStore::open(&data, Options::default());
            let store = store.map_err(|error| error.to_string().trim_end_matches('.').to_owned())?;
            store.checkpoint(to).map_err(|error| error.to_string())
        }
    }
}
