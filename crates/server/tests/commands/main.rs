//! What operators do beside serving, with the real binary.
//!
//! ```text
//! backups     backup and restore, while the server runs and without it
//! copies      copy, between services, folders and databases
//! damage      check, and what is left of a damaged folder
//! migrations  migrate
//! transfers   export and import
//! ```

mod backups;
mod copies;
mod damage;
mod migrations;
mod proxy;
mod transfers;

use partita_testing::batch::{change_set, parts};
use partita_testing::http::{Request, entity};
use partita_testing::process::{Process, run};
use partita_testing::signing::{ACCOUNT, KEY};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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
