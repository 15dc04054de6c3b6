//! The binary as its users meet it: what it says, how it starts and ends, what it keeps, what it never tells.

use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use partita_testing::batch::change_set;
use partita_testing::http::{Connection, Request, entity, tcp};
use partita_testing::process::{From, Process, accounts_argument, command};
use partita_testing::signing::{ACCOUNT, KEY, KEY_TWO, OTHER_ACCOUNT, OTHER_KEY, account_sas, table_sas, token};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

fn create(table: &str) -> Request {
    Request::json("POST", "/Tables", format!(r#"{{"TableName":"{table}"}}"#))
}

fn insert(row_key: &str) -> Request {
    Request::json("POST", "/People", format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}","A":1}}"#))
}

/// Starts and expects that it does not run: what it said.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    match Process::try_start(arguments) {
        Ok(process) => panic!("it runs with {arguments:?}\n{}", process.said_text()),
        Err((status, said)) => {
            assert!(!status.success() && status.code().is_some(), "{status}: {said}");
            said
        }
    }
}

/// One line for people, without the marks of a crash.
fn is_sentence(said: &str) -> bool {
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    let is_crash = ["panicked", "RUST_BACKTRACE", "Error(", "Os {"].iter().any(|mark| said.contains(mark));
    lines.len() == 1 && lines[0].starts_with("partita: ") && lines[0].ends_with('.') && !is_crash
}

/// As with `partita | head -1`.
#[test]
fn whoever_reads_what_it_says_may_go() {
    let mut server = command();
    server.args(["--in-memory", "--table-port", "0", "--admin-port", "0"]);
    server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = server.spawn().expect("it starts");
    let mut lines = BufReader::new(server.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("is ready") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).expect("it is text"), 0, "it ended");
    }
    drop(lines);
    let terminated = Command::new("kill").arg(server.id().to_string()).status();
    assert!(terminated.expect("there is a program that sends signals").success());
    let ended = server.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && !said.contains("panicked"), "{}: {said}", ended.status);
}

#[test]
fn ready_lines() {
    let process = Process::start(&["--in-memory"]);
    let url = format!("http://{}", process.address);
    assert_ne!(process.address.port(), 0);
    let said = process.said_text();
    for line in [
        format!("Azurite Table service is starting at {url}"),
        format!("Azurite Table service is successfully listening at {url}"),
        format!("Azurite Table service successfully listens on {url}"),
        format!(
            "Connection string: DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};\
             TableEndpoint={url}/{ACCOUNT};"
        ),
        format!("Metrics: http://{}/metrics", process.admin),
    ] {
        assert!(said.lines().any(|other| other == line), "no line '{line}' in\n{said}");
    }
    assert!(process.said.iter().all(|(from, _)| *from == From::Stdout), "{:?}", process.said);
    process.send(create("People")).expect(201);
    assert!(process.stop().contains("Azurite Table service successfully closed"));
}

/// Keys that are somebody's own are not printed.
#[test]
fn connection_strings_of_own_accounts() {
    let process = Process::start(&["--in-memory", "--accounts", &format!("{OTHER_ACCOUNT}:{OTHER_KEY}")]);
    let said = process.said_text();
    assert!(said.contains(&format!("AccountName={OTHER_ACCOUNT};AccountKey=<key>;")), "{said}");
    assert!(!said.contains(OTHER_KEY), "{said}");
    process.send(create("People").at(OTHER_ACCOUNT)).expect(201);
    process.send(create("People")).expect(404);
}

#[test]
fn azurite_flags() {
    let folder = folder();
    let location = text(folder.path());
    let process = Process::start(&["-l", location, "--tableHost", "127.0.0.1", "--loose", "--skipApiVersionCheck"]);
    process.send(create("People")).expect(201);
    let said = process.stop();
    assert_eq!(said.matches("has no effect").count(), 2, "{said}");
}

#[test]
fn one_process_a_folder() {
    let folder = folder();
    let first = Process::on(folder.path(), &[]);
    let said = refused(&["--location", text(folder.path())]);
    assert!(is_sentence(&said) && said.contains(text(folder.path())), "{said}");
    first.send(create("People")).expect(201);
    first.stop();
    Process::on(folder.path(), &[]).send(Request::get("/Tables('People')")).expect(200);
}

/// A port that is taken is a sentence too, and does not harm the folder.
#[test]
fn one_process_a_port() {
    let first = Process::start(&["--in-memory"]);
    let port = first.address.port().to_string();
    let mut command = partita_testing::process::command();
    command.args(["--in-memory", "--admin-port", "0", "--table-port", &port]);
    let Err((status, said)) = Process::spawn(command) else { panic!("two on one port") };
    assert!(!status.success());
    assert!(is_sentence(&said) && said.contains(&port), "{said}");
}

#[test]
fn a_request_under_way_completes() {
    let folder = folder();
    let mut process = Process::on(folder.path(), &[]);
    process.send(create("People")).expect(201);
    let request = insert("slow").header("Expect", "100-continue").signed();
    let bytes = request.bytes();
    let (head, body) = bytes.split_at(bytes.len() - request.body.len());
    let mut connection = process.connect();
    // Once it is told to go on the request is under way.
    assert_eq!(connection.exchange(head).status, 100);
    let mut idle = process.connect();
    idle.send(&Request::get("/Tables").signed()).expect(200);
    process.signal("TERM");
    process.wait_for("stopping");
    connection.write(&body[..5]).expect("the server still reads");
    connection.write(&body[5..]).expect("the server still reads");
    let response = connection.read().expect("the request is answered").expect(201);
    let etag = response.header("etag").expect("an insert has an ETag").to_owned();
    assert!(idle.read().is_err(), "idle connections are closed");
    let address = process.address;
    let (status, said) = process.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    let process = Process::on(folder.path(), &[]);
    let stored = process.send(Request::get(entity("People", "p", "slow"))).expect(200);
    assert_eq!(stored.header("etag"), Some(etag.as_str()));
}

#[test]
fn interrupt_ends_it_too() {
    let process = Process::start(&["--in-memory"]);
    process.signal("INT");
    let (status, said) = process.wait();
    assert_eq!(status.code(), Some(0), "{said}");
}

const POLICIES: &str = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
    <Expiry>2099-01-01T00:00:00.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
const PROPERTIES: &str = "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write>\
    <Delete>false</Delete><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging></StorageServiceProperties>";

/// Puts something of everything in, and says what there is.
fn fill(process: &Process) {
    process.send(create("People")).expect(201);
    process.send(create("Doomed")).expect(201);
    process.send(create("People").at(OTHER_ACCOUNT)).expect(201);
    (0..10).for_each(|row| drop(process.send(insert(&format!("r{row}"))).expect(201)));
    process.send(change_set(&[insert("t1"), insert("t2")])).expect(202);
    process.send(Request::json("PATCH", entity("People", "p", "r1"), r#"{"B":"é"}"#)).expect(204);
    process.send(Request::delete(entity("People", "p", "r2")).header("If-Match", "*")).expect(204);
    process.send(Request::delete("/Tables('Doomed')")).expect(204);
    process.send(Request::new("PUT", "/People?comp=acl").body(POLICIES)).expect(204);
    process.send(Request::new("PUT", "/?restype=service&comp=properties").body(PROPERTIES)).expect(202);
}

fn contents(process: &Process) -> Vec<String> {
    let full = "application/json;odata=fullmetadata";
    let get = |target: &str| process.send(Request::get(target).header("Accept", full)).expect(200).text();
    let mut contents =
        ["/Tables", "/People()", "/People?comp=acl", "/?restype=service&comp=properties"].map(get).to_vec();
    contents.push(process.send(Request::get("/Tables").at(OTHER_ACCOUNT)).expect(200).text());
    contents
}

#[test]
fn a_restart_keeps_everything() {
    let folder = folder();
    let accounts = accounts_argument();
    let process = Process::on(folder.path(), &[&accounts]);
    fill(&process);
    let before = contents(&process);
    assert!(before[2].contains("<Id>one</Id>") && before[3].contains("<Days>7</Days>"), "{before:?}");
    process.stop();
    let process = Process::on(folder.path(), &[&accounts]);
    assert_eq!(contents(&process), before);
    // The ETag of before is still the one to name, and the policy still the one that counts.
    let stored = process.send(Request::get(entity("People", "p", "r1"))).expect(200);
    let etag = stored.header("etag").expect("an entity has an ETag").to_owned();
    let change = || Request::json("PUT", entity("People", "p", "r1"), "{}").header("If-Match", &*etag);
    let changed = process.send(change()).expect(204);
    assert!(changed.header("etag").is_some_and(|new| new > etag.as_str()), "{etag} then {changed:?}");
    process.send(change()).expect(412);
    let sas = partita_auth::SasBuilder::table("People").policy("one");
    process.send(Request::get("/People()").sas(&sas)).expect(200);
    process.send(create("Doomed")).expect(201);
    assert_eq!(process.send(Request::get("/Doomed()")).expect(200).rows(), "");
}

#[test]
fn durabilities() {
    for durability in ["sync", "interval", "none"] {
        let folder = folder();
        let accounts = accounts_argument();
        let arguments = [accounts.as_str(), "--durability", durability, "--sync-interval-ms=10"];
        let process = Process::on(folder.path(), &arguments);
        fill(&process);
        let before = contents(&process);
        process.stop();
        assert_eq!(contents(&Process::on(folder.path(), &arguments)), before, "{durability}");
    }
}

/// Nothing is kept of what was in memory.
#[test]
fn in_memory() {
    let folder = folder();
    let process = Process::on(folder.path(), &["--in-memory"]);
    process.send(create("People")).expect(201);
    process.stop();
    assert_eq!(fs::read_dir(folder.path()).expect("the folder is there").count(), 0);
}

fn write_config(path: &Path, accounts: &str) {
    // Written beside and moved into place, as careful editors and orchestrators do.
    let beside = path.with_extension("new");
    fs::write(&beside, format!("in-memory = true\n[accounts]\n{accounts}\n")).expect("a file can be written");
    fs::rename(&beside, path).expect("a file can be renamed");
}

#[test]
fn accounts_are_read_again() {
    let folder = folder();
    let path = folder.path().join("partita.toml");
    let (first, second) = (format!("{ACCOUNT} = ['{KEY}']"), format!("{ACCOUNT} = ['{KEY_TWO}']"));
    let both = format!("{second}\n{OTHER_ACCOUNT} = ['{OTHER_KEY}']");
    write_config(&path, &first);
    let mut process = Process::start(&["--config", text(&path)]);
    let lite = partita_auth::Scheme::SharedKeyLite;
    let by = |process: &Process, key| process.send(Request::get("/Tables").signed_with(lite, key)).status;
    assert_eq!((by(&process, KEY), by(&process, KEY_TWO)), (200, 403));

    // When the file changes.
    write_config(&path, &second);
    process.wait_for("accounts were read again");
    assert_eq!((by(&process, KEY), by(&process, KEY_TWO)), (403, 200));
    // When it is asked to, whether or not the file changed.
    process.signal("HUP");
    process.wait_for("accounts were read again");
    write_config(&path, &both);
    process.signal("HUP");
    process.wait_for("accounts were read again");
    process.send(Request::get("/Tables").at(OTHER_ACCOUNT)).expect(200);
    // A file that cannot be read changes nothing, and says no key.
    for broken in [format!("{ACCOUNT} = ['not base64!']"), format!("{ACCOUNT} = '{KEY}'"), "[[".to_owned()] {
        write_config(&path, &broken);
        process.signal("HUP");
        let line = process.wait_for("accounts stay as they were");
        assert!(!line.contains("not base64!"), "{line}");
        assert_eq!(by(&process, KEY_TWO), 200);
    }
    let said = process.stop();
    // The development key is in the connection string, where it belongs, and nowhere else.
    for line in said.lines().filter(|line| !line.starts_with("Connection string: ")) {
        assert!(![KEY, KEY_TWO, OTHER_KEY].iter().any(|key| line.contains(key)), "a key in: {line}");
    }
}

#[test]
fn refusals_are_sentences() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").expect("a file can be written");
    let config = folder.path().join("partita.toml");
    fs::write(&config, "tabel-port = 1").expect("a file can be written");
    let nowhere = folder.path().join("nowhere.pem");
    let mut wrong = Vec::new();
    for (arguments, says) in [
        (&["--in-memory", "--table-host", "0.0.0.0"][..], "--allow-development-key"),
        (&["--in-memory", "--table-host", "example"], "'example'"),
        (&["--in-memory", "--accounts", "devstoreaccount1"], "name:key1"),
        (&["--in-memory", "--accounts", "devstoreaccount1:secret!"], "base64"),
        (&["--in-memory", "--accounts", "Upper:c2VjcmV0"], "Upper"),
        (&["--in-memory", "--cert", text(&nowhere)], "--key"),
        (&["--in-memory", "--cert", text(&nowhere), "--key", text(&nowhere)], text(&nowhere)),
        (&["--config", "/nowhere/partita.toml"], "/nowhere/partita.toml"),
        (&["--location", text(&file)], text(&file)),
        (&["--in-memory", "--debug", "/nowhere/debug.log"], "/nowhere/debug.log"),
    ] {
        let said = refused(arguments);
        if !is_sentence(&said) || !said.contains(says) || said.contains("secret!") {
            wrong.push(format!("{arguments:?}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "not sentences:\n{}", wrong.concat());
    // What the parsers of flags and files say takes more lines, and names the place.
    for (arguments, says) in [
        (&["--tabel-port", "1"][..], "--tabel-port"),
        (&["--table-port", "many"], "many"),
        (&["--durability", "sometimes"], "sometimes"),
        (&["--config", text(&config)], "tabel-port"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(says) && !said.contains("panicked"), "{arguments:?}: {said}");
    }
}

/// A mistake in the file of accounts does not put its keys on the screen.
#[test]
fn a_bad_file_of_accounts() {
    let folder = folder();
    let path = folder.path().join("partita.toml");
    for accounts in [
        format!("mine = '{OTHER_KEY}'"),
        format!("mine = ['{OTHER_KEY}"),
        format!("mine = ['{OTHER_KEY}', 1]"),
        format!("mine = {{ key = '{OTHER_KEY}' }}"),
        format!("mine = ['{OTHER_KEY}', '{OTHER_KEY}', '{OTHER_KEY}']"),
        OTHER_KEY.to_owned(),
    ] {
        write_config(&path, &accounts);
        let said = refused(&["--config", text(&path)]);
        assert!(!said.contains(OTHER_KEY), "a key in: {said}");
        assert!(said.contains(text(&path)) || said.contains("'mine'"), "{said}");
    }
}

/// The key everybody knows serves other machines only on request.
#[test]
fn the_development_key_beyond_this_machine() {
    refused(&["--in-memory", "--table-host", "0.0.0.0"]);
    refused(&["--in-memory", "--table-host", "0.0.0.0", "--accounts", &format!("mine:{OTHER_KEY}:{KEY}")]);
    Process::start(&["--in-memory", "--table-host", "0.0.0.0", "--allow-development-key"]);
    Process::start(&["--in-memory", "--table-host", "0.0.0.0", "--accounts", &format!("mine:{OTHER_KEY}")]);
}

#[test]
fn the_admin_port() {
    let folder = folder();
    let process = Process::on(folder.path(), &[]);
    assert_eq!(process.ask_admin("/livez").expect(200).text(), "alive\n");
    assert_eq!(process.ask_admin("/readyz").expect(200).text(), "ready\n");
    process.ask_admin("/").expect(404);
    process.ask_admin("/devstoreaccount1/Tables").expect(404);
    process.send(create("People")).expect(201);
    process.send(create("People")).expect(409);
    process.send(insert("r")).expect(201);
    process.send(Request::get("/People()")).expect(200);
    process.connect().send(&Request::get("/Tables")).expect(403);
    let metrics = process.ask_admin("/metrics").expect(200);
    assert!(metrics.header("content-type").is_some_and(|kind| kind.starts_with("application/openmetrics-text")));
    let metrics = metrics.text();
    for line in [
        r#"partita_requests_total{operation="CreateTable",status="201"} 1"#,
        r#"partita_requests_total{operation="CreateTable",status="409"} 1"#,
        r#"partita_requests_total{operation="QueryTables",status="403"} 1"#,
        r#"partita_request_seconds_count{operation="InsertEntity"} 1"#,
        r#"partita_queries_total{class="table_scan",azure_class="table_scan"} 1"#,
        "partita_query_rows_read_total 1",
        "partita_query_rows_returned_total 1",
    ] {
        assert!(metrics.lines().any(|other| other == line), "no line '{line}' in\n{metrics}");
    }
    for name in ["partita_connections ", "partita_store_"] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "no {name} in\n{metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(!metrics.contains(KEY));
}

/// Everything that must stay secret in a request: its signature, raw and encoded, and the keys.
fn secrets(request: &Request) -> Vec<String> {
    let mut secrets = vec![KEY.to_owned(), KEY_TWO.to_owned(), OTHER_KEY.to_owned(), "sig=".to_owned()];
    if let Some((_, signature)) = request.get_header("Authorization").and_then(|value| value.split_once(':')) {
        secrets.push(signature.to_owned());
    }
    if let Some((_, signature)) = request.target.split_once("sig=") {
        secrets.push(signature.to_owned());
        secrets.push(signature.replace("%2B", "+").replace("%2F", "/").replace("%3D", "="));
    }
    secrets
}

#[test]
fn logs_tell_requests_and_no_secrets() {
    let folder = folder();
    let debug = folder.path().join("debug.log");
    let accounts = accounts_argument();
    let process =
        Process::start(&["--in-memory", &accounts, "--log-level=debug", "--log-format=json", "--debug", text(&debug)]);
    let weak = table_sas("People", "r");
    let sas = token(&table_sas("People", "raud"), ACCOUNT, KEY);
    let spoilt = token(&table_sas("People", "raud"), ACCOUNT, OTHER_KEY);
    let absolute = Request::get("/People()").signed();
    let requests = [
        (create("People").signed(), 201),
        (create("People").signed_with(partita_auth::Scheme::SharedKey, KEY_TWO), 409),
        (Request::get("/Tables").signed_with(partita_auth::Scheme::SharedKey, OTHER_KEY), 403),
        (insert("a").query(&sas), 201),
        (insert("b").query(&spoilt), 403),
        (insert("b").sas(&weak), 403),
        (Request::get("/People()").sas(&account_sas("o", "r")), 200),
        (Request::get("/People()?comp=list").query(&sas), 400),
        (Request::get("/ab()").sas(&account_sas("o", "r")), 400),
        (Request::new("COPY", "/People()").query(&sas), 405),
        (Request::new("OPTIONS", "/People()").query(&sas), 400),
        (Request::get("/People()").query(&sas).header("Authorization", "Bearer sig="), 403),
        (change_set(&[insert("c").query(&sas)]).query(&sas), 202),
        (absolute, 200),
    ];
    let mut ids = Vec::new();
    for (request, status) in &requests {
        let response = process.connect().send(request).expect(*status);
        ids.push(response.header("x-ms-request-id").expect("every response has an id").to_owned());
    }
    process.connect().write(b"GET /devstoreaccount1/People()?sig=c2VjcmV0 HTTP/9\r\n\r\n").expect("the server reads");
    let lines = {
        process.signal("TERM");
        process.wait().1
    };
    let logged = fs::read_to_string(&debug).expect("there is a debug log");
    for id in &ids {
        assert!(logged.contains(id.as_str()), "no {id} in\n{logged}");
        let line = lines.lines().find(|line| line.contains(id.as_str())).unwrap_or_else(|| panic!("no {id}\n{lines}"));
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is a JSON object");
        assert_eq!(line["fields"]["request_id"], **id, "{line}");
        assert!(line["fields"]["operation"].is_string() && line["fields"]["status"].is_number(), "{line}");
    }
    for (request, _) in &requests {
        for secret in secrets(request) {
            let without_banner = lines.lines().filter(|line| !line.starts_with("Connection string: "));
            for line in without_banner.chain(logged.lines()) {
                assert!(!line.contains(&secret), "{secret} in {line}");
            }
        }
    }
}

/// A certificate for this machine in a folder.
fn certificate(folder: &Path) -> (String, String, RootCertStore) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate can be made");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&cert, made.cert.pem()).expect("a file can be written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("a file can be written");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cert).expect("a certificate")).expect("a root");
    (text(&cert).to_owned(), text(&key).to_owned(), roots)
}

fn client(roots: RootCertStore, protocol: &str) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Arc::new(config)
}

#[test]
fn https() {
    let folder = folder();
    let (cert, key, roots) = certificate(folder.path());
    let process = Process::start(&["--in-memory", "--cert", &cert, "--key", &key]);
    let said = process.said_text();
    assert!(said.contains(&format!("listens on https://{}", process.address)), "{said}");
    assert!(said.contains("DefaultEndpointsProtocol=https;"), "{said}");
    let server = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(client(roots, "http/1.1"), server).expect("a session");
    let mut connection = Connection::over(StreamOwned::new(session, tcp(process.address)));
    let created = connection.send(&create("People").signed()).expect(201);
    assert!(created.header("location").is_some_and(|url| url.starts_with("https://127.0.0.1")), "{created:?}");
    connection.send(&Request::get("/People()").sas(&table_sas("People", "r").https_only())).expect(200);
    // Whoever speaks plain HTTP, or nothing at all, does not disturb.
    let mut plain = process.connect();
    let _ = plain.write(&Request::get("/Tables").bytes());
    assert!(plain.read().is_err());
    let silent = tcp(process.address);
    connection.send(&Request::get("/Tables").signed()).expect(200);
    drop((connection, silent));
    process.stop();
}

/// Whoever connects and says nothing is no request under way: the end does not wait for it.
#[test]
fn a_silent_client_does_not_delay_the_end() {
    let folder = folder();
    let (cert, key, _) = certificate(folder.path());
    for tls in [&[][..], &["--cert", &cert, "--key", &key]] {
        let process = Process::start(&[&["--in-memory"], tls].concat());
        let silent = tcp(process.address);
        // One connection is the question itself.
        while !process.ask_admin("/metrics").text().contains("\npartita_connections 2\n") {}
        let asked = Instant::now();
        process.stop();
        assert!(asked.elapsed() < Duration::from_secs(5), "it took {:?} with {tls:?}", asked.elapsed());
        drop(silent);
    }
}

/// The same over HTTP/2, with everything logged that can be.
#[test]
fn https_with_http2() {
    let folder = folder();
    let (cert, key, roots) = certificate(folder.path());
    let debug = folder.path().join("debug.log");
    let arguments = ["--in-memory", "--cert", &cert, "--key", &key, "--log-level=trace", "--debug", text(&debug)];
    let process = Process::start(&arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    let requests = [
        create("People").signed(),
        insert("r").signed(),
        Request::get("/People()").sas(&table_sas("People", "r").https_only()),
    ];
    let answers = runtime.block_on(over_http2(process.address, roots, &requests));
    assert_eq!(answers.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [201, 201, 200], "{answers:?}");
    assert!(answers[2].1.contains(r#""RowKey":"r""#), "{answers:?}");
    drop(runtime);
    let said = process.stop();
    let logged = fs::read_to_string(&debug).expect("there is a debug log");
    for secret in requests.iter().flat_map(secrets) {
        let lines = said.lines().filter(|line| !line.starts_with("Connection string: "));
        for line in lines.chain(logged.lines()) {
            assert!(!line.contains(&secret), "{secret} in {line}");
        }
    }
}

async fn over_http2(address: SocketAddr, roots: RootCertStore, requests: &[Request]) -> Vec<(u16, String)> {
    let stream = tokio::net::TcpStream::connect(address).await.expect("the server listens");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(client(roots, "h2")).connect(name, stream).await.expect("TLS");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let mut answers = Vec::new();
    for request in requests {
        let uri = format!("https://{address}/{}{}", request.account, request.target);
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(uri);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let body = Full::new(bytes::Bytes::from(request.body.clone()));
        let response = sender.send_request(builder.body(body).expect("a request")).await.expect("a response");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        answers.push((status, String::from_utf8_lossy(&body).into_owned()));
    }
    answers
}
