//! What operators do beside serving, with the real binary: backup, restore, check, export, import, and what is left of a
//! damaged folder.

use partita_testing::batch::{change_set, parts};
use partita_testing::http::{Connection, PATIENCE, Request, entity};
use partita_testing::process::{Process, command, run};
use partita_testing::signing::{ACCOUNT, KEY, OTHER_ACCOUNT, OTHER_KEY, table_sas, token};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// Runs a command that must succeed: what it said on its two streams.
#[track_caller]
fn succeed(arguments: &[&str]) -> (String, String) {
    let (status, stdout, stderr) = run(arguments);
    assert_eq!(status.code(), Some(0), "{arguments:?}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// Runs a command that must fail in one sentence: what it printed before, and the sentence.
#[track_caller]
fn fail(arguments: &[&str]) -> (String, String) {
    let (status, stdout, stderr) = run(arguments);
    assert_eq!(status.code(), Some(1), "{arguments:?}\n{stdout}\n{stderr}");
    let last = stderr.lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("partita: ") && last.ends_with('.') && !stderr.contains("panicked"), "{stderr}");
    (stdout, last)
}

#[track_caller]
fn create(process: &Process, table: &str) {
    process.send(Request::json("POST", "/Tables", format!(r#"{{"TableName":"{table}"}}"#))).expect(201);
}

/// Replaces rows of one partition in one transaction, each with a value of this number and this many bytes of text.
#[track_caller]
fn put(process: &Process, table: &str, partition: &str, rows: &[String], number: u64, bytes: usize) {
    let operations: Vec<_> = rows.iter().map(|row| replace(table, partition, row, number, bytes)).collect();
    let response = process.send(change_set(&operations));
    assert!(parts(&response).iter().all(|part| part.status == 204), "{response:?}");
}

fn replace(table: &str, partition: &str, row: &str, number: u64, bytes: usize) -> Request {
    let body = format!(r#"{{"N":{number},"Text":"{}"}}"#, "x".repeat(bytes));
    Request::json("PUT", entity(table, partition, row), body)
}

/// Fills a table: partitions `p000` and so on, with as many rows each.
fn fill(process: &Process, table: &str, partitions: usize, rows: usize, bytes: usize) {
    create(process, table);
    let rows: Vec<_> = (0..rows).map(|row| format!("r{row:03}")).collect();
    for partition in 0..partitions {
        put(process, table, &format!("p{partition:03}"), &rows, 1, bytes);
    }
}

/// All rows of a table with their `N`, by key.
fn rows(process: &Process, table: &str) -> BTreeMap<(String, String), u64> {
    let mut rows = BTreeMap::new();
    let mut connection = process.connect();
    let mut query = String::new();
    loop {
        let target = format!("/{table}()?$select=PartitionKey,RowKey,N{query}");
        let page = connection.send(&Request::get(target).signed()).expect(200);
        for row in page.json()["value"].as_array().into_iter().flatten() {
            let key = |name: &str| row[name].as_str().expect("a key").to_owned();
            rows.insert((key("PartitionKey"), key("RowKey")), row["N"].as_u64().expect("a number"));
        }
        match page.continuation() {
            Some(next) => query = format!("&{next}"),
            None => return rows,
        }
    }
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension() == Some(OsStr::new(extension))).collect();
    files.sort();
    files
}

/// Every file of a folder, to see that nothing changed.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(&path).expect("a file"))).collect()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 0x20;
    // A backup may share the file; only this name of it is damaged.
    fs::remove_file(path).expect("it was there");
    fs::write(path, bytes).expect("it can be written");
}

fn connection_string(address: SocketAddr) -> String {
    format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{address}/{ACCOUNT}")
}

/// A data folder whose rows are all in table files, stopped.
fn folder_of_tables(data: &Path, tables: &[&str], partitions: usize, rows: usize, bytes: usize) {
    let process = Process::on(data, &[]);
    tables.iter().for_each(|table| fill(&process, table, partitions, rows, bytes));
    let scratch = folder();
    // A backup writes out what is in memory.
    succeed(&["backup", "--location", text(data), "--to", text(&scratch.path().join("b"))]);
    process.stop();
}

/// Writers go on for as long as the backup takes. Each says which number was acknowledged last before the backup began.
#[test]
fn a_backup_under_load_has_all_that_was_acknowledged_before() {
    const WRITERS: usize = 4;
    const ROWS: usize = 5;
    let place = folder();
    let (data, backups) = (place.path().join("data"), place.path().join("backups"));
    let process = Process::on(&data, &[]);
    create(&process, "Ledger");
    let done = AtomicBool::new(false);
    let acknowledged: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let mut before = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (address, done, acknowledged) = (process.address, &done, &acknowledged);
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                for number in 1.. {
                    let operations: Vec<_> = (0..ROWS)
                        .map(|row| replace("Ledger", &format!("w{writer}"), &format!("r{row}"), number, 100))
                        .chain([replace("Ledger", &format!("w{writer}"), &format!("n{number:06}"), number, 100)])
                        .collect();
                    let response = connection.send(&change_set(&operations).signed());
                    assert!(parts(&response).iter().all(|part| part.status == 204), "{response:?}");
                    acknowledged[writer].store(number, Ordering::SeqCst);
                    if done.load(Ordering::SeqCst) {
                        return;
                    }
                }
            });
        }
        for backup in 0..3_u64 {
            // Each backup begins when every writer has come further.
            while acknowledged.iter().any(|number| number.load(Ordering::SeqCst) < 20 * (backup + 1)) {
                std::thread::yield_now();
            }
            before.push(acknowledged.iter().map(|number| number.load(Ordering::SeqCst)).collect::<Vec<_>>());
            let to = backups.join(backup.to_string());
            let copy: &[&str] = if backup == 2 { &["--copy"] } else { &[] };
            succeed(&[&["backup", "--location", text(&data), "--to", text(&to)], copy].concat());
        }
        done.store(true, Ordering::SeqCst);
    });
    let at_the_end = rows(&process, "Ledger");
    process.stop();
    for (backup, before) in before.iter().enumerate() {
        let (from, restored) = (backups.join(backup.to_string()), place.path().join(format!("restored{backup}")));
        succeed(&["check", "--location", text(&from)]);
        let untouched = content(&from);
        succeed(&["restore", "--from", text(&from), "--location", text(&restored)]);
        assert_eq!(content(&from), untouched);
        succeed(&["check", "--location", text(&restored)]);
        let process = Process::on(&restored, &[]);
        let found = rows(&process, "Ledger");
        for (writer, least) in before.iter().enumerate() {
            let partition = format!("w{writer}");
            let number = |row: &str| found.get(&(partition.clone(), row.to_owned())).copied().unwrap_or_default();
            let last = number("r0");
            assert!(last >= *least, "backup {backup}: {least} was acknowledged before it began, and {last} is in it");
            assert!((1..ROWS).all(|row| number(&format!("r{row}")) == last), "half of a transaction");
            let inserted = found.keys().filter(|(other, row)| *other == partition && row.starts_with('n')).count();
            assert_eq!(inserted as u64, last, "one row of every transaction up to the last");
        }
        assert!(found.len() <= at_the_end.len());
        // It is a data folder like any other.
        put(&process, "Ledger", "new", &["r".to_owned()], 1, 1);
        process.stop();
    }
}

#[test]
fn backups_are_whole_or_not_there() {
    let place = folder();
    let (data, to) = (place.path().join("data"), place.path().join("backup"));
    let process = Process::on(&data, &[]);
    fill(&process, "Ledger", 100, 100, 300);
    let partial = place.path().join("backup.partial");
    let begin = || {
        let mut backup = command();
        backup.args(["backup", "--copy", "--location", text(&data), "--to", text(&to)]);
        let mut backup = backup.spawn().expect("it starts");
        while !partial.exists() && backup.try_wait().expect("it was started").is_none() {
            std::thread::yield_now();
        }
        backup
    };
    let mut half_way = 0;
    // Killed sooner and later, so that every step is hit by some.
    for round in 0..20 {
        let mut backup = begin();
        let deadline = Instant::now() + Duration::from_micros(300 * round);
        while Instant::now() < deadline && !to.exists() {
            std::thread::yield_now();
        }
        let _ = backup.kill();
        backup.wait().expect("it was started");
        half_way += usize::from(partial.exists());
        if to.exists() {
            succeed(&["check", "--location", text(&to)]);
            fs::remove_dir_all(&to).expect("it is there");
        }
    }
    println!("{half_way} were killed half way");
    assert!(half_way > 0, "no kill came in the middle");
    // What they left behind is no obstacle.
    succeed(&["backup", "--location", text(&data), "--to", text(&to)]);
    assert!(!partial.exists());
    let (_, said) = fail(&["backup", "--location", text(&data), "--to", text(&to)]);
    assert!(said.contains("not empty") && said.contains(text(&to)), "{said}");
    succeed(&["check", "--location", text(&to)]);
    assert_eq!(rows(&process, "Ledger").len(), 10_000);
    // A server that dies under the command.
    fs::remove_dir_all(&to).expect("it is there");
    let mut backup = command();
    backup.args(["backup", "--location", text(&data), "--to", text(&to)]);
    let backup = backup.spawn().expect("it starts");
    process.kill();
    let output = backup.wait_with_output().expect("it was started");
    assert_eq!(output.status.success(), to.exists(), "{output:?}");
    if to.exists() {
        succeed(&["check", "--location", text(&to)]);
    }
}

/// Without a server, over a server that was killed, to another file system, and by a path too long for a socket.
#[test]
fn backups_in_all_places() {
    let place = folder();
    let long = place.path().join("a-long-name-".repeat(9));
    fs::create_dir_all(&long).expect("it can be made");
    let data = long.join("data");
    let process = Process::on(&data, &[]);
    fill(&process, "Ledger", 3, 10, 10);
    let socket = data.join("control.sock");
    let mode = fs::symlink_metadata(&socket).expect("there is a socket").mode();
    assert_eq!(mode & 0o777, 0o600);
    succeed(&["backup", "-l", text(&data), "--to", text(&place.path().join("online"))]);
    let (_, said) = fail(&["check", "-l", text(&data)]);
    assert!(said.contains("in use"), "{said}");
    process.kill();
    assert!(socket.symlink_metadata().is_ok(), "a killed server leaves its socket behind");
    succeed(&["backup", "-l", text(&data), "--to", text(&place.path().join("killed"))]);
    let process = Process::on(&data, &[]);
    succeed(&["backup", "-l", text(&data), "--to", text(&place.path().join("again"))]);
    process.stop();
    assert!(socket.symlink_metadata().is_err());
    succeed(&["backup", "-l", text(&data), "--to", text(&place.path().join("offline"))]);

    let mut backups: Vec<_> = ["online", "killed", "again", "offline"].map(|name| place.path().join(name)).into();
    let elsewhere = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    let other = tempfile::tempdir_in(elsewhere);
    match &other {
        Ok(other) if device(elsewhere) != device(place.path()) => {
            let process = Process::on(&data, &[]);
            backups.push(other.path().join("b"));
            succeed(&["backup", "-l", text(&data), "--to", text(&other.path().join("b"))]);
            process.stop();
        }
        _ => println!("there is no second file system to try"),
    }
    for backup in backups {
        succeed(&["check", "-l", text(&backup)]);
        let restored = folder();
        let data = restored.path().join("data");
        succeed(&["restore", "--from", text(&backup), "--location", text(&data)]);
        let process = Process::on(&data, &[]);
        assert_eq!(rows(&process, "Ledger").len(), 30, "{}", backup.display());
    }
}

/// A backup that shares no file with the data survives what happens to them.
#[test]
fn a_copy_shares_nothing() {
    let place = folder();
    let (data, linked, copied) = (place.path().join("data"), place.path().join("linked"), place.path().join("copied"));
    folder_of_tables(&data, &["Ledger"], 2, 10, 10);
    succeed(&["backup", "-l", text(&data), "--to", text(&linked)]);
    succeed(&["backup", "-l", text(&data), "--to", text(&copied), "--copy"]);
    let shared =
        |folder: &Path| files(folder, "sst").iter().filter(|path| path.metadata().unwrap().nlink() > 1).count();
    assert!(shared(&linked) > 0);
    assert_eq!(shared(&copied), 0);
}

#[test]
fn what_cannot_be_backed_up_or_restored_is_said() {
    let place = folder();
    let (data, backup) = (place.path().join("data"), place.path().join("backup"));
    let (nothing, to) = (place.path().join("nothing"), place.path().join("to"));
    let (_, said) = fail(&["backup", "-l", text(&nothing), "--to", text(&to)]);
    assert!(said.contains("not a data folder") && !nothing.exists() && !to.exists(), "{said}");
    let (_, said) = fail(&["check", "-l", text(&nothing)]);
    assert!(said.contains("not a data folder"), "{said}");
    folder_of_tables(&data, &["Ledger"], 2, 50, 300);
    let (_, said) = fail(&["restore", "--from", text(&data), "-l", text(&to)]);
    assert!(said.contains("not a backup"), "{said}");
    succeed(&["backup", "-l", text(&data), "--to", text(&backup), "--copy"]);
    let (_, said) = fail(&["restore", "--from", text(&backup), "-l", text(&data)]);
    assert!(said.contains("not empty"), "{said}");
    // Any byte of any file counts.
    let good = content(&backup);
    for (path, bytes) in good.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        for at in [0, bytes.len() / 2, bytes.len() - 2] {
            flip(path, at);
            let (_, said) = fail(&["restore", "--from", text(&backup), "-l", text(&to)]);
            let name = path.file_name().and_then(OsStr::to_str).expect("a name");
            assert!(said.contains("damaged") && said.contains(name), "byte {at} of {name}: {said}");
            assert!(!to.exists() && !place.path().join("to.partial").exists());
            fs::write(path, bytes).expect("it can be written");
        }
    }
    let removed = files(&backup, "sst").remove(0);
    fs::remove_file(&removed).expect("it is there");
    let (_, said) = fail(&["restore", "--from", text(&backup), "-l", text(&to)]);
    assert!(said.contains(text(&removed)), "{said}");
    fs::write(&removed, &good[&removed]).expect("it can be written");
    succeed(&["restore", "--from", text(&backup), "-l", text(&to)]);
}

#[test]
fn check_finds_nothing_in_good_folders_and_changes_nothing() {
    let place = folder();
    let data = place.path().join("data");
    let process = Process::on(&data, &[]);
    fill(&process, "Ledger", 20, 50, 200);
    fill(&process, "Dropped", 20, 100, 200);
    process.send(Request::delete("/Tables('Dropped')")).expect(204);
    fill(&process, "Empty", 0, 0, 0);
    create(&process, "Few");
    put(&process, "Few", "O'Neil \u{1F600}", &["%2F+ \u{FFFF}".to_owned()], 1, 1);
    process.kill();
    let before = content(&data);
    let (said, _) = succeed(&["check", "--location", text(&data)]);
    assert!(said.contains(&format!("{ACCOUNT}/Ledger: 1000 rows, ")), "{said}");
    assert!(said.contains(&format!("{ACCOUNT}/Few: 1 rows, ")) && said.contains("3 tables, 1001 rows"), "{said}");
    assert!(said.contains("No problem was found"), "{said}");
    assert_eq!(content(&data), before);
    // The location may come from the environment, as for the server.
    let output = command().arg("check").env("PARTITA_LOCATION", &data).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    // A log that was cut in the middle of a record is what a kill may leave.
    let log = files(&data, "log").pop().expect("a log");
    let bytes = fs::read(&log).expect("a file");
    fs::write(&log, &bytes[..bytes.len() - 3]).expect("it can be written");
    let (said, _) = succeed(&["check", "--location", text(&data)]);
    assert!(said.contains("Note: ") && said.contains("never finished"), "{said}");
}

#[test]
fn check_finds_flipped_bytes() {
    let place = folder();
    let data = place.path().join("data");
    folder_of_tables(&data, &["Ledger"], 20, 50, 200);
    let process = Process::on(&data, &[]);
    for number in 0..50 {
        put(&process, "Ledger", "log", &["r".to_owned()], number, 50);
    }
    process.kill();
    succeed(&["check", "-l", text(&data)]);
    let tables = files(&data, "sst");
    let table = tables.iter().max_by_key(|path| path.metadata().unwrap().len()).expect("a table file");
    let log = files(&data, "log").pop().expect("a log");
    let current = fs::read_to_string(data.join("CURRENT")).expect("a file");
    let manifest = data.join(current.trim_end());
    for (path, places) in [(table, 12), (&log, 4), (&manifest, 1)] {
        let good = fs::read(path).expect("a file");
        for step in 0..places {
            // Not the very end of a log, which a kill may have left so.
            let at = step * (good.len() - 100) / places + 9;
            flip(path, at);
            let (said, sentence) = fail(&["check", "-l", text(&data)]);
            let name = path.file_name().and_then(OsStr::to_str).expect("a name");
            assert!(
                said.contains(name) || sentence.contains("cannot be read"),
                "byte {at} of {name}: {said}{sentence}"
            );
            fs::write(path, &good).expect("it can be written");
        }
    }
    let good = fs::read(table).expect("a file");
    fs::write(table, &good[..good.len() / 2]).expect("it can be written");
    let (said, _) = fail(&["check", "-l", text(&data)]);
    assert!(said.contains("bytes, and was written with"), "{said}");
    fs::remove_file(table).expect("it is there");
    fail(&["check", "-l", text(&data)]);
    fs::write(table, &good).expect("it can be written");
    succeed(&["check", "-l", text(&data)]);
}

/// Whole tables and single blocks are damaged; the rest comes out, and what does not is named.
#[test]
fn what_can_be_read_of_a_damaged_folder_is_exported() {
    let place = folder();
    let data = place.path().join("data");
    folder_of_tables(&data, &["Ledger", "Other"], 30, 50, 200);
    let to = place.path().join("rows.jsonl");
    let export = |extra: &[&str]| {
        let _ = fs::remove_file(&to);
        let _ = fs::remove_file(place.path().join("rows.jsonl.partial"));
        let _ = fs::remove_file(place.path().join("rows.jsonl.partial.json"));
        let location = ["export", "--location", text(&data), "--table", "ledger", "--to", text(&to)];
        let (status, _, said) = run(&[&location, extra].concat());
        let lines = fs::read_to_string(&to).unwrap_or_default();
        let rows: Vec<String> =
            lines.lines().map(|line| line.split(",\"N\"").next().unwrap_or_default().to_owned()).collect();
        (status.success(), said, rows)
    };
    let (done, said, all) = export(&[]);
    assert!(done && all.len() == 1500, "{said}");
    let (done, said, some) = export(&["--filter", "PartitionKey eq 'p007'", "--select", "N"]);
    assert!(done && some.len() == 50, "{said}");

    let table =
        files(&data, "sst").into_iter().max_by_key(|path| path.metadata().unwrap().len()).expect("a table file");
    let name = table.file_name().and_then(OsStr::to_str).expect("a name").to_owned();
    let good = fs::read(&table).expect("a file");
    // Two blocks in the first third, where the rows of the first table are.
    let mut bytes = good.clone();
    bytes[good.len() / 10] ^= 1;
    bytes[good.len() / 5] ^= 1;
    fs::write(&table, &bytes).expect("it can be written");
    let (done, said, _) = export(&[]);
    assert!(!done && said.contains(&name) && said.contains("--skip-damaged"), "{said}");
    let (done, said, left) = export(&["--skip-damaged"]);
    assert!(done && said.matches("left out").count() == 2, "{said}");
    assert!(said.contains(&name) && said.contains("PartitionKey 'p0"), "{said}");
    assert!(left.len() > 1300 && left.len() < 1500, "{} rows are left: {said}", left.len());
    assert!(left.iter().all(|row| all.contains(row)) && left.is_sorted());

    // A file without its end cannot be opened at all; what stands in others can be read.
    fs::write(&table, &good).expect("it can be written");
    let known = files(&data, "sst");
    let process = Process::on(&data, &[]);
    put(&process, "Ledger", "q", &["later".to_owned()], 2, 10);
    put(&process, "Ledger", "p003", &["r003".to_owned()], 2, 10);
    let scratch = folder();
    succeed(&["backup", "--location", text(&data), "--to", text(&scratch.path().join("b"))]);
    process.stop();
    let (_, _, now) = export(&[]);
    assert_eq!(now.len(), 1501);
    let newer = files(&data, "sst").into_iter().find(|path| !known.contains(path)).expect("a new file");
    let bytes = fs::read(&newer).expect("a file");
    fs::write(&newer, &bytes[..bytes.len() - 10]).expect("it can be written");
    let (done, said, _) = export(&[]);
    let name = newer.file_name().and_then(OsStr::to_str).expect("a name");
    assert!(!done && said.contains(name), "{said}");
    let before = content(&data);
    let (done, said, left) = export(&["--skip-damaged"]);
    assert!(done && said.contains(name) && said.contains("may be missing"), "{said}");
    assert_eq!(left, all);
    assert_eq!(content(&data), before, "the folder stays as it is");
    fs::write(&newer, &bytes).expect("it can be written");
    // Nor can anything be read without the list of files.
    let current = fs::read_to_string(data.join("CURRENT")).expect("a file");
    let manifest = data.join(current.trim_end());
    let manifest_bytes = fs::read(&manifest).expect("a file");
    fs::remove_file(&manifest).expect("it is there");
    let (done, said, _) = export(&[]);
    assert!(!done && said.contains("cannot be"), "{said}");
    let (done, said, left) = export(&["--skip-damaged"]);
    assert!(done && said.contains("The list of files cannot be read"), "{said}");
    assert_eq!(left, now);
    fs::write(&manifest, manifest_bytes).expect("it can be written");
    succeed(&["check", "--location", text(&data)]);
}

/// Where the catalogue is lost, nothing says which rows are those of a table.
#[test]
fn rows_without_a_table_are_exported_by_their_space() {
    let place = folder();
    let data = place.path().join("data");
    let process = Process::on(&data, &[]);
    let write_out = |name: &str| {
        succeed(&["backup", "--location", text(&data), "--to", text(&place.path().join(name))]);
        files(&data, "sst").pop().expect("a table file")
    };
    fill(&process, "First", 1, 10, 10);
    write_out("a");
    fill(&process, "Second", 1, 20, 20);
    let second = write_out("b");
    put(&process, "Second", "p000", &["more".to_owned()], 1, 1);
    write_out("c");
    process.kill();
    fs::remove_file(&second).expect("it is there");
    let arguments = ["export", "--location", text(&data), "--to", "-", "--skip-damaged"];
    let (_, said) = fail(&[&arguments[..], &["--table", "Second"]].concat());
    assert!(said.contains("no table Second") && said.contains("in space 2: see --space"), "{said}");
    let (stdout, _) = succeed(&[&arguments[..], &["--space", "2"]].concat());
    assert!(stdout.lines().count() == 1 && stdout.contains("more"), "{stdout}");
    let (stdout, _) = succeed(&[&arguments[..], &["--table", "First"]].concat());
    assert_eq!(stdout.lines().count(), 10);
}

/// Behind a damaged record of a log nothing is read, and that is said.
#[test]
fn damage_in_a_log_is_said() {
    let place = folder();
    let data = place.path().join("data");
    let process = Process::on(&data, &[]);
    fill(&process, "Ledger", 10, 10, 10);
    process.kill();
    let log = files(&data, "log").pop().expect("a log");
    flip(&log, fs::metadata(&log).expect("a file").len() as usize / 2);
    let arguments = ["export", "--location", text(&data), "--table", "Ledger", "--to", "-"];
    let (stdout, said) = fail(&arguments);
    assert!(stdout.is_empty() && said.contains(".log"), "{said}");
    let (stdout, said) = succeed(&[&arguments[..], &["--skip-damaged"]].concat());
    assert!(said.contains(".log") && said.contains("left out"), "{said}");
    assert!((1..100).contains(&stdout.lines().count()), "{stdout}");
}

/// What only a defect could have written: rows of no table, a table of a space to come, a value that is none.
#[test]
fn check_finds_what_does_not_fit_together() {
    use partita_model::{Record, Value};
    use partita_store::{Action, Batch, Expect, Item, Space, Store};
    use partita_store_rocksdb::{Options, RocksStore};
    let number = |space: i64| ("Space", Value::Int64(space)).into();
    let name = |name: &str| ("Name", Value::String(name.into())).into();
    let good = Record::encode(&[("A", Value::Int32(1)).into()]);
    let table = |text: &str, space| Record::encode(&[name(text), number(space)]);
    let row = |lower: &str| format!("t{ACCOUNT}\0{lower}");
    for (space, partition, row, value, says) in [
        (99, "p", "r".to_owned(), good.clone(), "space 99 has 1 rows and belongs to no table"),
        (
            1,
            "p",
            "r".to_owned(),
            b"\x09".to_vec(),
            "PartitionKey 'p' RowKey 'r' of space 1: a stored row is not in a format",
        ),
        (1, "p", "r".to_owned(), good[..4].to_vec(), "PartitionKey 'p' RowKey 'r' of space 1: a stored row is not"),
        (1, "p", "a/b".to_owned(), good.clone(), "RowKey is not a valid one"),
        (0, "", row("later"), table("Later", 500), "table Later of devstoreaccount1 has space 500, and the next is 2"),
        (0, "", row("twice"), table("Twice", 1), "table Twice of devstoreaccount1 has space 1, as another has"),
        (0, "", row("other"), table("Name", 1), "it is not where it belongs in the catalogue"),
        (0, "p", "n".to_owned(), good.clone(), "a stored row is not in a format"),
        (0, "", "x".to_owned(), good.clone(), "catalogue row 'x'"),
    ] {
        let place = folder();
        let data = place.path().join("data");
        let process = Process::on(&data, &[]);
        fill(&process, "Ledger", 1, 3, 1);
        process.stop();
        succeed(&["check", "-l", text(&data)]);
        let store = RocksStore::open(&data, Options::default()).expect("it opens");
        let item = Item { row: row.into_bytes(), expect: Expect::Any, action: Action::Put(value.into()) };
        let batch = Batch { space: Space(space), partition: partition.into(), items: vec![item], drop_space: None };
        let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
        runtime.block_on(store.commit(batch)).expect("it is committed");
        drop(store);
        let (said, _) = fail(&["check", "-l", text(&data)]);
        assert!(said.contains(says), "{says}: {said}");
    }
}

/// Rows that formats stumble over.
fn insert_odd_rows(process: &Process, table: &str) {
    create(process, table);
    let long = "\u{20AC}\\\"\n".repeat(2000);
    let long = serde_json::to_string(&long).expect("a text");
    for body in [
        r#"{"PartitionKey":"","RowKey":""}"#.to_owned(),
        r#"{"PartitionKey":"a","RowKey":"O'Neil \"x\" , %20 😀 ￿","Z":1,"A":"","M":true}"#.to_owned(),
        r#"{"PartitionKey":"a","RowKey":"2","A":5,"Z@odata.type":"Edm.Int64","Z":"-9223372036854775808"}"#.to_owned(),
        r#"{"PartitionKey":"a","RowKey":"3","M@odata.type":"Edm.Binary","M":"AP8=","Z":"1","A":5.0}"#.to_owned(),
        r#"{"PartitionKey":"a","RowKey":"4","D@odata.type":"Edm.Double","D":"NaN","E@odata.type":"Edm.Double","E":"-Infinity","F":-0.0,"G":1e300,"H":5e-324}"#.to_owned(),
        r#"{"PartitionKey":"b","RowKey":"5","T@odata.type":"Edm.DateTime","T":"2021-12-09T00:25:32.7684043Z","U@odata.type":"Edm.DateTime","U":"1601-01-01T00:00:00Z","I@odata.type":"Edm.Guid","I":"C9DA6455-213D-42C9-9A79-3E9149A57833"}"#.to_owned(),
        r#"{"PartitionKey":"b","RowKey":"6","B@odata.type":"Edm.Binary","B":"","S":"a,b;c\r\n\"d\"\t","N":"null","Sp":" x "}"#.to_owned(),
        r#"{"PartitionKey":"b","RowKey":"7","S":"\u0000\u0001\ufeff\u2028","Int":-2147483648,"Été":false}"#.to_owned(),
        format!(r#"{{"PartitionKey":"c","RowKey":"8","Long":{long}}}"#),
    ] {
        process.send(Request::json("POST", format!("/{table}"), body)).expect(201);
    }
}

#[test]
fn every_type_comes_back_by_either_format() {
    let process = Process::start(&["--in-memory"]);
    insert_odd_rows(&process, "Odd");
    let place = folder();
    let connection = connection_string(process.address);
    let export = |table: &str, file: &str, extra: &[&str]| {
        let to = place.path().join(file);
        let arguments = ["export", "--connection-string", &connection, "--table", table, "--to", text(&to)];
        let (stdout, said) = succeed(&[&arguments, extra].concat());
        assert!(stdout.is_empty() && said.contains("rows are in"), "{stdout}{said}");
        let left: Vec<_> =
            fs::read_dir(place.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("partial")), "{left:?}");
        fs::read_to_string(&to).expect("a file")
    };
    let import = |table: &str, file: &str, extra: &[&str]| {
        let from = place.path().join(file);
        let arguments =
            ["import", "--connection-string", &connection, "--table", table, "--from", text(&from), "--create"];
        let (_, said) = succeed(&[&arguments, extra].concat());
        assert!(said.contains("rows were imported"), "{said}");
        assert!(!place.path().join(format!("{file}.import.json")).exists());
    };
    let lines = export("Odd", "odd.jsonl", &[]);
    assert_eq!(lines.lines().count(), 9);
    assert!(lines.contains(r#""F@odata.type":"Edm.Double","F":-0.0"#), "{lines}");
    import("Lines", "odd.jsonl", &[]);
    assert_eq!(export("Lines", "lines.jsonl", &[]), lines);
    let rows = export("Odd", "odd.csv", &[]);
    let header = rows.lines().next().expect("a header");
    assert!(header.starts_with("PartitionKey,RowKey,A,A@type,Z,Z@type,M,M@type,"), "{header}");
    assert!(header.ends_with(",@order"), "{header}");
    import("Rows", "odd.csv", &["--connections", "1"]);
    assert_eq!(export("Rows", "rows.jsonl", &[]), lines);
    assert_eq!(export("Rows", "rows.csv", &[]), rows);

    // Parts of a table, and formats that the name does not tell.
    let some = export("Odd", "some", &["--filter", "PartitionKey eq 'a' and Z eq 1", "--select", "A,M,Nothing"]);
    assert_eq!(
        some,
        "{\"PartitionKey\":\"a\",\"RowKey\":\"O'Neil \\\"x\\\" , %20 😀 \u{FFFF}\",\"A\":\"\",\"M\":true}\n"
    );
    let some = export("Odd", "some.txt", &["--format", "csv", "--filter", "RowKey eq '2'"]);
    let expect = "PartitionKey,RowKey,A,A@type,Z,Z@type\na,2,5,Edm.Int32,-9223372036854775808,Edm.Int64\n";
    assert_eq!(some, expect);
    let none = export("Odd", "none.csv", &["--filter", "PartitionKey eq 'nobody'"]);
    assert_eq!(none, "PartitionKey,RowKey\n");

    // By streams, both ways.
    for (format, expect) in [("jsonl", &lines), ("csv", &rows)] {
        let arguments = ["--connection-string", &connection, "--format", format];
        let (stdout, _) = succeed(&[&["export", "--table", "Odd", "--to", "-"], &arguments[..]].concat());
        assert_eq!(stdout, **expect);
        let mut child = command();
        child.args(["import", "--create", "--table", &format!("By{format}"), "--from", "-"]).args(arguments);
        let mut child = child.stdin(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("it is piped").write_all(stdout.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it was started");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(export(&format!("By{format}"), &format!("by{format}.jsonl"), &[]), lines);
    }
}

#[test]
fn modes_and_credentials_of_an_import() {
    let process = Process::start(&["--in-memory", &partita_testing::process::accounts_argument()]);
    let place = folder();
    let file = |name: &str, content: &str| {
        let path = place.path().join(name);
        fs::write(&path, content).expect("it can be written");
        text(&path).to_owned()
    };
    let connection = connection_string(process.address);
    let first = file("first.jsonl", "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"A\":1,\"B\":1}\n");
    let second = file(
        "second.csv",
        "PartitionKey,RowKey,A,A@type\np,0,2,Edm.Int32\np,1,2,Edm.Int32\np,1,3,Edm.Int32\np,2,2,Edm.Int32\n",
    );
    let import = |from: &str, extra: &[&str]| {
        run(&[&["import", "--connection-string", &connection, "--table", "People", "--from", from], extra].concat())
    };
    let values = || {
        let page = process.send(Request::get("/People()")).expect(200).json();
        let rows = page["value"].as_array().expect("rows").clone();
        rows.iter().map(|row| format!("{}:{}{}", row["RowKey"], row["A"], row["B"])).collect::<Vec<_>>().join(" ")
    };
    let (status, _, said) = import(&first, &[]);
    assert!(!status.success() && said.contains("TableNotFound"), "{said}");
    let note = format!("{first}.import.json");
    let _ = fs::remove_file(&note);
    assert!(import(&first, &["--create"]).0.success());
    assert_eq!(values(), "\"1\":11");
    let (status, _, said) = import(&second, &[]);
    assert!(!status.success(), "{said}");
    assert!(said.contains("PartitionKey 'p', RowKey '1'") && said.contains("EntityAlreadyExists"), "{said}");
    assert_eq!(values(), "\"1\":11", "a transaction is written as a whole or not at all");
    let _ = fs::remove_file(format!("{second}.import.json"));
    assert!(import(&second, &["--mode", "merge"]).0.success());
    assert_eq!(values(), "\"0\":2null \"1\":31 \"2\":2null", "of two rows of the same keys the later wins");
    assert!(import(&second, &["--mode", "replace"]).0.success());
    assert_eq!(values(), "\"0\":2null \"1\":3null \"2\":2null");

    // A signature that may only read, an account of its own, a string of the environment.
    let sas = |permissions: &str| {
        let sas = token(&table_sas("People", permissions), ACCOUNT, KEY);
        format!("TableEndpoint=http://{}/{ACCOUNT};SharedAccessSignature={sas}", process.address)
    };
    let (stdout, _) = succeed(&["export", "--connection-string", &sas("r"), "--table", "People", "--to", "-"]);
    assert_eq!(stdout.lines().count(), 3);
    let third = file("third.jsonl", "\n{\"PartitionKey\":\"q\",\"RowKey\":\"1\"}\n");
    let (_, said) = fail(&["import", "--connection-string", &sas("r"), "--table", "People", "--from", &third]);
    assert!(said.contains("403") && !said.contains("sig="), "{said}");
    let _ = fs::remove_file(format!("{third}.import.json"));
    succeed(&["import", "--connection-string", &sas("a"), "--table", "People", "--from", &third]);
    let other = format!(
        "AccountName={OTHER_ACCOUNT};AccountKey={OTHER_KEY};TableEndpoint=http://{}/{OTHER_ACCOUNT}",
        process.address
    );
    for name in ["PARTITA_CONNECTION_STRING", "AZURE_STORAGE_CONNECTION_STRING"] {
        let mut import = command();
        import
            .args(["import", "--table", "People", "--create", "--mode", "replace", "--from", &third])
            .env(name, &other);
        let output = import.output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
    }
    process.send(Request::get(entity("People", "q", "1")).at(OTHER_ACCOUNT)).expect(200);

    for (content, says) in [
        ("{\"PartitionKey\":\"p\",\"RowKey\":\"a\"}\n{\"PartitionKey\":1}\n", "Line 2 of"),
        ("{\"PartitionKey\":\"p/p\",\"RowKey\":\"a\"}\n", "PartitionKey 'p/p'"),
    ] {
        let bad = file("bad.jsonl", content);
        let _ = fs::remove_file(format!("{bad}.import.json"));
        let (_, said) = fail(&["import", "--connection-string", &connection, "--table", "People", "--from", &bad]);
        assert!(said.contains(says), "{said}");
    }
    let (_, said) = fail(&["export", "--connection-string", "AccountName=a", "--table", "People", "--to", "-"]);
    assert!(said.contains("connection string"), "{said}");
    let (_, said) = fail(&["export", "--connection-string", &connection, "--table", "Nobody", "--to", "-"]);
    assert!(said.contains("TableNotFound"), "{said}");
}

/// Stands between a command and the server: answers stop after a number of bytes, or connections end.
struct Proxy {
    address: SocketAddr,
    /// How many bytes of answers may still pass.
    allowed: Arc<AtomicUsize>,
    /// Whether a connection ends when they are used up, once.
    cuts: Arc<AtomicBool>,
}

impl Proxy {
    fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (allowed, cuts) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicBool::new(false)));
        let proxy = Proxy { address, allowed: allowed.clone(), cuts: cuts.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(upstream) = TcpStream::connect(server) else { return };
                let (from, to) = (client.try_clone().expect("a socket"), upstream.try_clone().expect("a socket"));
                std::thread::spawn(move || copy(from, to, |_| true));
                let (allowed, cuts) = (allowed.clone(), cuts.clone());
                std::thread::spawn(move || {
                    copy(upstream, client, |bytes| {
                        let take = |left: usize| left.checked_sub(bytes);
                        while allowed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
                            if cuts.swap(false, Ordering::SeqCst) {
                                allowed.store(usize::MAX, Ordering::SeqCst);
                                return false;
                            }
                            std::thread::park_timeout(Duration::from_millis(1));
                        }
                        true
                    });
                });
            }
        });
        proxy
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, mut may: impl FnMut(usize) -> bool) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !may(count) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}

/// Waits until a file says that rows were moved, then kills the process in its place.
fn kill_when(mut child: Child, note: &Path) {
    let deadline = Instant::now() + PATIENCE;
    let moved = || {
        let text = fs::read_to_string(note).unwrap_or_default();
        serde_json::from_str::<serde_json::Value>(&text)
            .is_ok_and(|note| note["rows"].as_u64().is_some_and(|rows| rows > 0))
    };
    while !moved() {
        assert!(Instant::now() < deadline, "nothing was moved");
        assert!(child.try_wait().expect("it was started").is_none(), "it ended early");
        std::thread::park_timeout(Duration::from_millis(1));
    }
    child.kill().expect("it runs");
    child.wait().expect("it was started");
}

#[test]
fn transfers_go_on_after_a_kill() {
    let process = Process::start(&["--in-memory"]);
    fill(&process, "Ledger", 45, 100, 50);
    let place = folder();
    let proxy = Proxy::start(process.address);
    let connection = connection_string(proxy.address);
    let direct = connection_string(process.address);
    let whole = place.path().join("whole.jsonl");
    succeed(&["export", "--connection-string", &direct, "--table", "Ledger", "--to", text(&whole)]);
    let whole = fs::read_to_string(whole).expect("a file");
    assert_eq!(whole.lines().count(), 4500);

    for format in ["jsonl", "csv"] {
        let to = place.path().join(format!("part.{format}"));
        let export = ["export", "--connection-string", &connection, "--table", "Ledger", "--to", text(&to)];
        // A page of a thousand rows takes some 400 KB.
        proxy.allowed.store(1_000_000, Ordering::SeqCst);
        let child = command().args(export).spawn().expect("it starts");
        kill_when(child, &place.path().join(format!("part.{format}.partial.json")));
        assert!(!to.exists());
        proxy.allowed.store(usize::MAX, Ordering::SeqCst);
        let (_, said) = fail(&export);
        assert!(said.contains("--resume"), "{said}");
        let other = ["export", "--connection-string", &direct, "--table", "Ledger", "--to", text(&to), "--resume"];
        let (_, said) = fail(&other);
        assert!(said.contains("another export"), "{said}");
        // Half a page that was written when the kill came is written once.
        let partial = place.path().join(format!("part.{format}.partial"));
        let mut bytes = fs::read(&partial).expect("a file");
        bytes.extend(b"{\"PartitionKey\":\"half a row");
        fs::write(&partial, bytes).expect("it can be written");
        let asked = process.ask_admin("/metrics").text();
        succeed(&[&export[..], &["--resume"]].concat());
        assert_ne!(asked, process.ask_admin("/metrics").text());
        let (_, said) = fail(&[&export[..], &["--resume"]].concat());
        assert!(said.contains("exists already"), "{said}");
        if format == "jsonl" {
            assert_eq!(fs::read_to_string(&to).expect("a file"), whole);
        }
    }

    for (round, from) in ["part.jsonl", "part.csv"].into_iter().enumerate() {
        let (table, from) = (format!("Copy{round}"), place.path().join(from));
        let import =
            ["import", "--connection-string", &connection, "--table", &table, "--from", text(&from), "--create"];
        // On one connection the answers that pass are those to the first rows.
        let import = [&import[..], &["--connections", "1"]].concat();
        proxy.allowed.store(300_000, Ordering::SeqCst);
        let child = command().args(&import).spawn().expect("it starts");
        let note = PathBuf::from(format!("{}.import.json", from.display()));
        kill_when(child, &note);
        proxy.allowed.store(usize::MAX, Ordering::SeqCst);
        let (_, said) = fail(&import);
        assert!(said.contains("--resume"), "{said}");
        succeed(&[&import[..], &["--resume"]].concat());
        assert!(!note.exists());
        let copy = place.path().join(format!("copy{round}.jsonl"));
        succeed(&["export", "--connection-string", &direct, "--table", &table, "--to", text(&copy)]);
        assert_eq!(fs::read_to_string(copy).expect("a file"), whole);
    }
}

/// Answers that are lost on the way are asked for again, and what was inserted by the first try is no conflict.
#[test]
fn transfers_survive_lost_answers() {
    let process = Process::start(&["--in-memory"]);
    fill(&process, "Ledger", 30, 100, 50);
    let place = folder();
    let proxy = Proxy::start(process.address);
    let connection = connection_string(proxy.address);
    let to = place.path().join("rows.jsonl");
    let cut_after = |bytes| {
        proxy.allowed.store(bytes, Ordering::SeqCst);
        proxy.cuts.store(true, Ordering::SeqCst);
    };
    cut_after(500_000);
    succeed(&["export", "--connection-string", &connection, "--table", "Ledger", "--to", text(&to)]);
    assert!(!proxy.cuts.load(Ordering::SeqCst), "no connection was cut");
    for (round, after) in [3_000, 60_000, 200_000].into_iter().enumerate() {
        let table = format!("Copy{round}");
        cut_after(after);
        succeed(&["import", "--connection-string", &connection, "--table", &table, "--from", text(&to), "--create"]);
        assert!(!proxy.cuts.load(Ordering::SeqCst), "no connection was cut");
        assert_eq!(rows(&process, &table), rows(&process, "Ledger"));
    }
}

/// HTTPS, with a certificate that the machine is told to trust.
#[test]
fn transfers_over_https() {
    let place = folder();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (cert, key) = (place.path().join("cert.pem"), place.path().join("key.pem"));
    fs::write(&cert, made.cert.pem()).expect("it can be written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("it can be written");
    let process = Process::start(&["--in-memory", "--cert", text(&cert), "--key", text(&key)]);
    let port = process.address.port();
    let connection = format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=https://localhost:{port}/{ACCOUNT}");
    let from = place.path().join("rows.jsonl");
    fs::write(&from, "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"A\":1}\n").expect("it can be written");
    let transfer = |arguments: &[&str]| {
        let arguments = [arguments, &["--connection-string", &connection, "--table", "People"]].concat();
        command().args(arguments).env("SSL_CERT_FILE", &cert).output().expect("it starts")
    };
    let output = transfer(&["import", "--create", "--from", text(&from)]);
    assert!(output.status.success(), "{output:?}");
    let output = transfer(&["export", "--to", "-"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), fs::read_to_string(&from).expect("a file"), "{output:?}");
}

/// Several commands may ask at once; each gets a backup of its own.
#[test]
fn backups_at_once() {
    let place = folder();
    let data = place.path().join("data");
    let process = Process::on(&data, &[]);
    fill(&process, "Ledger", 10, 50, 50);
    let made = Mutex::new(0);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (data, made, to) = (&data, &made, place.path().join(number.to_string()));
            scope.spawn(move || {
                succeed(&["backup", "-l", text(data), "--to", text(&to)]);
                succeed(&["check", "-l", text(&to)]);
                *made.lock().unwrap() += 1;
            });
        }
    });
    assert_eq!(*made.lock().unwrap(), 4);
    process.stop();
}
