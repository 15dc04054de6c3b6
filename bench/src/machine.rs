//! What the system knows: the machine, and what processes use of it. Where there is no `/proc`, nothing is known.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::path::Path;
use std::time::{Duration, Instant};

/// A server is quiet when it does next to nothing for so long.
const QUIET_FOR: Duration = Duration::from_millis(400);
/// How long to wait for that.
const QUIET_WITHIN: Duration = Duration::from_secs(30);

/// Where the figures were measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The name of the processor.
    pub cpu: String,
    /// How many cores there are.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The system and its version.
    pub kernel: String,
}

impl Machine {
    /// This machine.
    pub fn here() -> Machine {
        let text = |path: &str| read_to_string(path).unwrap_or_default();
        let cpu_info = text("/proc/cpuinfo");
        let cpu = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let release = text("/proc/sys/kernel/osrelease");
        let version = release.split('-').next().unwrap_or_default().trim();
        Machine {
            cpu: cpu.map_or("unknown", |(_, name)| name).trim().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib(&text("/proc/meminfo"), "MemTotal:") / 1024,
            kernel: format!("{} {version}", std::env::consts::OS),
        }
    }
}

/// Bytes of memory that nobody uses, not even for files that were read.
pub fn free_memory() -> u64 {
    1024 * kib(&read_to_string("/proc/meminfo").unwrap_or_default(), "MemFree:")
}

/// Memory a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All that is resident, with the pages of mapped files.
    pub resident: u64,
    /// The part that belongs to no file.
    pub anonymous: u64,
}

/// Bytes of memory that processes hold. Pages that several of them share count once.
pub fn memory(family: &[u32]) -> Memory {
    let file = |pid: &u32, name: &str| read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let resident = |pid: &u32| match family.len() {
        1 => kib(&file(pid, "status"), "VmRSS:"),
        _ => kib(&file(pid, "smaps_rollup"), "Pss:"),
    };
    Memory {
        resident: 1024 * family.iter().map(resident).sum::<u64>(),
        anonymous: 1024 * family.iter().map(|pid| kib(&file(pid, "status"), "RssAnon:")).sum::<u64>(),
    }
}

/// Bytes that a folder takes on disk.
pub fn disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// Processor time used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    server: f64,
    load: f64,
    everybody: f64,
    available: f64,
}

impl CpuTime {
    /// Up to now; the server may be several processes.
    pub fn now(server: &[u32]) -> CpuTime {
        let total = read_to_string("/proc/stat").unwrap_or_default();
        let fields = total.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let fields: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        let available: f64 = fields.iter().sum();
        let idle: f64 = fields.iter().skip(3).take(2).sum();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        CpuTime {
            server: server.iter().copied().map(cpu_ticks).sum::<f64>() / ticks,
            load: cpu_ticks(std::process::id()) / ticks,
            everybody: (available - idle) / ticks,
            available: available / ticks,
        }
    }

    /// Seconds the server used since.
    pub fn server_since(&self, earlier: &CpuTime) -> f64 {
        self.server - earlier.server
    }

    /// The share of the machine that somebody else used since.
    pub fn others_since(&self, earlier: &CpuTime) -> f64 {
        let ours = self.server - earlier.server + self.load - earlier.load;
        let available = self.available - earlier.available;
        if available > 0.0 { ((self.everybody - earlier.everybody - ours) / available).max(0.0) } else { 0.0 }
    }
}

/// Waits until a server has done what it does in the background after it was filled.
pub fn wait_until_quiet(server: impl Fn() -> Vec<u32>) {
    let start = Instant::now();
    let mut before = CpuTime::now(&server());
    while start.elapsed() < QUIET_WITHIN {
        std::thread::sleep(QUIET_FOR);
        let after = CpuTime::now(&server());
        if after.server_since(&before) < 0.05 * QUIET_FOR.as_secs_f64() {
            break;
        }
        before = after;
    }
}

/// The fields of `/proc/PID/stat` behind the name, which may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn cpu_ticks(pid: u32) -> f64 {
    let Some(fields) = stat(pid) else { return 0.0 };
    fields.iter().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
}

/// A process and its children.
pub fn family(pid: u32) -> Vec<u32> {
    let numbers = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let is_child = |other: &u32| stat(*other).is_some_and(|fields| fields.get(1) == Some(&pid.to_string()));
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(numbers);
    std::iter::once(pid).chain(all.filter(is_child)).collect()
}

fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc() {
        let status = "Name:\tx\nVmRSS:\t   12 kB\nRssAnon:\t    4 kB\n";
        assert_eq!((kib(status, "VmRSS:"), kib(status, "RssAnon:"), kib(status, "VmSwap:")), (12, 4, 0));
    }

    #[test]
    fn others_are_everybody_without_us() {
        let start = CpuTime::default();
        let end = CpuTime { server: 1.0, load: 0.5, everybody: 1.75, available: 2.0 };
        assert_eq!((end.server_since(&start), end.others_since(&start)), (1.0, 0.125));
        assert_eq!(start.others_since(&start), 0.0);
    }
}
