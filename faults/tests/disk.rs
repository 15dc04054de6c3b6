//! Disks that fail and files that are damaged: what could not be made durable is not acknowledged, what cannot be read is not
//! served, and both are said.

#![cfg(target_os = "linux")]

use partita_faults::disk::Disk;
use partita_faults::image::Image;
use partita_faults::load::{Load, Promise, read_all};
use partita_testing::http::{Request, Response, entity};
use partita_testing::process::Process;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VALUE_BYTES: u64 = 10_000;
/// Far more than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

fn insert(row: &str) -> Request {
    Request::json("PUT", entity("People", "p", row), r#"{"A":1}"#)
}

fn get(row: &str) -> Request {
    Request::get(entity("People", "p", row))
}

fn with_table(disk: &Disk, arguments: &[&str]) -> Process {
    let process = disk.start_untraced(arguments).unwrap_or_else(|(status, said)| panic!("{status}\n{said}"));
    process.send(Request::json("POST", "/Tables", r#"{"TableName":"People"}"#)).expect(201);
    process.send(insert("before")).expect(204);
    process
}

fn metric(process: &Process, name: &str) -> u64 {
    let metrics = process.ask_admin("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().expect("a number")
}

/// Whatever was acknowledged is there, the server says that it takes no writes and why, and serves reads.
#[track_caller]
fn check_refusal(process: &Process, why: &str) -> Response {
    let refused = process.send(insert("after"));
    assert_eq!(refused.outcome(), (503, "ServerBusy".to_owned()), "{refused:?}");
    assert!(refused.message().contains("takes no writes because one could not be made durable"), "{refused:?}");
    let batch = partita_testing::batch::change_set(&[insert("x"), insert("y")]);
    let part = partita_testing::batch::part(&process.send(batch));
    assert_eq!(part.outcome(), (503, "ServerBusy".to_owned()), "{part:?}");
    let created = process.send(Request::json("POST", "/Tables", r#"{"TableName":"More"}"#));
    assert_eq!(created.status, 503, "{created:?}");
    process.send(get("before")).expect(200);
    process.send(Request::get("/People()")).expect(200);
    process.send(Request::get("/Tables")).expect(200);
    let ready = process.ask_admin("/readyz");
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(ready.text().contains(why), "{ready:?}");
    assert_eq!(process.ask_admin("/livez").status, 200);
    assert_eq!(metric(process, "partita_store_writes_refused"), 1);
    refused
}

/// A load that runs into a fault, and what of it is there after a restart on a good disk.
fn run_into(arguments: &[&str], rules: &str, why: &str) {
    let disk = Disk::empty();
    let process = with_table(&disk, arguments);
    process.send(Request::delete("/Tables('People')")).expect(204);
    let mut load = Load::new(3, VALUE_BYTES, 1);
    let process = load.run(process, Path::new("/dev/null"), 30, |process| {
        disk.control(rules);
        process
    });
    // Every client has met a failure by now. The first ones may have met it in the middle.
    let late = process.send(Request::json("POST", "/Tables", r#"{"TableName":"Late"}"#));
    assert_eq!(late.status, 503, "{rules}: {late:?}");
    let ready = process.ask_admin("/readyz");
    assert!(ready.status == 503 && ready.text().contains(why), "{rules}: {ready:?}");
    let seen = read_all(&process, VALUE_BYTES).expect("reads go on");
    load.check(u64::MAX, Promise::Acknowledged, &seen).unwrap_or_else(|lost| panic!("{rules}: while it runs, {lost}"));

    disk.control("");
    // Room on the disk changes nothing while the process runs.
    assert_eq!(process.send(Request::json("POST", "/Tables", r#"{"TableName":"Late"}"#)).status, 503);
    process.signal("TERM");
    process.wait();
    let process = disk.start_untraced(arguments).unwrap_or_else(|(status, said)| panic!("{rules}: {status}\n{said}"));
    let found = read_all(&process, VALUE_BYTES).expect("everything is read");
    load.check(u64::MAX, Promise::Acknowledged, &found).unwrap_or_else(|lost| panic!("{rules}: {lost}"));
    process.send(Request::json("POST", "/Tables", r#"{"TableName":"Late"}"#)).expect(201);
    assert_eq!(process.ask_admin("/readyz").status, 200);
}

#[test]
fn a_full_disk() {
    run_into(&[], "space * 100000 ENOSPC", "No space left on device");
    run_into(&[], "space * 0 ENOSPC", "No space left on device");
}

/// Where the log has room and table files have not.
#[test]
fn a_disk_that_is_full_for_table_files() {
    run_into(&["--write-buffer-mib=1"], "space *.sst 200000 ENOSPC", "No space left on device");
}

#[test]
fn errors_on_write() {
    run_into(&[], "write *.log 5 EIO", "Input/output error");
    run_into(&["--write-buffer-mib=1"], "write *.sst 0 EIO", "Input/output error");
    run_into(&["--write-buffer-mib=1"], "write MANIFEST* 0 EIO", "Input/output error");
}

#[test]
fn errors_on_sync() {
    run_into(&[], "sync *.log 5 EIO", "Input/output error");
    run_into(&["--write-buffer-mib=1"], "sync *.sst 0 EIO", "Input/output error");
    run_into(&["--write-buffer-mib=1"], "sync MANIFEST* 0 EIO", "Input/output error");
}

/// With an interval the sync fails after the answer; from then on nothing is taken.
#[test]
fn errors_on_sync_with_an_interval() {
    let disk = Disk::empty();
    let process = with_table(&disk, &["--durability=interval", "--sync-interval-ms=5"]);
    disk.control("sync *.log 0 EIO");
    let deadline = Instant::now() + PATIENCE;
    while process.ask_admin("/readyz").status == 200 {
        assert!(Instant::now() < deadline, "it is still ready");
        process.send(insert("more"));
    }
    check_refusal(&process, "Input/output error");
}

#[test]
fn a_refusal_says_why() {
    let disk = Disk::empty();
    let mut process = with_table(&disk, &[]);
    disk.control("sync *.log 0 EIO");
    let unknown = process.send(insert("unknown"));
    assert_eq!(unknown.outcome(), (500, "OperationTimedOut".to_owned()), "{unknown:?}");
    check_refusal(&process, "Input/output error");
    let line = process.wait_for("the store takes no writes any more");
    assert!(line.contains("Input/output error") && line.contains(".log"), "{line}");
}

#[test]
fn a_folder_that_cannot_be_written_is_said() {
    let fresh = Disk::empty();
    let used = Disk::empty();
    with_table(&used, &[]).stop();
    for (disk, rule, why) in [
        (&fresh, "create * 0 EROFS", "Read-only file system"),
        (&fresh, "create * 0 EACCES", "Permission denied"),
        (&used, "create * 0 EROFS", "Read-only file system"),
        (&used, "create * 0 EACCES", "Permission denied"),
        (&used, "space * 0 ENOSPC", "No space left on device"),
    ] {
        disk.control(rule);
        let Err((status, said)) = disk.start_untraced(&[]) else { panic!("it runs with {rule}") };
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("cannot be written to") && said.contains(why), "{rule}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    used.control("");
    let process = used.start_untraced(&[]).unwrap_or_else(|(status, said)| panic!("{status}\n{said}"));
    process.send(get("before")).expect(200);
}

/// A disk that was written to by two processes, one after the other, each of which was ended in this way.
fn filled(arguments: &[&str], acknowledgements: usize, end: fn(Process)) -> (Image, Load) {
    let disk = Disk::empty();
    let mut load = Load::new(3, VALUE_BYTES, 7);
    for _ in 0..2 {
        let process = disk.start_untraced(arguments).unwrap_or_else(|(status, said)| panic!("{status}\n{said}"));
        let found = read_all(&process, VALUE_BYTES).expect("everything is read");
        let kept = load.check(u64::MAX, Promise::Acknowledged, &found).expect("nothing is lost");
        load.settle(&kept);
        load.run(process, Path::new("/dev/null"), acknowledgements, end);
    }
    (read_disk(&disk.data()), load)
}

/// With rows in table files, closed in order.
fn filled_tables() -> (Image, Load) {
    filled(&["--write-buffer-mib=1"], 400, |process| drop(process.stop()))
}

/// With all rows in the logs of two processes that were killed.
fn filled_logs() -> (Image, Load) {
    filled(&[], 150, Process::kill)
}

fn read_disk(data: &Path) -> Image {
    let mut image = Image::default();
    image.nodes.insert("data".into(), None);
    for file in fs::read_dir(data).expect("a folder") {
        let file = file.expect("a file");
        // A process that was killed leaves its socket behind.
        if !file.file_type().expect("a file").is_file() {
            continue;
        }
        let path = file.path();
        let name = path.file_name().expect("it has a name");
        image.nodes.insert(Path::new("data").join(name), Some(fs::read(&path).expect("a file")));
    }
    image
}

fn files<'a>(image: &'a Image, pattern: &str) -> Vec<(PathBuf, &'a Vec<u8>)> {
    let matches = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(pattern) || name.starts_with(pattern)
    };
    let files = image.nodes.iter().filter(|(path, _)| matches(path));
    files
        .filter_map(|(path, contents)| Some((path.clone(), contents.as_ref()?)))
        .filter(|(_, c)| !c.is_empty())
        .collect()
}

/// Where a log ends but for the zeros that stand ready for more.
fn end_of_records(log: &[u8]) -> usize {
    log.iter().rposition(|byte| *byte != 0).expect("it has records") + 1
}

/// What a server makes of a disk on which something is damaged.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It does not start, and names the file.
    Refused,
    /// It serves, and answers reads of what is damaged with an error, and names the file in its log.
    ReadFails,
    /// Everything that was acknowledged is there all the same.
    Whole,
}

#[track_caller]
fn damage(image: &Image, load: &Load, file: &Path, change: &str, contents: Vec<u8>) -> Outcome {
    let mut image = image.clone();
    image.nodes.insert(file.to_path_buf(), Some(contents));
    let disk = Disk::new(image, "data");
    let name = file.file_name().expect("it has a name").to_string_lossy().into_owned();
    let mut process = match disk.start_untraced(&[]) {
        Ok(process) => process,
        Err((status, said)) => {
            assert_eq!(status.code(), Some(1), "{name}, {change}: {said}");
            assert!(said.contains(&name), "{name}, {change}: the file is not named: {said}");
            assert!(!said.contains("panicked"), "{said}");
            return Outcome::Refused;
        }
    };
    match read_all(&process, VALUE_BYTES) {
        Ok(found) => {
            let checked = load.check(u64::MAX, Promise::Acknowledged, &found);
            checked.unwrap_or_else(|lost| panic!("{name}, {change}: silently lost: {lost}"));
            Outcome::Whole
        }
        Err(answer) => {
            assert!(answer.contains("500 ") && answer.contains("InternalError"), "{name}, {change}: {answer}");
            let line = process.wait_for("the store is damaged");
            assert!(line.contains(&name), "{name}, {change}: the file is not named: {line}");
            Outcome::ReadFails
        }
    }
}

fn flipped(contents: &[u8], at: usize) -> Vec<u8> {
    let mut contents = contents.to_vec();
    contents[at] ^= 0x10;
    contents
}

#[test]
fn damaged_files_are_reported_and_never_served() {
    let (image, load) = filled_tables();
    let tables = files(&image, ".sst");
    assert!(!tables.is_empty(), "there are table files");
    let mut read_failures = 0;
    for (file, contents) in tables.iter().take(2) {
        for part in 0..8 {
            let at = contents.len() * part / 8 + 100;
            let outcome = damage(&image, &load, file, &format!("byte {at}"), flipped(contents, at));
            read_failures += usize::from(outcome == Outcome::ReadFails);
        }
        for length in [0, contents.len() / 2, contents.len() - 1] {
            let outcome = damage(&image, &load, file, &format!("cut to {length}"), contents[..length].to_vec());
            assert_eq!(outcome, Outcome::Refused);
        }
    }
    assert!(read_failures > 0, "some damage is in rows");
    for (file, contents) in files(&image, "MANIFEST") {
        for part in 0..8 {
            let at = contents.len() * part / 8;
            let outcome = damage(&image, &load, &file, &format!("byte {at}"), flipped(contents, at));
            assert_eq!(outcome, Outcome::Refused);
        }
    }
    for (file, contents) in files(&image, "CURRENT") {
        for at in 0..contents.len() {
            assert_ne!(damage(&image, &load, &file, "flip", flipped(contents, at)), Outcome::ReadFails);
        }
        assert_eq!(damage(&image, &load, &file, "empty", Vec::new()), Outcome::Refused);
    }
}

/// Without its end the list of files is an older one, whose logs are gone; that has to be noticed.
#[test]
fn a_manifest_that_is_cut_short_is_reported() {
    let (image, load) = filled_tables();
    let manifests = files(&image, "MANIFEST");
    let (file, contents) = manifests.last().expect("there is one");
    // The last edits are the ones that can be missed most easily.
    let from_end = (0..10).map(|part| contents.len().saturating_sub(1 + part * 37));
    for length in (0..10).map(|part| contents.len() * part / 10).chain(from_end) {
        let outcome = damage(&image, &load, file, &format!("cut to {length}"), contents[..length].to_vec());
        assert_eq!(outcome, Outcome::Refused, "cut from {} to {length}", contents.len());
    }
}

/// Damage in a log is told from an end that was torn, wherever something stands behind it.
#[test]
fn a_damaged_log_is_reported() {
    let (image, load) = filled_logs();
    let logs = files(&image, ".log");
    assert_eq!(logs.len(), 2, "{:?}", image.nodes.keys());
    for ((file, contents), parts) in logs.iter().zip([8, 16]) {
        let end = end_of_records(contents);
        // The last group of the last log cannot be told from one that was torn; it is not in the first half.
        for at in (0..8).map(|part| end * part / parts + 3) {
            let outcome = damage(&image, &load, file, &format!("byte {at}"), flipped(contents, at));
            assert_eq!(outcome, Outcome::Refused, "{} at {at} of {end}", file.display());
        }
    }
    let (file, contents) = &logs[0];
    let end = end_of_records(contents);
    for length in [0, end / 3, end - 10] {
        let outcome = damage(&image, &load, file, &format!("cut to {length}"), contents[..length].to_vec());
        assert_eq!(outcome, Outcome::Refused, "{} cut to {length}", file.display());
    }
}

/// The way out that the message names: what stands before the damage is served, and the next start is like any other.
#[test]
fn a_damaged_log_can_be_accepted() {
    let (mut image, load) = filled_logs();
    let (file, contents) = files(&image, ".log").into_iter().next_back().expect("there is a log");
    let broken = flipped(contents, end_of_records(contents) / 2);
    image.nodes.insert(file, Some(broken));
    let disk = Disk::new(image, "data");
    let Err((_, said)) = disk.start_untraced(&[]) else { panic!("a damaged log is refused") };
    assert!(said.contains("is damaged, at or before byte") && said.contains("--accept-damage"), "{said}");
    let process = disk.start_untraced(&["--accept-damage"]).unwrap_or_else(|(_, said)| panic!("{said}"));
    let found = read_all(&process, VALUE_BYTES).expect("what is left is read");
    let kept = load.check(u64::MAX, Promise::Order, &found).expect("it is the first changes");
    assert!(load.check(u64::MAX, Promise::Acknowledged, &found).is_err(), "something was lost: {kept:?}");
    process.send(Request::json("POST", "/Tables", r#"{"TableName":"Late"}"#)).expect(201);
    process.kill();
    let process = disk.start_untraced(&[]).unwrap_or_else(|(_, said)| panic!("{said}"));
    assert!(read_all(&process, VALUE_BYTES).expect("everything is read").contains_key("Late"));
}

/// An error on read is no wrong answer and no end: what is in memory is served, and when the disk is back everything is.
#[test]
fn errors_on_read() {
    let (image, load) = filled_tables();
    let disk = Disk::new(image, "data");
    let process = disk.start_untraced(&["--cache-mib=1"]).unwrap_or_else(|(_, said)| panic!("{said}"));
    disk.control("read *.sst 0 EIO\nopen *.sst 0 EIO");
    let answer = read_all(&process, VALUE_BYTES).expect_err("table files cannot be read");
    assert!(answer.contains("503 ") && answer.contains("ServerBusy"), "{answer}");
    disk.control("");
    let found = read_all(&process, VALUE_BYTES).expect("the disk is back");
    load.check(u64::MAX, Promise::Acknowledged, &found).expect("nothing is lost");
}
