//! How far it is: a line that is written over on a terminal, a line now and then elsewhere.

use crate::count;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

const ON_TERMINAL: Duration = Duration::from_millis(100);
const ELSEWHERE: Duration = Duration::from_secs(10);
const BAR_CHARS: usize = 30;

/// Tells on the error stream how many rows were moved.
#[derive(Debug)]
pub struct Progress {
    began: Instant,
    told: Instant,
    /// Rows of an earlier run.
    before: u64,
    /// What it is about, if that has to be said.
    label: String,
    /// How much there is to read, if that is known.
    total: Option<u64>,
    is_terminal: bool,
    has_told: bool,
}

impl Progress {
    /// From the present on, behind rows that an earlier run has moved.
    pub fn new(before: u64, total: Option<u64>) -> Progress {
        let began = Instant::now();
        let (is_terminal, label) = (stderr().is_terminal(), String::new());
        Progress { began, told: began, before, label, total, is_terminal, has_told: false }
    }

    /// The same with a name for what it is about.
    pub fn of(self, label: &str) -> Progress {
        Progress { label: format!("{label}: "), ..self }
    }

    /// Tells if it is time.
    pub(crate) fn tell(&mut self, rows: u64, read: u64) {
        if self.told.elapsed() < if self.is_terminal { ON_TERMINAL } else { ELSEWHERE } {
            return;
        }
        self.told = Instant::now();
        let line = line(self.before, rows, self.began.elapsed(), self.total.map(|total| (read, total)));
        let line = format!("{}{line}", self.label);
        // Nobody may be listening, which is no reason to stop.
        let _ = match self.is_terminal {
            true => write!(stderr(), "\r{line}\x1b[K"),
            false => writeln!(stderr(), "partita: {line}"),
        };
        self.has_told = true;
    }

    /// Leaves the line free for what comes next.
    pub(crate) fn end(&mut self) {
        if self.is_terminal && self.has_told {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn line(before: u64, rows: u64, elapsed: Duration, read: Option<(u64, u64)>) -> String {
    let rate = rows as f64 / elapsed.as_secs_f64().max(0.001);
    let rows = format!("{}, {rate:.0} rows/s", count(before + rows, "row"));
    match read {
        Some((read, total)) if total > 0 => {
            let part = (read as f64 / total as f64).clamp(0.0, 1.0);
            let filled = (part * BAR_CHARS as f64) as usize;
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR_CHARS - filled));
            format!("[{bar}] {:.0} %, {rows}", part * 100.0)
        }
        _ => rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(line(5, 20, Duration::from_secs(2), None), "25 rows, 10 rows/s");
        let half = format!("[{}{}] 50 %, 20 rows, 10 rows/s", "#".repeat(15), ".".repeat(15));
        assert_eq!(line(0, 20, Duration::from_secs(2), Some((50, 100))), half);
        assert!(line(0, 0, Duration::ZERO, Some((200, 100))).contains("100 %"));
    }
}
