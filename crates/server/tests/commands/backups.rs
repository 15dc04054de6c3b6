//! Backup and restore.

use super::*;
use partita_testing::batch::{change_set, parts};
use partita_testing::http::Connection;
use partita_testing::process::{Process, command};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
