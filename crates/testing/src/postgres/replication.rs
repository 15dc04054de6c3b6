//! A second server that has all that the first acknowledged, and takes its place when it dies.

use super::{Postgres, USER, program};
use crate::http::PATIENCE;
use std::fs::read_to_string;
use std::process::Command;
use std::time::{Duration, Instant};

impl Postgres {
    /// A synchronous standby: from now on nothing is acknowledged here that is not there.
    pub fn standby(&self) -> Postgres {
        let standby = Postgres::prepare();
        standby.follow(self);
        standby
    }

    /// Becomes the synchronous standby of another server. What it had before is thrown away.
    pub fn follow(&self, primary: &Postgres) {
        if self.data().exists() {
            std::fs::remove_dir_all(self.data()).expect("a server that does not run holds on to nothing");
        }
        let source = format!("host=127.0.0.1 port={} user={USER}", primary.port);
        let mut copy = Command::new(program("pg_basebackup"));
        self.run(
            copy.args(["--checkpoint", "fast", "--no-sync", "--write-recovery-conf", "-d", &source, "-D"])
                .arg(self.data()),
        );
        self.start_again();
        // Set behind the copy, or the standby would wait for one of its own as soon as it is promoted.
        let url = primary.url(USER);
        Postgres::sql(&url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
        Postgres::sql(&url, "SELECT pg_reload_conf()");
        let begun = Instant::now();
        while Postgres::sql(&url, "SELECT sync_state FROM pg_stat_replication") != "sync" {
            assert!(begun.elapsed() < PATIENCE, "the standby does not follow");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the server and all its processes at once, as if the machine were gone.
    pub fn kill(&self) {
        let file = read_to_string(self.data().join("postmaster.pid")).expect("it runs");
        let postmaster = file.lines().next().expect("the first line is its number");
        // Stopped, it starts no further process while we look for those it has.
        signal("STOP", &[postmaster.to_owned()]);
        let processes = std::fs::read_dir("/proc").expect("there are processes").flatten();
        let processes = processes.filter_map(|entry| entry.file_name().into_string().ok());
        let mut family: Vec<String> = processes.filter(|id| parent(id).as_deref() == Some(postmaster)).collect();
        family.push(postmaster.to_owned());
        signal("KILL", &family);
        let begun = Instant::now();
        while family.iter().any(|id| is_alive(id)) {
            assert!(begun.elapsed() < PATIENCE, "a process outlives a kill");
            std::thread::sleep(Duration::from_millis(1));
        }
        // The lock on its folder, which it would have found at its next start.
        if let Some(lock) = file.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
            let _ = Command::new("ipcrm").args(["-m", lock]).output();
        }
    }

    /// Takes the place of the server it follows.
    pub fn promote(&self) {
        self.run(&mut self.control("promote"));
    }

    /// The URL of a database that is on this server and on another, whichever of them takes writes.
    pub fn url_with(&self, other: &Postgres, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{},127.0.0.1:{}/{database}", self.port, other.port)
    }
}

fn signal(name: &str, processes: &[String]) {
    // One that has ended by itself meanwhile is no failure.
    let command = format!("kill -{name} {}", processes.join(" "));
    let _ = Command::new("sh").args(["-c", &command]).output().expect("there is a shell");
}

/// The fields of the status of a process behind its name, which may hold anything.
fn status(id: &str) -> Option<Vec<String>> {
    let status = read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(status.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn parent(id: &str) -> Option<String> {
    status(id)?.get(1).cloned()
}

/// Whether it still does anything; one that nobody has asked about yet does not.
fn is_alive(id: &str) -> bool {
    status(id).and_then(|fields| fields.first().cloned()).is_some_and(|state| state != "Z" && state != "X")
}
