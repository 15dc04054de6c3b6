//! A database whose disk is small enough to be filled.

use super::{Postgres, USER, run_as};
use std::process::{Command, Stdio};

impl Postgres {
    /// A server and the URL of a database on a disk of so many MiB, of which an empty database takes two. The disk is memory that
    /// only the server sees, and goes away with it. `None` where it cannot be had: the test is skipped, and says so.
    pub fn on_small_disk(mebibytes: usize) -> Option<(Postgres, String)> {
        let postgres = Postgres::make()?;
        let Some((user, group)) = postgres.owner else {
            eprintln!("SKIPPED: only root can make a small disk.");
            return None;
        };
        let disk = postgres.folder.join("disk");
        std::fs::create_dir(&disk).expect("the folder can be written to");
        let start = postgres.starting();
        let options = format!("size={mebibytes}m,uid={user},gid={group},mode=700");
        let script = r#"mount -t tmpfs -o "$1" tmpfs "$0" || exit 77; u=$2 g=$3; shift 3; exec setpriv --reuid "$u" --regid "$g" --clear-groups "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(&disk).args([
            &options,
            &user.to_string(),
            &group.to_string(),
        ]);
        command.arg(start.get_program()).args(start.get_args());
        run_as(None, &mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: a small disk cannot be mounted here.");
            return None;
        }
        let url = postgres.url(USER);
        Postgres::sql(&url, &format!("CREATE TABLESPACE small LOCATION '{}'", disk.display()));
        Postgres::sql(&url, "CREATE DATABASE small TABLESPACE small");
        let url = postgres.url("small");
        Some((postgres, url))
    }
}
