//! The signature matrix: every operation, plain and as a part of a batch, with every kind of credential.
//!
//! [`operations`] is the one table that says what is allowed. [`credentials`] makes the credentials and reads the table;
//! whatever that does not allow must be refused with the code of the first thing that is wrong, and change nothing. Every
//! cell is a request over HTTP. [`ranges`] does the same for rows: what a signature of a range of keys reaches.

mod credentials;
mod operations;
mod ranges;

use credentials::{Address, Credential, Kind, Time, Token, subsets};
use operations::{OPERATIONS, ORIGIN, Operation, SECONDARY, Spot, TABLE, make_table, policies, put_row};
use partita_auth::Scheme;
use partita_testing::batch::{change_set, part, parts};
use partita_testing::http::{Connection, Request, Response, tcp};
use partita_testing::server::TestServer;
use partita_testing::signing::{KEY, KEY_TWO, OTHER_KEY, WRONG_KEY};
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Letters of an account signature that some operation of tables asks for, and one that none does.
const ACCOUNT_LETTERS: &str = "rwdlacup";

/// A server, a connection to it, and what was tried.
struct Matrix {
    _server: TestServer,
    connection: Connection,
    https: bool,
    cells: usize,
}

impl Matrix {
    fn new() -> Matrix {
        let server = TestServer::start();
        let connection = server.connect();
        Matrix::over(server, connection, false)
    }

    fn over(server: TestServer, connection: Connection, https: bool) -> Matrix {
        let mut matrix = Matrix { _server: server, connection, https, cells: 0 };
        let cors = format!(
            "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>{ORIGIN}</AllowedOrigins>\
             <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/>\
             </CorsRule></Cors></StorageServiceProperties>"
        );
        let spot = Spot::number(0);
        for (request, status) in [
            (Request::new("PUT", "/?restype=service&comp=properties").body(cors), 202),
            (make_table(TABLE), 201),
            (make_table("Doomed"), 201),
            (put_row(&spot, "there"), 204),
            (put_row(&spot, "doomed"), 204),
        ] {
            matrix.by_key(request).expect(status);
        }
        matrix
    }

    fn send(&mut self, request: &Request) -> Response {
        self.connection.send(request)
    }

    fn by_key(&mut self, request: Request) -> Response {
        self.send(&request.signed())
    }

    /// Everything there is; versions tell even a change that changed nothing.
    fn state(&mut self) -> Vec<String> {
        let targets = ["/Tables", "/People()", "/People?comp=acl", "/?restype=service&comp=properties"];
        targets.map(|target| self.by_key(Request::get(target)).expect(200).text()).to_vec()
    }

    /// Sends one cell: the answer, from within the batch where there is one.
    fn cell(&mut self, sign: &dyn Fn(Request) -> Request, request: Request) -> Response {
        self.cells += 1;
        let is_batch = request.target == "/$batch";
        let response = self.send(&sign(request));
        if is_batch && response.status == 202 { part(&response) } else { response }
    }

    /// Tries every operation with a credential, first those that are denied.
    fn try_all(&mut self, who: &Credential) {
        self.try_spelled(who, TABLE);
    }

    /// As [`Matrix::try_all`], with the name of the table in the URL spelled like this.
    fn try_spelled(&mut self, who: &Credential, table: &'static str) {
        let sign = who.signer();
        let https = self.https;
        let forms = OPERATIONS.iter().flat_map(|operation| [(operation, false), (operation, true)]);
        // A browser does not ask beforehand for parts of a batch.
        let forms = forms.filter(|(operation, is_part)| !is_part || operation.name != "preflight");
        let judged = forms.map(|(operation, is_part)| (operation, is_part, who.judge(operation, is_part, https)));
        let (allowed, denied): (Vec<_>, Vec<_>) = judged.partition(|(_, _, verdict)| verdict.is_ok());

        let before = self.state();
        let deny = |matrix: &mut Matrix, operation: &Operation, is_part: bool, expected: (u16, &str)| {
            let at = Spot { table, ..Spot::number(matrix.cells) };
            let request = if is_part { operation.as_part(&at) } else { (operation.request)(&at) };
            let answer = matrix.cell(&*sign, request);
            let what = if is_part { "as a part" } else { "" };
            let found = answer.outcome();
            assert_eq!((found.0, found.1.as_str()), expected, "{} {what} with {who:?}: {answer:?}", operation.name);
        };
        for (operation, is_part, verdict) in &denied {
            deny(self, operation, *is_part, verdict.expect_err("it is denied"));
        }
        if self.state() != before {
            // Once more, one by one, to say which.
            for (operation, is_part, verdict) in &denied {
                let before = self.state();
                deny(self, operation, *is_part, verdict.expect_err("it is denied"));
                let part = if *is_part { "as a part" } else { "" };
                assert_eq!(self.state(), before, "refused and done: {} {part} with {who:?}", operation.name);
            }
            panic!("something was changed by what was refused to {who:?}");
        }
        for (operation, is_part, _) in allowed {
            let at = Spot { table, ..Spot::number(self.cells) };
            let (request, success) = match is_part {
                true => (operation.as_part(&at), operation.success_as_part()),
                false => ((operation.request)(&at), operation.success),
            };
            let answer = self.cell(&*sign, request);
            let part = if is_part { "as a part" } else { "" };
            assert_eq!(answer.status, success, "{} {part} with {who:?}: {answer:?}", operation.name);
            if let (true, Some(undo)) = (success < 300, (operation.undo)(&at)) {
                let undone = self.by_key(undo);
                assert!(undone.status < 300, "to undo {}: {undone:?}", operation.name);
            }
        }
    }

    /// Says how much was tried, which is also a check that it was tried at all.
    fn at_least(&self, cells: usize) {
        eprintln!("{} cells", self.cells);
        assert!(self.cells >= cells, "only {} cells", self.cells);
    }
}

#[test]
fn keys_and_nothing() {
    let mut matrix = Matrix::new();
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        for key in [KEY, KEY_TWO, WRONG_KEY, OTHER_KEY] {
            for minutes in [-14, 0, 14, -16, 16, -60 * 24] {
                matrix.try_all(&Credential::Key { scheme, key, minutes });
            }
        }
    }
    for version in ["2019-02-02", "2020-12-06", "2026-02-06"] {
        matrix.try_all(&Credential::None { version });
        matrix.try_all(&Credential::Bearer { version });
    }
    matrix.at_least(2_000);
}

/// Every set of permissions with every set of resource types.
#[test]
fn permissions_of_an_account() {
    let mut matrix = Matrix::new();
    for letters in subsets(ACCOUNT_LETTERS) {
        for types in subsets("sco") {
            matrix.try_all(&Credential::Token(Token::account(&types, &letters)));
        }
    }
    matrix.at_least(80_000);
}

#[test]
fn permissions_of_a_table() {
    let mut matrix = Matrix::new();
    // Letters of other services are no letters of a table's.
    for letters in subsets("raud").into_iter().chain(["wclp".into(), "rwclp".into()]) {
        for version in ["2019-02-02", "2012-02-12", "2014-02-14", "2030-01-01"] {
            matrix.try_all(&Credential::Token(Token { version, ..Token::table(&letters) }));
        }
        matrix.by_key(policies(
            TABLE,
            &[
                ("now", None, 3600, &letters),
                ("started", Some(-3600), 3600, &letters),
                ("early", Some(1800), 3600, &letters),
                ("late", Some(-3600), -1, &letters),
                ("empty", None, 3600, ""),
            ],
        ));
        if letters.contains('w') {
            continue;
        }
        for (id, good) in
            [("now", true), ("started", true), ("early", false), ("late", false), ("empty", false), ("gone", false)]
        {
            matrix.try_all(&Credential::Token(Token::new(Kind::Policy { id, good }, &letters)));
            matrix.try_all(&Credential::Token(Token::new(Kind::PolicyAndMore { id }, &letters)));
        }
        // What was in force a moment ago and is revoked.
        matrix.by_key(Request::new("PUT", "/People?comp=acl")).expect(204);
        matrix.try_all(&Credential::Token(Token::new(Kind::Policy { id: "now", good: false }, &letters)));
    }
    matrix.at_least(9_000);
}

/// Time, address, protocol, signing key, service and layout, each with each.
#[test]
fn circumstances() {
    let mut matrix = Matrix::new();
    let account = |services| Kind::Account { services, types: "sco".into() };
    for (kind, letters) in [
        (account("t"), ACCOUNT_LETTERS),
        (account("bqtf"), "r"),
        (account("bqf"), ACCOUNT_LETTERS),
        (Kind::Table { name: TABLE }, "raud"),
        (Kind::Table { name: TABLE }, "r"),
        (Kind::Table { name: "Peoples" }, "raud"),
    ] {
        for time in Time::ALL {
            for address in Address::ALL {
                for https_only in [false, true] {
                    for key in [KEY, KEY_TWO, WRONG_KEY, OTHER_KEY] {
                        for version in ["2015-04-05", "2026-02-06"] {
                            let token = Token::new(kind.clone(), letters);
                            let token = Token { time, address, https_only, key, version, ..token };
                            matrix.try_all(&Credential::Token(token));
                        }
                    }
                }
            }
        }
    }
    matrix.at_least(90_000);
}

/// The name of a table is the same in any case, in the token as in the URL.
#[test]
fn spellings() {
    let mut matrix = Matrix::new();
    for spelling in ["People", "people", "PEOPLE"] {
        for name in ["People", "people", "PEOPLE", "Peoples", "Peopl", "Doomed"] {
            for letters in subsets("raud") {
                matrix.try_spelled(&Credential::Token(Token::new(Kind::Table { name }, &letters)), spelling);
            }
        }
        matrix.try_spelled(&Credential::Key { scheme: Scheme::SharedKey, key: KEY, minutes: 0 }, spelling);
        matrix.try_spelled(&Credential::Token(Token::account("o", "raud")), spelling);
    }
    matrix.at_least(12_000);
}

/// Over TLS what asks for it is served.
#[test]
fn https() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate can be made");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("a file can be written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file can be written");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cert).expect("a certificate")).expect("a root");
    let server = TestServer::with(|settings| {
        settings.cert = Some(cert);
        settings.key = Some(key);
    });
    let config = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(config, name).expect("a session");
    let connection = Connection::over(StreamOwned::new(session, tcp(server.address)));
    let mut matrix = Matrix::over(server, connection, true);
    for https_only in [false, true] {
        for time in Time::ALL {
            for address in Address::ALL {
                for token in [Token::table("raud"), Token::table("r"), Token::account("sco", ACCOUNT_LETTERS)] {
                    matrix.try_all(&Credential::Token(Token { https_only, time, address, ..token }));
                }
            }
        }
    }
    matrix.at_least(5_000);
}

/// A change set of two operations needs what both need, and is done whole or not at all.
#[test]
fn mixed_change_sets() {
    let mut matrix = Matrix::new();
    let changes: Vec<_> = OPERATIONS.iter().filter(|operation| operation.is_change()).collect();
    let mut tokens: Vec<Token> = subsets("raud").iter().map(|letters| Token::table(letters)).collect();
    tokens.extend(subsets("raud").iter().map(|letters| Token::account("o", letters)));
    tokens.push(Token::account("sc", "raud"));
    tokens.push(Token::new(Kind::Table { name: "Peoples" }, "raud"));
    for token in tokens {
        let who = Credential::Token(token);
        let sign = who.signer();
        for (first, second) in changes.iter().flat_map(|first| changes.iter().map(move |second| (first, second))) {
            let at = Spot::number(matrix.cells);
            let other =
                Spot { there: "there2".into(), doomed: "doomed2".into(), new: format!("m{}", at.n), ..at.clone() };
            for row in ["there2", "doomed2"] {
                matrix.by_key(put_row(&at, row)).expect(204);
            }
            let before = matrix.state();
            matrix.cells += 1;
            let response = matrix.send(&sign(change_set(&[(first.request)(&at), (second.request)(&other)])));
            let answers = parts(&response);
            let what = format!("{} and {} with {who:?}: {response:?}", first.name, second.name);
            let verdicts = [first, second].map(|operation| who.judge(operation, true, false));
            match verdicts.iter().position(Result::is_err) {
                None => {
                    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
                    assert_eq!(statuses, [first.success, second.success], "{what}");
                    for undo in [(first.undo)(&at), (second.undo)(&other)].into_iter().flatten() {
                        matrix.by_key(undo);
                    }
                }
                Some(index) => {
                    let (status, code) = verdicts[index].expect_err("it is denied");
                    assert_eq!(answers.len(), 1, "{what}");
                    assert_eq!(answers[0].outcome(), (status, code.to_owned()), "{what}");
                    assert!(answers[0].message().starts_with(&format!("{index}:")), "{what}");
                    assert_eq!(matrix.state(), before, "something was changed: {what}");
                }
            }
        }
    }
    matrix.at_least(3_000);
}

/// The secondary endpoint serves what is there and takes nothing, whoever asks.
#[test]
fn the_secondary_is_for_reading() {
    let mut matrix = Matrix::new();
    let before = matrix.state();
    for operation in OPERATIONS {
        for is_part in [false, true] {
            let at = Spot::number(matrix.cells);
            let request = if is_part { operation.as_part(&at) } else { (operation.request)(&at) };
            // Whether the secondary takes a query in a batch is not known of the service.
            if is_part && (!operation.is_change() || operation.name == "preflight") {
                continue;
            }
            let reads = matches!(request.method.as_str(), "GET" | "OPTIONS");
            let key = Credential::Key { scheme: Scheme::SharedKey, key: KEY, minutes: 0 };
            let answer = matrix.cell(&*key.signer(), request.at(SECONDARY));
            match reads {
                true => assert_eq!(answer.status, operation.success, "{}: {answer:?}", operation.name),
                false => {
                    let refused = (403, "InsufficientAccountPermissions".to_owned());
                    assert_eq!(answer.outcome(), refused, "{}", operation.name);
                }
            }
        }
    }
    assert_eq!(matrix.state(), before);
}

/// An account that is not there has no keys, no tables and no answers.
#[test]
fn an_account_that_is_not_there() {
    let mut matrix = Matrix::new();
    let before = matrix.state();
    for who in [
        Credential::None { version: "2019-02-02" },
        Credential::Key { scheme: Scheme::SharedKey, key: KEY, minutes: 0 },
        Credential::Token(Token::account("sco", ACCOUNT_LETTERS)),
        Credential::Token(Token::table("raud")),
    ] {
        for operation in OPERATIONS {
            let at = Spot::number(matrix.cells);
            let answer = matrix.cell(&*who.signer(), (operation.request)(&at).at("nobody"));
            assert_eq!(answer.outcome(), (404, "ResourceNotFound".to_owned()), "{} {who:?}", operation.name);
        }
    }
    assert_eq!(matrix.state(), before);
}
