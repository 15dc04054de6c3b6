//! Copies between services, folders and databases.

use super::*;
use crate::proxy::Proxy;
use partita_testing::http::{PATIENCE, Request, entity};
use partita_testing::postgres::Postgres;
use partita_testing::process::{Process, accounts_argument, command};
use partita_testing::signing::{OTHER_ACCOUNT, account_sas, table_sas, token};
use std::time::{Duration, Instant};

const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
    <Expiry>2050-01-01T00:00:00.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>\
    </SignedIdentifiers>";
const PROPERTIES: &str = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://example.com</AllowedOrigins>\
    <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

fn put_xml(process: &Process, target: &str, body: &str, status: u16) {
    process.send(Request::new("PUT", target).header("Content-Type", "application/xml").body(body)).expect(status);
}

fn set_policies(process: &Process, table: &str) {
    put_xml(process, &format!("/{table}?comp=acl"), POLICIES, 204);
}

fn set_properties(process: &Process, origin: &str) {
    let properties = PROPERTIES.replace("http://example.com", origin);
    put_xml(process, "/?restype=service&comp=properties", &properties, 202);
}

#[track_caller]
fn assert_properties(process: &Process, origin: &str) {
    let found = process.send(Request::get("/?restype=service&comp=properties")).expect(200).text();
    let cors = found.split("<AllowedOrigins>").nth(1).and_then(|rest| rest.split("</").next());
    assert_eq!(cors.unwrap_or_default(), origin, "{found}");
}

#[track_caller]
fn assert_policies(process: &Process, table: &str) {
    let found = process.send(Request::get(format!("/{table}?comp=acl"))).expect(200).text();
    assert!(found.contains("<Id>readers</Id>") && found.contains("2050-01-01"), "{found}");
}

/// A table as lines of JSON: all there is of each row.
fn lines(place: &[&str], table: &str) -> String {
    succeed(&[&["export", "--table", table, "--to", "-"], place].concat()).0
}

fn set(process: &Process, table: &str, row: &str, number: u64) {
    process.send(replace(table, "p000", row, number, 5)).expect(204);
}

fn delete(process: &Process, table: &str, partition: &str, row: &str) {
    process.send(Request::delete(entity(table, partition, row)).header("If-Match", "*")).expect(204);
}

#[test]
fn between_services() {
    let (from, to) = (Process::start(&["--in-memory"]), Process::start(&["--in-memory"]));
    let (source, target) = (connection_string(from.address), connection_string(to.address));
    insert_odd_rows(&from, "Odd");
    fill(&from, "Ledger", 3, 100, 50);
    create(&from, "Empty");
    set_policies(&from, "Ledger");
    let copy = ["copy", "--from", &source, "--to", &target];
    let verify = [&copy[..], &["--verify-only"]].concat();
    let with = |more: &[&'static str]| [&copy[..], more].concat();

    let (said, _) = succeed(&copy);
    assert!(said.contains("Ledger: 300 rows, checksum ") && said.contains(", 300 written."), "{said}");
    assert!(said.contains("Empty: 0 rows") && said.ends_with("3 tables verified, 309 rows.\n"), "{said}");
    assert_policies(&to, "Ledger");
    for table in ["Odd", "Ledger"] {
        assert_eq!(lines(&["--connection-string", &target], table), lines(&["--connection-string", &source], table));
    }
    let (_, said) = fail(&copy);
    assert!(said.contains("has rows already") && said.contains("--resume"), "{said}");
    let (again, _) = succeed(&with(&["--resume"]));
    assert!(again.contains("Ledger: 300 rows") && again.contains(", 0 written."), "{again}");
    // The checksum says what the rows say, wherever they are.
    let checksum = |text: &str| text.split("Ledger: 300 rows, ").nth(1).map(|rest| rest[..25].to_owned());
    assert_eq!(checksum(&succeed(&verify).0), checksum(&again));

    // A row that differs.
    set(&to, "Ledger", "r007", 2);
    let (said, last) = fail(&verify);
    assert!(said.contains("PartitionKey 'p000', RowKey 'r007' differs in N"), "{said}");
    assert!(said.contains("0 missing, 1 different;") && last.contains("1 of 3 tables differ."), "{said}{last}");
    let (_, said) = fail(&with(&["--resume"]));
    assert!(said.contains("RowKey 'r007' is in") && said.contains("with other content"), "{said}");
    let (said, _) = succeed(&with(&["--mode", "replace"]));
    assert!(said.contains("Ledger: 300 rows") && said.contains(", 1 written."), "{said}");

    // One too many, and one too few.
    set(&to, "Ledger", "r100", 1);
    delete(&to, "Ledger", "p001", "r000");
    let (said, _) = fail(&verify);
    assert!(said.contains("300 rows") && said.contains("1 missing, 0 different, 1 only at the target"), "{said}");
    assert!(said.contains("RowKey 'r100' is only at the target."), "{said}");
    let (said, _) = succeed(&with(&["--mode", "replace", "--table", "Ledger"]));
    assert!(said.contains(", 1 written, 1 only at the target."), "{said}");
    let (said, _) = succeed(&with(&["--mode", "mirror", "--table", "Ledger"]));
    assert!(said.contains(", 0 written, 1 deleted."), "{said}");
    succeed(&verify);

    // Policies that differ are a difference, and are not written over unasked.
    put_xml(&to, "/Ledger?comp=acl", &POLICIES.replace("2050", "2051"), 204);
    let (said, _) = fail(&with(&["--resume"]));
    assert!(said.contains("other access policies"), "{said}");
    succeed(&with(&["--mode", "replace"]));
    assert_policies(&to, "Ledger");

    // Under another name, in the same account.
    let within = ["copy", "--from", &source, "--to", &source, "--table", "Odd"];
    let (said, _) = succeed(&[&within[..], &["--as", "Other"]].concat());
    assert!(said.contains("Odd as Other: 9 rows"), "{said}");
    assert_eq!(lines(&["--connection-string", &source], "Other"), lines(&["--connection-string", &source], "Odd"));
    let (_, said) = fail(&within);
    assert!(said.contains("Both ends are"), "{said}");
}

#[test]
fn with_signatures() {
    let (from, to) = (Process::start(&["--in-memory"]), Process::start(&["--in-memory"]));
    fill(&from, "Ledger", 1, 10, 5);
    set_policies(&from, "Ledger");
    let sas = |process: &Process, permissions: &str| {
        let sas = token(&table_sas("Ledger", permissions), ACCOUNT, KEY);
        format!("http://{}/{ACCOUNT}?{sas}", process.address)
    };
    let (source, target) = (sas(&from, "r"), sas(&to, "raud"));
    let (_, said) = fail(&["copy", "--from", &source, "--to", &target]);
    assert!(said.contains("cannot be listed: name them with --table"), "{said}");
    // A signature for a table does not allow to create it.
    let copy = ["copy", "--from", &source, "--to", &target, "--table", "Ledger"];
    let (_, said) = fail(&copy);
    assert!(said.contains("403") && !said.contains("sig="), "{said}");
    create(&to, "Ledger");
    let (said, notes) = succeed(&copy);
    assert!(said.ends_with("1 table verified, 10 rows.\n"), "{said}");
    assert!(notes.contains("Access policies were not copied") && notes.contains("Ledger"), "{notes}");
    assert_eq!(rows(&to, "Ledger"), rows(&from, "Ledger"));
}

/// What an account has set for its service goes with all its tables, over HTTP too.
#[test]
fn service_properties() {
    const ORIGIN: &str = "http://example.com";
    let (from, to) = (Process::start(&["--in-memory"]), Process::start(&["--in-memory"]));
    let (source, target) = (connection_string(from.address), connection_string(to.address));
    let copy = ["copy", "--from", &source, "--to", &target];
    let with = |more: &[&'static str]| [&copy[..], more].concat();
    fill(&from, "Ledger", 1, 10, 5);
    set_properties(&from, ORIGIN);
    succeed(&with(&["--table", "Ledger"]));
    assert_properties(&to, "");
    succeed(&with(&["--resume"]));
    assert_properties(&to, ORIGIN);

    // Others are not written over unasked.
    set_properties(&from, "http://other.example");
    let (_, notes) = succeed(&with(&["--resume"]));
    assert!(notes.contains("are others and stay; --mode replace"), "{notes}");
    assert_properties(&to, ORIGIN);
    succeed(&with(&["--mode", "replace"]));
    assert_properties(&to, "http://other.example");

    // By signatures, of which some are not for the service itself.
    let sas = |process: &Process, types: &str| {
        let sas = token(&account_sas(types, "rwdlacu"), ACCOUNT, KEY);
        format!("http://{}/{ACCOUNT}?{sas}", process.address)
    };
    set_properties(&from, ORIGIN);
    for (source, target, origin) in
        [("co", "sco", "http://other.example"), ("sco", "co", "http://other.example"), ("sco", "sco", ORIGIN)]
    {
        let (source, target) = (sas(&from, source), sas(&to, target));
        let (said, notes) = succeed(&["copy", "--from", &source, "--to", &target, "--mode", "replace"]);
        assert!(said.ends_with("1 table verified, 10 rows.\n"), "{said}");
        assert_eq!(notes.contains("service properties were not copied"), origin != ORIGIN, "{notes}");
        assert!(!notes.contains("sig="), "{notes}");
        assert_properties(&to, origin);
    }

    // Into a folder and out of it.
    let place = folder();
    let path = place.path().join("data");
    succeed(&["copy", "--from", &source, "--to", text(&path)]);
    let process = Process::on(&path, &[]);
    assert_properties(&process, ORIGIN);
    process.stop();
    let back = Process::start(&["--in-memory"]);
    succeed(&["copy", "--from", text(&path), "--to", &connection_string(back.address)]);
    assert_properties(&back, ORIGIN);
}

#[test]
fn between_folders_and_databases() {
    let Some(postgres) = Postgres::shared() else { return };
    let (place, url) = (folder(), postgres.database());
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    let process = Process::on(&first, &[&accounts_argument()]);
    insert_odd_rows(&process, "Odd");
    fill(&process, "Ledger", 3, 100, 50);
    set_policies(&process, "Ledger");
    set_properties(&process, "http://example.com");
    process.send(Request::json("POST", "/Tables", r#"{"TableName":"Theirs"}"#).at(OTHER_ACCOUNT)).expect(201);
    let row = r#"{"PartitionKey":"p","RowKey":"r","N":1}"#;
    process.send(Request::json("POST", "/Theirs", row).at(OTHER_ACCOUNT)).expect(201);
    let (_, said) = fail(&["copy", "--from", text(&first), "--to", &url]);
    assert!(said.contains("in use") || said.contains("open"), "{said}");
    process.stop();
    let before = content(&first);

    let there = ["copy", "--from", text(&first), "--to", &url];
    let (said, _) = succeed(&there);
    assert!(said.contains(&format!("{OTHER_ACCOUNT}/Theirs: 1 row, checksum")), "{said}");
    assert!(said.ends_with("3 tables verified, 310 rows.\n"), "{said}");
    assert_eq!(content(&first), before, "what is copied stays as it is");
    succeed(&["copy", "--from", &url, "--to", text(&second)]);
    assert!(succeed(&["check", "-l", text(&second)]).0.contains("Theirs: 1 row, "));
    for (account, table) in [(ACCOUNT, "Odd"), (ACCOUNT, "Ledger"), (OTHER_ACCOUNT, "Theirs")] {
        let from = |folder| lines(&["-l", text(folder), "--account", account], table);
        assert_eq!(from(&second), from(&first));
    }

    // A row that the database has lost.
    Postgres::sql(&url, "DELETE FROM partita_row WHERE pk = 'p001' AND rk = 'r042'");
    let (said, _) = fail(&[&there[..], &["--verify-only"]].concat());
    assert!(said.contains("PartitionKey 'p001', RowKey 'r042' is only at the source."), "{said}");
    let (said, _) = succeed(&[&there[..], &["--resume", "--account", ACCOUNT]].concat());
    assert!(said.contains("Ledger: 300 rows") && said.contains(", 1 written."), "{said}");

    // By a service and an account of its own, and what HTTP does not show.
    let process = Process::on(&second, &[&accounts_argument()]);
    assert_policies(&process, "Ledger");
    assert_properties(&process, "http://example.com");
    let service = connection_string(process.address);
    let third = place.path().join("third");
    let (said, _) = succeed(&["copy", "--from", &service, "--to", text(&third), "--account", "mine"]);
    assert!(said.ends_with("2 tables verified, 309 rows.\n"), "{said}");
    assert_eq!(lines(&["-l", text(&third), "--account", "mine"], "Odd"), lines(&["-l", text(&first)], "Odd"));
    let (_, said) = fail(&["copy", "--from", text(&third), "--to", &service]);
    assert!(said.contains(&format!("no account {ACCOUNT} in")) && said.contains("that is there: mine."), "{said}");
}

/// Waits until the target has a row.
fn wait_for_row(process: &Process, table: &str) {
    let deadline = Instant::now() + PATIENCE;
    while process.send(Request::get(format!("/{table}()?$top=1"))).rows().is_empty() {
        assert!(Instant::now() < deadline, "nothing was copied");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_copy_goes_on() {
    let (from, to) = (Process::start(&["--in-memory"]), Process::start(&["--in-memory"]));
    fill(&from, "Ledger", 45, 100, 50);
    create(&to, "Ledger");
    let proxy = Proxy::start(to.address);
    let (source, target) = (connection_string(from.address), connection_string(proxy.address));
    let copy = ["copy", "--from", &source, "--to", &target, "--connections", "2"];
    // Enough to find that the table is empty, and for an answer or two.
    proxy.allow(20_000);
    let mut child = command().args(copy).spawn().expect("it starts");
    wait_for_row(&to, "Ledger");
    assert!(child.try_wait().expect("it was started").is_none(), "it ended early");
    child.kill().expect("it runs");
    child.wait().expect("it was started");
    proxy.allow(usize::MAX);
    let there = rows(&to, "Ledger").len();
    assert!((1..4500).contains(&there), "{there} rows");
    let (_, said) = fail(&copy);
    assert!(said.contains("--resume"), "{said}");
    let (said, _) = succeed(&[&copy[..], &["--resume"]].concat());
    assert!(said.contains(&format!(", {} written.", 4500 - there)), "{said}");
    assert_eq!(rows(&to, "Ledger"), rows(&from, "Ledger"));
}

/// Nothing is called verified that was changed behind the back of a copy.
#[test]
fn a_source_that_is_written_to_is_noticed() {
    let (from, to) = (Process::start(&["--in-memory"]), Process::start(&["--in-memory"]));
    fill(&from, "Ledger", 45, 100, 50);
    create(&to, "Ledger");
    let proxy = Proxy::start(from.address);
    let (source, target) = (connection_string(proxy.address), connection_string(to.address));
    let copy = ["copy", "--from", &source, "--to", &target];
    // Two pages of a thousand rows, some 400 KB each.
    proxy.allow(1_000_000);
    let child = command().args(copy).spawn().expect("it starts");
    wait_for_row(&to, "Ledger");
    set(&from, "Ledger", "r000", 7);
    delete(&from, "Ledger", "p000", "r001");
    proxy.allow(usize::MAX);
    let output = child.wait_with_output().expect("it was started");
    let (said, last) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{last}");
    assert!(said.contains("RowKey 'r000' differs in N") && !said.contains("verified"), "{said}");
    assert!(last.contains("written to meanwhile") && last.contains("--mode mirror"), "{last}");
    let (said, _) = succeed(&[&copy[..], &["--mode", "mirror"]].concat());
    assert!(said.contains(", 1 written, 1 deleted."), "{said}");
}

#[test]
fn copies_survive_lost_answers() {
    let (from, to) = (Process::start(&["--in-memory"]), Process::start(&["--in-memory"]));
    fill(&from, "Ledger", 30, 100, 50);
    let (near, far) = (Proxy::start(from.address), Proxy::start(to.address));
    let (source, target) = (connection_string(near.address), connection_string(far.address));
    near.cut_after(700_000);
    far.cut_after(60_000);
    let (said, _) = succeed(&["copy", "--from", &source, "--to", &target]);
    near.assert_cut();
    far.assert_cut();
    assert!(said.ends_with("1 table verified, 3000 rows.\n"), "{said}");
    // Deletions too: the rows of the first ten partitions are all that is left.
    fill(&from, "Less", 10, 100, 50);
    succeed(&["copy", "--from", &source, "--to", &target, "--table", "Less"]);
    far.cut_after(1_300_000);
    let (said, _) =
        succeed(&["copy", "--from", &source, "--to", &target, "--table", "Less", "--as", "Ledger", "--mode", "mirror"]);
    far.assert_cut();
    assert!(said.contains("Less as Ledger: 1000 rows") && said.contains(", 0 written, 2000 deleted."), "{said}");
}

#[test]
fn wrong_inputs() {
    let process = Process::start(&["--in-memory"]);
    create(&process, "People");
    let service = connection_string(process.address);
    let (place, nobody) = (folder(), connection_string("127.0.0.1:1".parse().expect("an address")));
    let empty = text(place.path());
    let new = place.path().join("new");
    let other = Process::start(&["--in-memory"]);
    let without_tables = connection_string(other.address);
    for (arguments, says) in [
        (&["--from", "/nowhere", "--to", &service][..], "/nowhere is not a data folder"),
        (&["--from", &service, "--to", empty, "--verify-only"], "is not a data folder"),
        (&["--from", &service, "--to", "mysql://me:s3cret@here/db"], "A place is a connection string"),
        (&["--from", "AccountName=a;AccountKey=s3cret!", "--to", &service], "The connection string cannot be used"),
        (&["--from", "postgres://me:s3cret@127.0.0.1:1/db", "--to", &service], "no connection to the database"),
        (&["--from", &nobody, "--to", &service], "cannot be reached"),
        (&["--from", &service, "--to", &service], "Both ends are"),
        (&["--from", &without_tables, "--to", &service], "There are no tables at the source"),
        (&["--from", &without_tables, "--to", text(&new)], "There are no tables at the source"),
        (&["--from", empty, "--to", empty], "Both ends are"),
        (&["--from", &service, "--to", empty, "--table", "People,Nobody"], "There is no table Nobody in"),
        (&["--from", &service, "--to", text(&new), "--table", "Poeple"], "There is no table Poeple in"),
        (
            &["--from", &service, "--to", empty, "--table", "People,Other", "--as", "Third"],
            "--as is for a single table",
        ),
        (&["--from", &service, "--to", empty, "--account", "Not A Name"], "not the name of an account"),
        (&["--from", &service, "--to", &nobody, "--account", "mine"], "--account is for folders"),
    ] {
        let (_, said) = fail(&[&["copy"], arguments].concat());
        assert!(said.contains(says) && !said.contains("s3cret") && !said.contains(KEY), "{arguments:?}: {said}");
    }
    let left: Vec<_> = fs::read_dir(place.path()).expect("it is there").collect();
    assert!(left.is_empty(), "nothing is made for a copy that is none: {left:?}");
}
