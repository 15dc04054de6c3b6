//! Power cuts under load. See `docs/reliability.md` for the model of the disk and how to replay a failure.
//!
//! Clients write to the real binary while the library records what it does to its files. From the one trace any number of disks is
//! built: of any moment, each with another part of what was not yet durable. A server is started on each of them, and what it
//! shows is compared with what the clients had been promised at that moment.
//!
//! `SEED` repeats a run as far as the machine does, `CUTS` sets how many disks each test looks at.

#![cfg(target_os = "linux")]

use partita_faults::disk::Disk;
use partita_faults::image::{Image, Survival};
use partita_faults::load::{Load, Promise, read_all};
use partita_faults::random::Random;
use partita_faults::trace::{self, Record};
use partita_testing::http::PATIENCE;
use partita_testing::process::Process;
use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const CLIENTS: usize = 4;
/// A sync takes at least this long, so that commits gather behind it as they do on a disk.
const SYNC: &str = "sync-micros 300\n";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

struct Test {
    name: &'static str,
    seed: u64,
    random: Random,
    load: Load,
    value_bytes: u64,
    arguments: Vec<&'static str>,
    location: &'static str,
    images: usize,
}

impl Test {
    fn new(name: &'static str, value_bytes: u64, arguments: &[&'static str]) -> Test {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |elapsed| u64::from(elapsed.subsec_nanos()));
        let seed = number("SEED").unwrap_or(now);
        println!("{name}: SEED={seed}");
        let load = Load::new(CLIENTS, value_bytes, seed);
        let (random, arguments) = (Random::new(seed), arguments.to_vec());
        Test { name, seed, random, load, value_bytes, arguments, location: "data", images: 0 }
    }

    /// How many disks to look at, of so many by default.
    fn cuts(by_default: u64) -> usize {
        number("CUTS").unwrap_or(by_default) as usize
    }

    fn start(&self, disk: &Disk) -> Process {
        disk.control(SYNC);
        disk.start(&self.arguments)
    }

    /// A disk after a cut at one of the records of the trace, and the moment of the cut.
    fn cut(&mut self, disk: &Disk, trace: &[u8], survival: Survival) -> (Image, u64) {
        let ends = record_ends(trace);
        // One in four at the end, where all that the clients know counts.
        let cut = match self.random.below(4) {
            0 => *ends.last().expect("the trace has records"),
            _ => ends[self.random.up_to(ends.len() - 1)],
        };
        (disk.model(trace, cut).image(survival, &mut self.random), cut)
    }

    /// What a server finds on an image.
    fn look(&mut self, image: &Image, cut: u64, promise: Promise) -> Result<Vec<usize>, String> {
        self.images += 1;
        let disk = Disk::new(image.clone(), self.location);
        let process = match disk.start_untraced(&self.arguments) {
            Ok(process) => process,
            Err((status, said)) => return Err(format!("the server does not start: {status}\n{said}")),
        };
        let found = read_all(&process, self.value_bytes)?;
        self.load.check(cut, promise, &found)
    }

    /// As [`Test::look`]; a failure says how to replay it, and leaves the disk.
    fn expect(&mut self, image: &Image, cut: u64, promise: Promise) -> Vec<usize> {
        self.look(image, cut, promise).unwrap_or_else(|why| {
            let kept = tempfile::tempdir().expect("a temporary folder").keep();
            image.write_to(&kept).expect("a folder of our own");
            panic!("{}, SEED={}: cut at {cut}: {why}\nthe disk is in {}", self.name, self.seed, kept.display())
        })
    }

    fn survival(&mut self) -> Survival {
        match self.random.below(6) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            _ => Survival::Part,
        }
    }
}

fn record_ends(trace: &[u8]) -> Vec<u64> {
    let mut rest = trace;
    let mut ends = Vec::new();
    while trace::decode(&mut rest).is_some() {
        ends.push((trace.len() - rest.len()) as u64);
    }
    ends
}

/// Load, cut, look at several of the disks it may have left, and go on from one of them.
fn cut_again_and_again(test: &mut Test, images: usize, changes_max: u64, promise: impl Fn(&[u8], u64) -> Promise) {
    let mut base = Image::default();
    let mut changes = 0;
    while test.images < images {
        let disk = Disk::new(base, test.location);
        let process = test.start(&disk);
        let count = 1 + test.random.below(changes_max) as usize;
        test.load.run(process, &disk.trace_path(), count, Process::kill);
        changes += test.load.acknowledged();
        let trace = disk.trace();
        for _ in 0..5 {
            let survival = test.survival();
            let (image, cut) = test.cut(&disk, &trace, survival);
            test.expect(&image, cut, promise(&trace, cut));
        }
        let (image, cut) = test.cut(&disk, &trace, Survival::Part);
        let kept = test.expect(&image, cut, promise(&trace, cut));
        test.load.settle(&kept);
        base = image;
    }
    println!("{}: {} disks after {changes} acknowledged changes", test.name, test.images);
}

#[test]
fn sync_loses_nothing() {
    let mut test = Test::new("sync_loses_nothing", 20_000, &[]);
    cut_again_and_again(&mut test, Test::cuts(24), 400, |_, _| Promise::Acknowledged);
}

/// With small write buffers, so that files are written out, merged and removed all the time.
#[test]
fn sync_loses_nothing_while_files_come_and_go() {
    let mut test = Test::new("sync_loses_nothing_while_files_come_and_go", 30_000, &["--write-buffer-mib=1"]);
    cut_again_and_again(&mut test, Test::cuts(18), 1500, |_, _| Promise::Acknowledged);
}

/// What was written before the last sync of the log began is there, and of the rest no half.
#[test]
fn interval_loses_what_was_not_yet_synced() {
    let arguments = ["--durability=interval", "--sync-interval-ms=20"];
    let mut test = Test::new("interval_loses_what_was_not_yet_synced", 5_000, &arguments);
    cut_again_and_again(&mut test, Test::cuts(18), 1500, |trace, cut| {
        Promise::AcknowledgedBefore(last_log_sync(trace, cut).unwrap_or(0))
    });
}

#[test]
fn none_loses_from_the_end_only() {
    let mut test = Test::new("none_loses_from_the_end_only", 5_000, &["--durability=none"]);
    cut_again_and_again(&mut test, Test::cuts(18), 1500, |_, _| Promise::Order);
}

/// Logs are left before they were synced, so that of two logs the newer one may have survived.
#[test]
fn none_loses_from_the_end_only_while_files_come_and_go() {
    let arguments = ["--durability=none", "--write-buffer-mib=1"];
    let mut test = Test::new("none_loses_from_the_end_only_while_files_come_and_go", 30_000, &arguments);
    cut_again_and_again(&mut test, Test::cuts(24), 800, |_, _| Promise::Order);
}

/// The last write before a pause is synced too, by itself.
#[test]
fn an_interval_syncs_without_further_writes() {
    let arguments = ["--durability=interval", "--sync-interval-ms=20"];
    let mut test = Test::new("an_interval_syncs_without_further_writes", 100, &arguments);
    let disk = Disk::new(Image::default(), test.location);
    let process = test.start(&disk);
    let trace = disk.trace_path();
    let length = || fs::metadata(&trace).expect("the trace is there").len();
    let waited = test.load.run(process, &trace, 20, |process| {
        // Clients go on until the server stops; what counts is what they had been told by now.
        let (told, deadline) = (length(), Instant::now() + PATIENCE);
        let began = Instant::now();
        while last_log_sync(&disk.trace(), u64::MAX).unwrap_or(0) < told {
            assert!(Instant::now() < deadline, "no sync of the log within {PATIENCE:?}");
        }
        let waited = began.elapsed();
        process.kill();
        (waited, told)
    });
    println!("synced after {:?}", waited.0);
    let trace = disk.trace();
    let image = disk.model(&trace, u64::MAX).image(Survival::Nothing, &mut test.random);
    test.expect(&image, u64::MAX, Promise::AcknowledgedBefore(waited.1));
}

/// A process that ends leaves writes behind that were not synced; the next one reads them. Once they were read they must not go.
#[test]
fn what_was_found_after_a_kill_survives_a_cut() {
    let mut test = Test::new("what_was_found_after_a_kill_survives_a_cut", 20_000, &[]);
    let images = Test::cuts(24);
    while test.images < images {
        test.load = Load::new(CLIENTS, test.value_bytes, test.random.next_number());
        let disk = Disk::new(Image::default(), test.location);
        for _ in 0..3 {
            let process = test.start(&disk);
            let found = read_all(&process, test.value_bytes).expect("the rows are read");
            let kept = test.load.check(u64::MAX, Promise::Acknowledged, &found);
            let kept = kept.unwrap_or_else(|why| panic!("SEED={}: after a kill {why}", test.seed));
            test.load.settle_seen(&kept, &disk.trace_path());
            let count = 1 + test.random.below(100) as usize;
            test.load.run(process, &disk.trace_path(), count, Process::kill);
            disk.undo_unrecorded();
        }
        let trace = disk.trace();
        for survival in
            [Survival::Nothing, Survival::Part, Survival::Part, Survival::Part, Survival::Part, Survival::Part]
        {
            let (image, cut) = test.cut(&disk, &trace, survival);
            test.expect(&image, cut, Promise::Acknowledged);
        }
    }
}

/// The first write of a server whose folder, and the folders above it, were not there.
#[test]
fn the_first_write_survives_in_a_new_folder() {
    let mut test = Test::new("the_first_write_survives_in_a_new_folder", 100, &[]);
    test.location = "new/folder/data";
    for _ in 0..2 {
        test.load = Load::new(2, test.value_bytes, test.random.next_number());
        let disk = Disk::new(Image::default(), test.location);
        let process = test.start(&disk);
        test.load.run(process, &disk.trace_path(), 1, Process::kill);
        let trace = disk.trace();
        for survival in [Survival::Nothing, Survival::Part] {
            let image = disk.model(&trace, u64::MAX).image(survival, &mut test.random);
            test.expect(&image, u64::MAX, Promise::Acknowledged);
        }
    }
}

/// A server that was closed in order is whole on the disk, whatever its durability.
#[test]
fn a_closed_server_survives_a_cut() {
    for durability in ["--durability=interval", "--durability=none"] {
        let mut test = Test::new("a_closed_server_survives_a_cut", 5_000, &[]);
        test.arguments = vec![durability];
        let disk = Disk::new(Image::default(), test.location);
        let process = test.start(&disk);
        test.load.run(process, &disk.trace_path(), 200, Process::stop);
        let trace = disk.trace();
        let image = disk.model(&trace, u64::MAX).image(Survival::Nothing, &mut test.random);
        test.expect(&image, u64::MAX, Promise::Acknowledged);
    }
}

/// The proof that the tests above can fail: a server that acknowledges before it syncs, held to the promise of `sync`.
#[test]
fn a_server_that_acknowledges_before_it_syncs_is_caught() {
    let mut test = Test::new("a_server_that_acknowledges_before_it_syncs_is_caught", 5_000, &["--durability=none"]);
    let disk = Disk::new(Image::default(), test.location);
    let process = test.start(&disk);
    test.load.run(process, &disk.trace_path(), 100, Process::kill);
    let trace = disk.trace();
    for survival in [Survival::Nothing, Survival::Part] {
        let caught = (0..20).any(|_| {
            let image = disk.model(&trace, u64::MAX).image(survival, &mut test.random);
            test.look(&image, u64::MAX, Promise::Acknowledged).is_err()
        });
        assert!(caught, "{survival:?} lost nothing in {} disks", test.images);
    }
    let image = disk.model(&trace, u64::MAX).image(Survival::Everything, &mut test.random);
    test.expect(&image, u64::MAX, Promise::Acknowledged);
}

/// The length of the trace when the last sync of the newest log began that had ended before the cut.
fn last_log_sync(trace: &[u8], cut: u64) -> Option<u64> {
    let mut rest = trace;
    let mut logs = std::collections::BTreeMap::new();
    let mut newest = None;
    let mut last = None;
    while let Some(record) = trace::decode(&mut rest) {
        if (trace.len() - rest.len()) as u64 > cut {
            break;
        }
        match record {
            Record::Open { fd, path, created: true, .. } if path.ends_with(b".log") => {
                logs.insert(fd, path.to_vec());
                newest = Some(fd);
            }
            Record::Close { fd } => drop(logs.remove(&fd)),
            Record::Sync { fd, began } if Some(fd) == newest && logs.contains_key(&fd) => last = Some(began),
            _ => {}
        }
    }
    last
}
