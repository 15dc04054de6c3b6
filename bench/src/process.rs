//! Servers as child processes, which never outlive the benchmark.
//!
//! A process is ended when it goes out of scope, also in a panic. For an interrupt there is a list of all that run.

use crate::Result;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a server may take to stop by itself.
const STOP_TIME_MAX: Duration = Duration::from_secs(60);

/// What there is to end and to remove when the benchmark ends early.
#[derive(Default)]
struct Leftovers {
    processes: Vec<(Pid, Signal)>,
    folders: Vec<PathBuf>,
}

static LEFTOVERS: Mutex<Leftovers> = Mutex::new(Leftovers { processes: Vec::new(), folders: Vec::new() });

fn leftovers() -> MutexGuard<'static, Leftovers> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the benchmark and everything it started when the user interrupts it.
pub fn clean_up_when_interrupted() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate, mut hangup) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        });
        let leftovers = leftovers();
        for (pid, signal) in &leftovers.processes {
            let _ = kill_process(*pid, *signal);
        }
        for folder in &leftovers.folders {
            // A server that is just ending may still write.
            for _ in 0..10 {
                if std::fs::remove_dir_all(folder).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        std::process::exit(130);
    });
    Ok(())
}

/// A folder that is removed when it goes out of scope.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a new folder; an old one in its place is removed.
    pub fn new(path: PathBuf) -> Result<Folder> {
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        leftovers().folders.push(path.clone());
        Ok(Folder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        leftovers().folders.retain(|folder| folder != &self.0);
    }
}

/// A running child.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    stop_signal: Signal,
    /// When it was started.
    pub started: Instant,
}

impl Process {
    /// Starts a command. Its output is dropped unless the command says otherwise.
    pub fn start(command: &mut Command) -> Result<Process> {
        Process::start_with_signals(command, Signal::TERM, Signal::KILL)
    }

    /// Starts a command that has a signal of its own for ending in good order, and for ending at once.
    pub fn start_with_signals(command: &mut Command, stop: Signal, abort: Signal) -> Result<Process> {
        let started = Instant::now();
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))?;
        let pid = Pid::from_child(&child);
        leftovers().processes.push((pid, abort));
        Ok(Process { child, pid, stop_signal: stop, started })
    }

    /// Waits for a line of its output that holds `text`, and returns what follows it. Its output must be piped.
    pub fn wait_for_line(&mut self, text: &str) -> Result<String> {
        let stdout = self.child.stdout.take().ok_or("the output is not piped")?;
        let mut lines = BufReader::new(stdout).lines();
        for line in &mut lines {
            let line = line?;
            if let Some((_, rest)) = line.split_once(text) {
                // Whatever else it says must go somewhere, or it would wait.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(rest.trim().to_owned());
            }
        }
        Err(format!("it ended without saying '{text}'").into())
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it in good order.
    pub fn stop(mut self) -> Result<()> {
        kill_process(self.pid, self.stop_signal)?;
        let asked = Instant::now();
        while self.is_alive() {
            if asked.elapsed() > STOP_TIME_MAX {
                return Err("it does not stop when asked to".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Ends it in the middle of whatever it does.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let abort = leftovers().processes.iter().find(|(pid, _)| *pid == self.pid).map(|(_, signal)| *signal);
        if let (true, Some(signal)) = (self.is_alive(), abort) {
            let _ = kill_process(self.pid, signal);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        leftovers().processes.retain(|(pid, _)| *pid != self.pid);
    }
}
