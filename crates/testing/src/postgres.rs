//! A PostgreSQL of the tests' own: real, in a folder that goes away, on a free port, run by somebody unprivileged.
//!
//! A shell waits beside it for the end of its input, which comes with the end of the test's process however that ends,
//! and then stops the database and removes the folder.

mod replication;
mod small_disk;

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The user inside the database, whoever runs it.
const USER: &str = "postgres";
/// Where packages of Debian have their programs, which are not on the path, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A running database server, stopped when it goes out of scope.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    folder: PathBuf,
    owner: Option<(u32, u32)>,
    databases: AtomicUsize,
    watch: Child,
    alive: Option<ChildStdin>,
}

impl Postgres {
    /// The server that all tests of a process share, each in a database of its own. `None` where PostgreSQL is not
    /// installed: then the test is skipped, and says so.
    pub fn shared() -> Option<&'static Postgres> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        SHARED.get_or_init(Postgres::start).as_ref()
    }

    /// A server for tests that stop it; `None` as with [`shared`](Postgres::shared).
    pub fn start() -> Option<Postgres> {
        let postgres = Postgres::make()?;
        postgres.start_again();
        Some(postgres)
    }

    /// A server that was not started yet.
    fn make() -> Option<Postgres> {
        if !Command::new(program("initdb")).arg("--version").output().is_ok_and(|output| output.status.success()) {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "PostgreSQL is missing: run scripts/setup test");
            eprintln!("SKIPPED: PostgreSQL is not installed; scripts/setup test installs it.");
            return None;
        }
        let postgres = Postgres::prepare();
        let init = ["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"];
        postgres.run(Command::new(program("initdb")).args(init).arg("-D").arg(postgres.data()));
        Some(postgres)
    }

    /// A folder and a port for a server, and the shell that waits beside it.
    fn prepare() -> Postgres {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("partita-postgres-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder can be made");
        let owner = unprivileged(&folder);
        if let Some((user, group)) = owner {
            chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
        }
        let script = r#"read end; "$0" stop -s -m immediate -D "$1/data"; rm -rf "$1""#;
        let mut watch = Command::new("sh");
        watch.args(["-c", script]).arg(program("pg_ctl")).arg(&folder).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut watch = run_as(owner, &mut watch).spawn().expect("there is a shell");
        let alive = watch.stdin.take();
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
        Postgres { port, folder, owner, databases: AtomicUsize::new(0), watch, alive }
    }

    /// Starts it after it was stopped.
    pub fn start_again(&self) {
        self.run(&mut self.starting());
    }

    fn starting(&self) -> Command {
        // Tests stop the server but not the machine, and what a process wrote outlives it. Nothing is outside of the folder,
        // so that nothing is left behind by one that was killed.
        let settings = format!(
            "-p {} -h 127.0.0.1 -k '' -c fsync=off -c max_connections=300 -c shared_buffers=64MB \
             -c dynamic_shared_memory_type=mmap -c wal_retrieve_retry_interval=100ms",
            self.port
        );
        let mut command = self.control("start");
        command.arg("-o").arg(settings).arg("-l").arg(self.folder.join("log"));
        command
    }

    /// Stops it: `smart`, `fast` or `immediate`, which is a crash.
    pub fn stop(&self, mode: &str) {
        self.run(self.control("stop").args(["-m", mode]));
    }

    /// The URL of a new database that is empty.
    pub fn database(&self) -> String {
        let name = format!("case{}", self.databases.fetch_add(1, Ordering::Relaxed));
        Postgres::sql(&self.url(USER), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Takes encrypted connections too from now on, with this certificate and key.
    pub fn use_tls(&self, certificate: &str, key: &str) {
        for (name, pem) in [("server.crt", certificate), ("server.key", key)] {
            let path = self.data().join(name);
            std::fs::write(&path, pem).expect("the folder can be written to");
            // A key that others can read is refused.
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("permissions can be set");
            if let Some((user, group)) = self.owner {
                chown(&path, Some(user), Some(group)).expect("root may give a file away");
            }
        }
        let url = self.url(USER);
        Postgres::sql(&url, "ALTER SYSTEM SET ssl = on");
        Postgres::sql(&url, "SELECT pg_reload_conf()");
    }

    /// The URL of a database that is there.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements in a database and returns what they say, a line for each row.
    #[track_caller]
    pub fn sql(url: &str, statements: &str) -> String {
        Postgres::try_sql(url, statements).unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// As [`Postgres::sql`]; an error is what the database says.
    pub fn try_sql(url: &str, statements: &str) -> Result<String, String> {
        let mut psql = Command::new(program("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statements]).arg(url);
        let output = psql.output().expect("psql can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn control(&self, what: &str) -> Command {
        let mut command = Command::new(program("pg_ctl"));
        command.args([what, "-s", "-w", "-t", "120", "-D"]).arg(self.data());
        command
    }

    fn run(&self, command: &mut Command) {
        run_as(self.owner, command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().expect("a program of PostgreSQL can be started");
        let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        assert!(status.success(), "{command:?}: {status}\n{}", log());
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.alive = None;
        let _ = self.watch.wait();
    }
}

/// Whom to run the server as, since it refuses to be run by root; `None` if we are not root.
fn unprivileged(folder: &Path) -> Option<(u32, u32)> {
    // A folder that was just made belongs to whoever made it.
    if folder.metadata().expect("it was made").uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("there are users");
    let user = |name: &str| {
        let mut fields = users.lines().find(|line| line.starts_with(&format!("{name}:")))?.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(user("postgres").or_else(|| user("nobody")).expect("there is an unprivileged user"))
}

fn run_as(owner: Option<(u32, u32)>, command: &mut Command) -> &mut Command {
    command.current_dir("/");
    match owner {
        Some((user, group)) => command.uid(user).gid(group),
        None => command,
    }
}

fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let program = |version| Path::new(DEBIAN).join(format!("{version}/bin/{name}"));
    versions.max().map(program).filter(|path| path.exists()).unwrap_or_else(|| name.into())
}
