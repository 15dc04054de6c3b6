//! What operations cost, in instructions of the server: the same on a busy machine as on an idle one, and so what tells a
//! slower program from a slower day.
//!
//! The real binary runs under Callgrind and serves each workload on one connection, first a few times to warm up, then as
//! often as is counted. The counts are compared with those in `instructions.txt`; one that has grown by more than
//! [`TOLERANCE_PERCENT`] fails. `BLESS=1 cargo test --release --test instructions` writes the file anew.
//!
//! Counts are of this compiler and of a release build; with another compiler they are shown and not judged.

use partita_testing::batch::change_set;
use partita_testing::http::{Connection, Request};
use partita_testing::process::{Process, command};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const TOLERANCE_PERCENT: u64 = 8;
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instructions.txt");
/// How often a workload runs before it is counted.
const WARM_UP: usize = 5;
const ROWS: usize = 1000;
const ROWS_PER_PARTITION: usize = 100;

/// One workload: its name, how often it is counted, and the request of each turn.
type Workload = (&'static str, usize, fn(usize) -> Request);

const WORKLOADS: &[Workload] = &[
    ("point get", 300, |turn| Request::get(entity_target(turn * 7 % ROWS)).header("Accept", MINIMAL)),
    ("insert", 200, |turn| insert(ROWS + turn)),
    ("upsert", 200, |turn| Request::json("PUT", entity_target(turn * 7 % ROWS), entity(turn * 7 % ROWS))),
    ("merge of one property", 200, |turn| {
        Request::json("PATCH", entity_target(turn * 7 % ROWS), format!(r#"{{"Number":{turn}}}"#))
            .header("If-Match", "*")
    }),
    ("transaction of 100 inserts", 4, |turn| {
        // Rows of one partition that nothing else uses.
        let row = |row| insert_into("transactions", (turn + 1) * 100_000 + row);
        change_set(&(0..100).map(row).collect::<Vec<_>>())
    }),
    ("range query of 100 rows", 20, |turn| {
        let partition = partition(turn % (ROWS / ROWS_PER_PARTITION) * ROWS_PER_PARTITION);
        Request::get(format!("/Bench()?$filter=PartitionKey%20eq%20'{partition}'")).header("Accept", MINIMAL)
    }),
    ("filter over 1,000 rows", 60, |turn| {
        let filter = format!("PartitionKey%20lt%20'q'%20and%20Number%20eq%20{}", 1_000_000 + turn);
        Request::get(format!("/Bench()?$filter={filter}")).header("Accept", MINIMAL)
    }),
];

const MINIMAL: &str = "application/json;odata=minimalmetadata";

fn partition(row: usize) -> String {
    format!("p{:05}", row / ROWS_PER_PARTITION)
}

fn entity_target(row: usize) -> String {
    format!("/Bench(PartitionKey='{}',RowKey='r{row:08}')", partition(row))
}

fn insert(row: usize) -> Request {
    insert_into(&partition(row), row)
}

fn insert_into(partition: &str, row: usize) -> Request {
    let keys = format!(r#"{{"PartitionKey":"{partition}","RowKey":"r{row:08}","#);
    Request::json("POST", "/Bench", entity(row).replacen('{', &keys, 1)).header("Prefer", "return-no-content")
}

/// Ten properties, about a kilobyte.
fn entity(row: usize) -> String {
    let words = "a table has rows and a row has words ";
    format!(
        r#"{{"Number":{row},"Name":"name {row}","Email":"{row}@example.org","Active":true,"Score":{row}.25,"Views@odata.type":"Edm.Int64","Views":"{}","Created@odata.type":"Edm.DateTime","Created":"2026-01-02T03:04:05.678Z","Session@odata.type":"Edm.Guid","Session":"c9da6455-213d-42c9-9a79-3e9149a57833","Address":"{}","Comment":"{}"}}"#,
        row as u64 * 1_000_000_007,
        words.repeat(3),
        words.repeat(13),
    )
}

#[test]
fn operations_cost_what_they_did() {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: instructions are counted in a release build only.");
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "valgrind is missing");
        eprintln!("SKIPPED: valgrind is missing, so instructions are not counted.");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let counts = count(folder.path());
    let compiler = Command::new("rustc").arg("--version").output().expect("there is a compiler").stdout;
    let compiler = String::from_utf8_lossy(&compiler).split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    if std::env::var_os("BLESS").is_some() {
        fs::write(RECORD, print(&compiler, &counts)).expect("the record can be written");
        return;
    }
    let record = fs::read_to_string(RECORD).expect("there is a record");
    let (recorded_compiler, recorded) = parse(&record);
    let mut grown = String::new();
    for (name, count) in &counts {
        let before = recorded.get(name.as_str()).copied().unwrap_or_else(|| panic!("'{name}' is not in the record"));
        println!("{name}: {count}, recorded {before}");
        if count * 100 > before * (100 + TOLERANCE_PERCENT) {
            writeln!(grown, "{name} takes {count} instructions, recorded were {before}").expect("a string takes all");
        }
    }
    if compiler != recorded_compiler {
        eprintln!("SKIPPED: counted with {compiler}, recorded with {recorded_compiler}.\n{grown}");
        return;
    }
    assert!(grown.is_empty(), "\n{grown}If that is meant to be, run with BLESS=1.");
}

/// The instructions of one turn of each workload.
fn count(folder: &Path) -> Vec<(String, u64)> {
    let output = folder.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", output.display()));
    let binary = command();
    valgrind.arg(binary.get_program()).args(["--table-port", "0", "--admin-port", "0", "--location"]);
    valgrind.arg(folder.join("data"));
    for (name, value) in binary.get_envs() {
        match value {
            Some(value) => valgrind.env(name, value),
            None => valgrind.env_remove(name),
        };
    }
    valgrind.stdin(std::process::Stdio::null());
    valgrind.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let process = Process::spawn(valgrind).unwrap_or_else(|(status, said)| panic!("{status}\n{said}"));
    let mut connection = process.connect();
    send(&mut connection, Request::json("POST", "/Tables", r#"{"TableName":"Bench"}"#));
    for rows in (0..ROWS).collect::<Vec<_>>().chunks(ROWS_PER_PARTITION) {
        send(&mut connection, change_set(&rows.iter().map(|&row| insert(row)).collect::<Vec<_>>()));
    }
    let mut counts = Vec::new();
    for (dumps, &(name, turns, request)) in WORKLOADS.iter().enumerate() {
        (0..WARM_UP).for_each(|turn| send(&mut connection, request(turn)));
        control(&process, "--zero");
        (WARM_UP..WARM_UP + turns).for_each(|turn| send(&mut connection, request(turn)));
        control(&process, "--dump");
        let dump = format!("{}.{}", output.display(), dumps + 1);
        let dump = fs::read_to_string(&dump).unwrap_or_else(|error| panic!("{dump}: {error}"));
        let total = dump.lines().find_map(|line| line.strip_prefix("summary: ")).expect("a dump has a summary");
        counts.push((name.to_owned(), total.trim().parse::<u64>().expect("a number") / turns as u64));
    }
    drop(connection);
    process.stop();
    counts
}

fn send(connection: &mut Connection, request: Request) {
    let response = connection.send(&request.signed());
    assert!(response.status < 300 && !response.text().contains("odata.error"), "{response:?}");
}

fn control(process: &Process, what: &str) {
    let output = Command::new("callgrind_control").arg(what).arg(process.id().to_string()).output();
    let output = output.expect("callgrind_control comes with valgrind");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn print(compiler: &str, counts: &[(String, u64)]) -> String {
    let lines = counts.iter().map(|(name, count)| format!("{name}: {count}\n"));
    format!("compiler: {compiler}\n{}", lines.collect::<String>())
}

fn parse(record: &str) -> (&str, BTreeMap<&str, u64>) {
    let mut lines = record.lines().filter_map(|line| line.split_once(": "));
    let (_, compiler) = lines.next().expect("the first line names the compiler");
    (compiler, lines.map(|(name, count)| (name, count.parse().expect("a count is a number"))).collect())
}
