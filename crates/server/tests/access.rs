//! Who may do what: cases that are no cell of the matrix (`tests/matrix`), where the rules are.

use partita_auth::{AccountKey, SasBuilder, Scheme, sign};
use partita_testing::batch::{change_set, part};
use partita_testing::http::{Request, entity};
use partita_testing::server::TestServer;
use partita_testing::signing::{ACCOUNT, KEY, OTHER_ACCOUNT, OTHER_KEY, account_sas, moment, table_sas, token};

const TABLE: &str = "People";
const SECONDARY: &str = "devstoreaccount1-secondary";

fn insert(n: usize) -> Request {
    Request::json("POST", "/People", format!(r#"{{"PartitionKey":"p","RowKey":"n{n}"}}"#))
}

fn policy(permissions: &str) -> String {
    let expiry = moment(3600).seven_digits();
    format!(
        "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>{expiry}</Expiry>\
         <Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
}

/// A signature of one request does not fit another.
#[test]
fn a_signature_of_another_request() {
    let server = TestServer::with_tables(&[TABLE, "Other"]);
    let signed = Request::get("/People()").signed_with(Scheme::SharedKey, KEY);
    server.send_as_is(&signed).expect(200);
    for (what, changed) in [
        ("verb", Request { method: "DELETE".into(), ..signed.clone() }),
        ("path", Request { target: "/Other()".into(), ..signed.clone() }),
        ("comp", Request { target: "/People?comp=acl".into(), ..signed.clone() }),
        ("content type", signed.clone().header("Content-Type", "application/json")),
        ("date", signed.clone().header("x-ms-date", moment(60).rfc1123())),
        ("account", signed.clone().at(OTHER_ACCOUNT)),
    ] {
        assert_eq!(server.send_as_is(&changed).outcome(), (403, "AuthenticationFailed".to_owned()), "{what}");
    }
}

fn read(server: &TestServer, sas: &SasBuilder) -> (u16, String) {
    server.send(Request::get("/People()").sas(sas)).outcome()
}

/// Whatever is changed in a token after it was signed, it opens nothing.
#[test]
fn spoilt_tokens() {
    let server = TestServer::with_tables(&[TABLE]);
    let sas = table_sas(TABLE, "r").start(moment(-60)).start_keys("b", Some("1")).end_keys("c", Some("2"));
    let good = token(&sas.addresses("127.0.0.1"), ACCOUNT, KEY);
    server.send(Request::get("/People()").query(&good)).expect(200);
    let fields: Vec<&str> = good.split('&').collect();
    for field in &fields {
        let (name, value) = field.split_once('=').expect("a field has a value");
        let without = fields.iter().filter(|other| *other != field).copied().collect::<Vec<_>>().join("&");
        let mut attempts = vec![
            good.replace(field, &format!("{name}=")),
            good.replace(field, &format!("{name}={value}0")),
            format!("{good}&{field}"),
            format!("{name}=0&{good}"),
        ];
        // Without `sig` it is a request without credentials.
        attempts.push(without);
        for attempt in attempts {
            let response = server.send_as_is(&Request::get("/People()").query(&attempt));
            assert!(matches!(response.status, 400 | 401 | 403), "{attempt}: {response:?}");
        }
    }
}

/// Keys in the body of a change do not carry it out of the range: the URL names the entity.
#[test]
fn keys_in_the_body_of_a_change() {
    let server = TestServer::with_tables(&[TABLE]);
    server.insert(TABLE, "b", "1");
    let sas = table_sas(TABLE, "raud").start_keys("b", None).end_keys("b", None);
    for method in ["PUT", "PATCH"] {
        let body = r#"{"PartitionKey":"z","RowKey":"9"}"#;
        server.send(Request::json(method, entity(TABLE, "b", "1"), body).sas(&sas));
    }
    assert_eq!(server.rows(TABLE), "b/1");
}

/// A part of a batch cannot bring rights of its own, nor change to another table.
#[test]
fn parts_have_no_rights_of_their_own() {
    let server = TestServer::with_tables(&[TABLE, "Other"]);
    let elsewhere = Request::json("POST", "/Other", r#"{"PartitionKey":"p","RowKey":"n"}"#);
    for operation in [elsewhere.clone(), elsewhere.signed(), insert(2).sas(&table_sas(TABLE, "raud"))] {
        let weak = if operation.target.starts_with("/Other") { "raud" } else { "r" };
        let response = server.send(change_set(&[operation]).sas(&table_sas(TABLE, weak)));
        assert_eq!(part(&response).status, 403, "{response:?}");
    }
    assert_eq!((server.rows(TABLE), server.rows("Other")), (String::new(), String::new()));
}

/// A table that is created again under its name does not take over who might use the one before.
#[test]
fn a_table_that_is_created_again() {
    let server = TestServer::with_tables(&[TABLE]);
    server.send(Request::new("PUT", "/People?comp=acl").body(policy("r"))).expect(204);
    let sas = SasBuilder::table(TABLE).policy("one");
    assert_eq!(read(&server, &sas).0, 200);
    server.send(Request::delete("/Tables('People')")).expect(204);
    assert_eq!(read(&server, &sas), (403, "AuthenticationFailed".to_owned()));
    server.create(TABLE);
    assert_eq!(read(&server, &sas), (403, "AuthenticationFailed".to_owned()));
    let policies = server.send(Request::get("/People?comp=acl")).expect(200);
    assert!(policies.text().ends_with("<SignedIdentifiers />"), "{policies:?}");
}

/// A policy takes effect, changes and ends with the request that sets it.
#[test]
fn a_policy_changes_at_once() {
    let server = TestServer::with_tables(&[TABLE]);
    let sas = SasBuilder::table(TABLE).policy("one");
    let set = |body: String| server.send(Request::new("PUT", "/People?comp=acl").body(body)).expect(204);
    for _ in 0..3 {
        set(policy("r"));
        assert_eq!(read(&server, &sas).0, 200);
        set(policy("a"));
        assert_eq!(read(&server, &sas), (403, "AuthorizationPermissionMismatch".to_owned()));
        set(String::new());
        assert_eq!(read(&server, &sas), (403, "AuthenticationFailed".to_owned()));
    }
    // What the policy says, the token may not say as well.
    set(policy("r"));
    assert_eq!(read(&server, &sas.clone().permissions("r")), (403, "AuthenticationFailed".to_owned()));
    assert_eq!(read(&server, &sas.clone().expiry(moment(60))), (403, "AuthenticationFailed".to_owned()));
}

/// Nothing of one account is seen or reached through another.
#[test]
fn accounts_are_apart() {
    let server = TestServer::with_tables(&[TABLE]);
    server.insert(TABLE, "p", "there");
    let properties = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
        <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/>\
        </CorsRule></Cors></StorageServiceProperties>";
    server.send(Request::new("PUT", "/?restype=service&comp=properties").body(properties)).expect(202);

    let other = |request: Request| server.send(request.at(OTHER_ACCOUNT));
    assert_eq!(other(Request::get("/Tables")).expect(200).text(), r#"{"value":[]}"#);
    assert_eq!(other(Request::get("/People()")).outcome(), (404, "TableNotFound".to_owned()));
    assert_eq!(other(Request::delete("/Tables('People')")).outcome(), (404, "ResourceNotFound".to_owned()));
    assert!(!other(Request::get("/?restype=service&comp=properties")).expect(200).text().contains("CorsRule>"));

    // The same name in both is two tables.
    other(Request::json("POST", "/Tables", r#"{"TableName":"People"}"#)).expect(201);
    assert_eq!(other(Request::get("/People()")).expect(200).rows(), "");
    assert_eq!(server.rows(TABLE), "p/there");

    // Credentials of one are none for the other, whatever the URL of a part says.
    for request in [
        Request::get("/People()").at(OTHER_ACCOUNT).sas_of(&table_sas(TABLE, "r"), ACCOUNT, KEY),
        Request::get("/People()").at(OTHER_ACCOUNT).sas_of(&account_sas("sco", "r"), ACCOUNT, KEY),
        Request::get("/People()").at(OTHER_ACCOUNT).signed_with(Scheme::SharedKeyLite, KEY),
        Request::get("/People()").sas_of(&table_sas(TABLE, "r"), OTHER_ACCOUNT, OTHER_KEY),
    ] {
        assert_eq!(server.send_as_is(&request).outcome(), (403, "AuthenticationFailed".to_owned()), "{request:?}");
    }
    let borrowed = Request::get("/People()").signed().at(OTHER_ACCOUNT);
    assert_eq!(server.send_as_is(&borrowed).outcome(), (403, "AuthenticationFailed".to_owned()));
    let foreign = change_set(&[insert(1)]).at(OTHER_ACCOUNT);
    server.send(foreign);
    assert_eq!(server.rows(TABLE), "p/there");
}

/// The account of host style is the one whose key is asked for.
#[test]
fn host_style() {
    let server = TestServer::with_tables(&[TABLE]);
    let date = moment(0).rfc1123();
    let send = |host: &str, key: &str| {
        // The path has no account in front, but what is signed does.
        let account = host.split('.').next().unwrap_or_default().trim_end_matches("-secondary");
        let key = AccountKey::parse(key).expect("a key of the tests");
        let signature = format!("SharedKeyLite {account}:{}", sign(&key, &format!("{date}\n/{account}/Tables")));
        let head = format!(
            "GET /Tables HTTP/1.1\r\nHost: {host}\r\nAccept: application/json;odata=nometadata\r\nx-ms-date: {date}\r\n\
             Authorization: {signature}\r\n\r\n"
        );
        server.connect().exchange(head.as_bytes())
    };
    let mine = send(&format!("{ACCOUNT}.table.localhost"), KEY).expect(200);
    assert_eq!(mine.text(), r#"{"value":[{"TableName":"People"}]}"#);
    let mine = send(&format!("{SECONDARY}.table.localhost"), KEY).expect(200);
    assert_eq!(mine.text(), r#"{"value":[{"TableName":"People"}]}"#);
    assert_eq!(send(&format!("{OTHER_ACCOUNT}.table.localhost"), OTHER_KEY).expect(200).text(), r#"{"value":[]}"#);
    send(&format!("{OTHER_ACCOUNT}.table.localhost"), KEY).expect(403);
}

/// A host that is an IP address is path style, even where an account is called like its first number.
#[test]
fn an_address_is_no_account() {
    let server = TestServer::with(|settings| {
        settings.accounts.insert("127".into(), vec![OTHER_KEY.into()]);
    });
    server.create(TABLE);
    let listed = server.send(Request::get("/Tables")).expect(200);
    assert_eq!(listed.text(), r#"{"value":[{"TableName":"People"}]}"#);
}
