//! Export and import.

use super::*;
use crate::proxy::Proxy;
use partita_testing::http::{PATIENCE, Request, entity};
use partita_testing::process::{Process, command, run};
use partita_testing::signing::{ACCOUNT, KEY, OTHER_ACCOUNT, OTHER_KEY, table_sas, token};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

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
        assert!(stdout.is_empty() && said.contains("wrote "), "{stdout}{said}");
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
        assert!(said.contains("imported 9 rows"), "{said}");
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
        proxy.allow(1_000_000);
        let child = command().args(export).spawn().expect("it starts");
        kill_when(child, &place.path().join(format!("part.{format}.partial.json")));
        assert!(!to.exists());
        proxy.allow(usize::MAX);
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
        proxy.allow(300_000);
        let child = command().args(&import).spawn().expect("it starts");
        let note = PathBuf::from(format!("{}.import.json", from.display()));
        kill_when(child, &note);
        proxy.allow(usize::MAX);
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
    proxy.cut_after(500_000);
    succeed(&["export", "--connection-string", &connection, "--table", "Ledger", "--to", text(&to)]);
    proxy.assert_cut();
    for (round, after) in [3_000, 60_000, 200_000].into_iter().enumerate() {
        let table = format!("Copy{round}");
        proxy.cut_after(after);
        succeed(&["import", "--connection-string", &connection, "--table", &table, "--from", text(&to), "--create"]);
        proxy.assert_cut();
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
