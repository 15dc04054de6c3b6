//! The real binary as a process of its own.

use crate::http::{Connection, PATIENCE, Request, Response, ask_admin};
use crate::signing;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Which of its streams a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Stdout,
    Stderr,
}

/// A running server, killed when it goes out of scope.
pub struct Process {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    child: Child,
    lines: Receiver<(From, String)>,
    /// What it has said so far.
    pub said: Vec<(From, String)>,
}

impl Process {
    /// Starts on free ports with these further arguments, and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Process {
        Process::try_start(arguments).unwrap_or_else(|(status, said)| panic!("{status}\n{said}"))
    }

    /// Starts with its data in a folder.
    pub fn on(folder: &Path, arguments: &[&str]) -> Process {
        let location = ["--location", folder.to_str().expect("a path that is text")];
        Process::start(&[&location, arguments].concat())
    }

    /// As [`Process::start`]; an error is how it ended and what it said.
    pub fn try_start(arguments: &[&str]) -> Result<Process, (ExitStatus, String)> {
        let mut command = command();
        command.args(["--table-port", "0", "--admin-port", "0"]).args(arguments);
        Process::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Result<Process, (ExitStatus, String)> {
        let mut child = command.spawn().expect("the binary can be started");
        let (sender, lines) = channel();
        follow(From::Stdout, child.stdout.take().expect("it is piped"), sender.clone());
        follow(From::Stderr, child.stderr.take().expect("it is piped"), sender);
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut process = Process { address: nowhere, admin: nowhere, child, lines, said: Vec::new() };
        // The address of the metrics is the last it says before it serves.
        while process.admin == nowhere {
            let Some(line) = process.line() else {
                let status = process.child.wait().expect("it was started");
                return Err((status, process.said_text()));
            };
            let address = |text: &str| text.parse().unwrap_or_else(|_| panic!("no address in {line}"));
            if let Some((_, url)) = line.split_once("successfully listens on ") {
                process.address = address(url.rsplit('/').next().unwrap_or_default());
            } else if let Some(url) = line.strip_prefix("Metrics: http://") {
                process.admin = address(url.trim_end_matches("/metrics"));
            }
        }
        Ok(process)
    }

    /// The next line it says; `None` when it has ended.
    fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok((from, line)) => {
                self.said.push((from, line.clone()));
                Some(line)
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(timeout) => panic!("{timeout}; it said\n{}", self.said_text()),
        }
    }

    /// Waits for a line that holds `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            match self.line() {
                Some(line) if line.contains(text) => return line,
                Some(_) => {}
                None => panic!("it ended without saying '{text}', but\n{}", self.said_text()),
            }
        }
    }

    /// Waits for its end.
    pub fn wait(mut self) -> (ExitStatus, String) {
        while self.line().is_some() {}
        let status = self.child.wait().expect("it was started");
        (status, self.said_text())
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &command]).status().expect("there is a shell");
        assert!(sent.success(), "{command}");
    }

    /// Ends it in the middle of whatever it does.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was started");
    }

    /// Ends it in good order and says what it said.
    #[track_caller]
    pub fn stop(self) -> String {
        self.signal("TERM");
        let (status, said) = self.wait();
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }

    /// The most memory it ever had, in bytes, as far as the system tells.
    pub fn memory_peak(&self) -> Option<usize> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        peak.trim().strip_suffix(" kB")?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
    }

    pub fn said_text(&self) -> String {
        self.said.iter().map(|(_, line)| format!("{line}\n")).collect()
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// Sends a request on a connection of its own, signed with the account key unless it is signed already.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        self.connect().send(&request.signed())
    }

    /// Asks the admin port.
    #[track_caller]
    pub fn ask_admin(&self, path: &str) -> Response {
        ask_admin(self.admin, path)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary, which was built beside the test that runs; `PARTITA_BINARY` names another.
pub fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("PARTITA_BINARY") {
        return binary.into();
    }
    let test = std::env::current_exe().expect("a test is a file");
    let built = test.ancestors().map(|folder| folder.join("partita")).find(|binary| binary.is_file());
    built.unwrap_or_else(|| panic!("no partita near {}: build it first", test.display()))
}

/// The binary with nothing of the environment that would set it up.
pub fn command() -> Command {
    command_of(&binary())
}

/// As [`command`], of another binary.
pub fn command_of(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PARTITA_")
            || name == "AZURITE_ACCOUNTS"
            || name == "AZURE_STORAGE_CONNECTION_STRING"
        {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary to its end: status, and what it said on its two streams.
pub fn run(arguments: &[&str]) -> (ExitStatus, String, String) {
    let output = command().args(arguments).output().expect("the binary can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status, text(&output.stdout), text(&output.stderr))
}

/// The argument that gives the accounts of the tests.
pub fn accounts_argument() -> String {
    let (account, key, key_two) = (signing::ACCOUNT, signing::KEY, signing::KEY_TWO);
    format!("--accounts={account}:{key}:{key_two};{}:{}", signing::OTHER_ACCOUNT, signing::OTHER_KEY)
}

fn follow(from: From, stream: impl Read + Send + 'static, lines: Sender<(From, String)>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if lines.send((from, line)).is_err() {
                return;
            }
        }
    });
}
