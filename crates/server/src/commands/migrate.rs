//! `partita migrate`: the tables of a database in the format of this version.

use super::block_on;
use crate::config::Secret;
use clap::Args;
use partita_store_postgres::{Migration, Options, migrate, migration_sql};

/// Makes the tables in a database, or brings those of an older version to the format of this one.
#[derive(Debug, Args)]
pub struct Migrate {
    /// The database, as postgres://user@host1,host2/database.
    #[arg(long, value_name = "URL", env = "PARTITA_STORE", hide_env_values = true)]
    store: Secret,
    /// Change nothing, and print the SQL that would be run.
    #[arg(long)]
    print: bool,
}

impl Migrate {
    /// Does it and says so.
    pub fn run(self) -> Result<(), String> {
        let options = Options::parse(&self.store.0)?;
        let store = options.to_string();
        if self.print {
            match block_on(migration_sql(options))? {
                sql if sql.is_empty() => println!("-- Nothing to do in {store}."),
                sql => print!(
                    "-- For {store}. The user of a node needs no more than to GRANT SELECT, INSERT, UPDATE, DELETE\n\
                     -- ON partita_row, partita_dropped, partita_floor, partita_meta.\n{sql}"
                ),
            }
            return Ok(());
        }
        let Migration { found, format } = block_on(migrate(options))?;
        match found {
            None => println!("Made the tables in {store}, format {format}."),
            Some(found) if found == format => println!("The tables in {store} have format {format} already."),
            Some(found) => println!("Brought the tables in {store} from format {found} to {format}."),
        }
        Ok(())
    }
}
