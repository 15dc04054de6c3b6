//! Check, and what is left of a damaged folder.

use super::*;
use partita_testing::http::Request;
use partita_testing::process::{Process, command, run};
use partita_testing::signing::ACCOUNT;
use std::ffi::OsStr;
use std::fs;

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
    assert!(said.contains(&format!("{ACCOUNT}/Few: 1 row, ")) && said.contains("3 tables, 1001 rows"), "{said}");
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
    // Behind its records may be zeros.
    let last = fs::read(&log).expect("a file").iter().rposition(|byte| *byte != 0).expect("records");
    flip(&log, last / 2);
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
        (99, "p", "r".to_owned(), good.clone(), "space 99 has 1 row and belongs to no table"),
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
