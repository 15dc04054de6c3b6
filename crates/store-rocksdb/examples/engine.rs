//! Measures the engine by itself, without HTTP: how fast it loads, reads, inserts, scans and opens, and what it takes of
//! memory and disk meanwhile. The rows look like entities of ten properties and about a kilobyte.
//!
//! ```text
//! cargo run --release --example engine -- load --rows 1000000 --folder /var/tmp/engine
//! cargo run --release --example engine -- get --rows 1000000 --folder /var/tmp/engine --tasks 2
//! cargo run --release --example engine -- all
//! ```
//!
//! Without a folder the rows go to a temporary one, which is loaded first. Compare two versions by running them in
//! turns: other work on the machine moves figures more than most changes do.

use bytes::Bytes;
use clap::{Parser, ValueEnum};
use partita_model::{Guid, Record, Ticks, Value, ValueRef};
use partita_store::{Action, Batch, Expect, Item, Position, RowRef, Scan, ScanEnd, Sieve, Space, Step, Store};
use partita_store_rocksdb::{Durability, Options, RocksStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};
use tokio::task::JoinSet;

// As in the server, so that memory is what it is there.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const SPACE: Space = Space(1);
const LOAD_TASKS: u64 = 16;
const LOAD_BATCH_ROWS: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Mode {
    /// Fills the folder, in transactions of a hundred.
    Load,
    /// Reads random rows, each task one after another.
    Get,
    /// Inserts rows one by one, each task when its last is durable.
    Insert,
    /// Reads a hundred consecutive rows from random places.
    Range,
    /// Reads all rows and wants ten of them.
    Scan,
    /// Opens and closes the folder.
    Open,
    /// All of these.
    All,
}

#[derive(Clone, Debug, Parser)]
struct Arguments {
    mode: Mode,
    /// Where the rows are.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// How many rows there are.
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// Among how many partitions.
    #[arg(long, default_value_t = 100)]
    partitions: u64,
    /// How many ask at once.
    #[arg(long, default_value_t = 16)]
    tasks: u64,
    /// How long each measurement takes.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How often it is repeated.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Of how many of the rows the reads are.
    #[arg(long)]
    hot: Option<u64>,
    /// Lets the engine look for rows on several threads or not.
    #[arg(long)]
    one_by_one: bool,
    /// Leaves it to the operating system when commits are on the disk.
    #[arg(long)]
    no_sync: bool,
    #[arg(long)]
    cache_mib: Option<usize>,
}

fn main() {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads start");
    let temporary = arguments.folder.is_none().then(|| tempfile::tempdir_in(beside_program()).expect("a folder"));
    let folder = arguments.folder.clone().or(temporary.as_ref().map(|folder| folder.path().to_owned()));
    let folder = folder.expect("one of the two");
    runtime.block_on(async {
        let modes = match arguments.mode {
            Mode::All => &[Mode::Load, Mode::Open, Mode::Get, Mode::Range, Mode::Scan, Mode::Insert][..],
            Mode::Load => &[Mode::Load],
            ref one if temporary.is_some() => &[Mode::Load, *one],
            ref one => &[*one],
        };
        for mode in modes {
            measure(*mode, &arguments, &folder).await;
        }
    });
}

/// A disk, unlike the folder for temporary files, which may be memory.
fn beside_program() -> PathBuf {
    let program = std::env::current_exe().expect("the path of the program");
    program.parent().expect("a program is in a folder").to_owned()
}

async fn measure(mode: Mode, arguments: &Arguments, folder: &Path) {
    let open = || {
        let mut options = Options::default();
        if let Some(mib) = arguments.cache_mib {
            options.cache_bytes = mib << 20;
        }
        if arguments.no_sync {
            options.durability = Durability::None;
        }
        Arc::new(RocksStore::open(folder, options).expect("the folder opens"))
    };
    if mode == Mode::Open {
        for _ in 0..arguments.rounds {
            let start = Instant::now();
            let store = open();
            report("open", &format!("{:.1} ms", start.elapsed().as_secs_f64() * 1e3), &store);
        }
        return;
    }
    let store = open();
    if mode == Mode::Load {
        load(&store, arguments).await;
        return;
    }
    for _ in 0..arguments.rounds {
        match mode {
            Mode::Get => repeat("get", arguments, &store, get).await,
            Mode::Range => repeat("range", arguments, &store, range).await,
            Mode::Insert => {
                // Behind all rows there are, and those of earlier rounds and runs.
                let now = UNIX_EPOCH.elapsed().expect("it is later than 1970").as_nanos() as u64;
                let next = Arc::new(AtomicU64::new(now));
                let (commits, groups) = (figure(&store, "commits_total"), figure(&store, "commit_groups_total"));
                repeat("insert", arguments, &store, move |store, rows, _| insert(store, rows, next.clone())).await;
                let (commits, groups) =
                    (figure(&store, "commits_total") - commits, figure(&store, "commit_groups_total") - groups);
                println!("        {:.1} commits in a group", commits as f64 / groups as f64);
            }
            _ => scan(&store, arguments).await,
        }
    }
}

/// Lets tasks do something over and over, and reports how often they did in a second.
async fn repeat<F: Future<Output = ()> + Send + 'static>(
    name: &str,
    arguments: &Arguments,
    store: &Arc<RocksStore>,
    once: impl Fn(Arc<RocksStore>, Rows, u64) -> F + Clone + Send + Sync + 'static,
) {
    let (start, processor) = (Instant::now(), processor_time());
    let end = start + Duration::from_secs_f64(arguments.seconds);
    let mut tasks = JoinSet::new();
    for task in 0..arguments.tasks {
        let (store, once, rows) = (store.clone(), once.clone(), Rows::of(arguments));
        tasks.spawn(async move {
            let mut times = Vec::new();
            let mut random = Random(task + 1);
            while Instant::now() < end {
                let start = Instant::now();
                once(store.clone(), rows, random.next()).await;
                times.push(start.elapsed());
                // Reads that hit memory never wait, and would not let another task have its turn.
                if times.len() % 64 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            times
        });
    }
    let mut times: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let processor = (processor_time() - processor).as_secs_f64() * 1e6 / times.len() as f64;
    times.sort_unstable();
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    let at = |part: f64| times[(times.len() as f64 * part) as usize].as_secs_f64() * 1e6;
    let times = format!("{:.1} us median, {:.1} us p99, {processor:.2} us of processor", at(0.5), at(0.99));
    report(name, &format!("{rate:.0}/s, {times}"), store);
}

async fn load(store: &Arc<RocksStore>, arguments: &Arguments) {
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..LOAD_TASKS {
        let (store, rows) = (store.clone(), Rows::of(arguments));
        tasks.spawn(async move {
            // A transaction is of one partition: each task takes some partitions, a hundred rows at a time.
            for partition in (task..rows.partitions).step_by(LOAD_TASKS as usize) {
                let mut numbers = (partition..rows.count).step_by(rows.partitions as usize);
                loop {
                    let items: Vec<Item> = numbers.by_ref().take(LOAD_BATCH_ROWS as usize).map(put).collect();
                    if items.is_empty() {
                        break;
                    }
                    let batch = Batch { space: SPACE, partition: rows.partition(partition), items, drop_space: None };
                    store.commit(batch).await.expect("rows are written");
                }
            }
        });
    }
    tasks.join_all().await;
    report("load", &format!("{:.0} rows/s", arguments.rows as f64 / start.elapsed().as_secs_f64()), store);
    // What comes after is not to be measured against the compactions that this began.
    while figure(store, "running_compactions") + figure(store, "running_flushes") > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    report("settle", &format!("{:.1} s", start.elapsed().as_secs_f64()), store);
}

async fn get(store: Arc<RocksStore>, rows: Rows, random: u64) {
    let number = random % rows.hot;
    let store: &dyn Store = &*store;
    let row = store.read(SPACE, &rows.partition(number), &row(number)).await.expect("a row is read");
    assert!(row.is_some(), "row {number} was loaded");
}

async fn insert(store: Arc<RocksStore>, rows: Rows, next: Arc<AtomicU64>) {
    let number = next.fetch_add(1, Ordering::Relaxed);
    let items = vec![put(number)];
    let batch = Batch { space: SPACE, partition: rows.partition(number), items, drop_space: None };
    store.commit(batch).await.expect("a row is written");
}

async fn range(store: Arc<RocksStore>, rows: Rows, random: u64) {
    let number = random % rows.hot;
    let start = Position::new(rows.partition(number), row(number));
    let scan = Scan { space: SPACE, start, end: None, deadline: far(), rows_hint: 101, sieve: None };
    let (mut visited, mut bytes) = (0, 0);
    let mut visitor = |row: RowRef<'_>| {
        visited += 1;
        bytes += row.value.len();
        if visited == 100 { Step::Stop } else { Step::Next }
    };
    store.scan(scan, &mut visitor).await.expect("rows are read");
    std::hint::black_box(bytes);
}

async fn scan(store: &Arc<RocksStore>, arguments: &Arguments) {
    let top_ten = TopTen::default();
    let (mut visited, mut found) = (0_u64, 0);
    let mut visitor = |row: RowRef<'_>| {
        visited += 1;
        found += u32::from(top_ten.keeps(row));
        Step::Next
    };
    let (start, processor) = (Instant::now(), processor_time());
    let sieve = (!arguments.one_by_one).then_some(&top_ten as &dyn Sieve);
    let scan = Scan { space: SPACE, start: Position::default(), end: None, deadline: far(), rows_hint: 1000, sieve };
    let end = store.scan(scan, &mut visitor).await.expect("rows are read");
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(end, ScanEnd::Exhausted);
    visited += top_ten.passed_over.load(Ordering::Relaxed);
    let rate = visited as f64 / seconds / 1e6;
    let processor = (processor_time() - processor).as_secs_f64() * 1e3;
    let times = format!("{:.1} ms, {processor:.1} ms of processor", seconds * 1e3);
    report("scan", &format!("{times}, {found} of {visited} rows, {rate:.2} M rows/s"), store);
}

/// The rows of the ten first ranks.
#[derive(Debug, Default)]
struct TopTen {
    passed_over: AtomicU64,
}

impl Sieve for TopTen {
    fn keeps(&self, row: RowRef<'_>) -> bool {
        let rank = Record::open(row.value).and_then(|record| record.get("Rank")).expect("a record");
        matches!(rank, Some(ValueRef::Int32(rank)) if rank < 10)
    }

    fn passed_over(&self, rows: u64) {
        self.passed_over.fetch_add(rows, Ordering::Relaxed);
    }
}

fn report(name: &str, what: &str, store: &Arc<RocksStore>) {
    let (resident, disk) = (resident_kib() >> 10, figure(store, "disk_bytes") >> 20);
    println!("{name:7} {what}; {resident} MiB resident, {disk} MiB on disk");
}

fn figure(store: &RocksStore, name: &str) -> u64 {
    store.figures().iter().find(|(found, _)| *found == name).map_or(0, |(_, figure)| *figure)
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// What all threads have used of processors, in steps of ten milliseconds. Unlike the time on the clock it hardly depends
/// on what else is running.
fn processor_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold anything.
    let fields = statistics.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// Which rows there are.
#[derive(Clone, Copy, Debug)]
struct Rows {
    count: u64,
    hot: u64,
    partitions: u64,
}

impl Rows {
    fn of(arguments: &Arguments) -> Rows {
        let Arguments { rows, hot, partitions, .. } = *arguments;
        Rows { count: rows, hot: hot.unwrap_or(rows), partitions }
    }

    fn partition(&self, number: u64) -> Vec<u8> {
        format!("partition-{:05}", number % self.partitions).into_bytes()
    }
}

/// The name of a row: in no order, as if it were an identifier.
fn row(number: u64) -> Vec<u8> {
    format!("{:016x}", Random(number).next()).into_bytes()
}

fn put(number: u64) -> Item {
    Item { row: row(number), expect: Expect::Absent, action: Action::Put(value(number)) }
}

/// Ten properties. The texts compress about as text does.
fn value(number: u64) -> Bytes {
    let mut random = Random(!number);
    let mut text = |bytes| Value::String(words(random.next(), bytes).to_owned());
    let texts = [text(20), text(40), text(30), text(300), text(480)];
    let [name, street, city, notes, description] = texts;
    let properties = [
        ("Name", name),
        ("Street", street),
        ("City", city),
        ("Notes", notes),
        ("Id", Value::Guid(Guid([random.next(), random.next()].map(u64::to_le_bytes).concat().try_into().unwrap()))),
        ("Created", Value::DateTime(Ticks(638_000_000_000_000_000 + (random.next() >> 16)))),
        ("Balance", Value::Double((random.next() >> 40) as f64 / 100.0)),
        ("Description", description),
        ("Active", Value::Boolean(number.is_multiple_of(3))),
        // Nobody else has the rank of one of the first ten.
        ("Rank", Value::Int32(number as i32 & i32::MAX)),
    ];
    Record::encode(&properties.map(Into::into)).into()
}

/// A piece of a long text of made-up words.
fn words(random: u64, bytes: usize) -> &'static str {
    const TEXT_BYTES: usize = 64 << 10;
    static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let mut random = Random(7);
        let mut letters =
            |count: u64| -> String { (0..count).map(|_| (b'a' + (random.next() % 26) as u8) as char).collect() };
        let vocabulary: Vec<String> = (0..600).map(|word| letters(2 + word % 9)).collect();
        let mut random = Random(8);
        let mut text = String::new();
        while text.len() < TEXT_BYTES {
            text.push_str(&vocabulary[(random.next() % 600) as usize]);
            text.push(' ');
        }
        text
    });
    let start = random as usize % (TEXT_BYTES - bytes);
    &TEXT[start..start + bytes]
}

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
