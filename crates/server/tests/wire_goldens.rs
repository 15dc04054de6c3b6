//! Requests and the exact responses to them, as text that can be read beside the protocol's documentation.
//!
//! A file of `goldens/` is a conversation with one fresh server:
//!
//! ```text
//! # A comment.
//! > GET /devstoreaccount1/Tables          the request; it is signed unless it says `Authorization: none`
//! > Accept: application/json
//! < 200 OK                                the response: headers in the order they came in, then the body
//! ```
//!
//! What differs from run to run is written as a placeholder: `<request-id>`, `<date>` for a date in a header, `<now>` for
//! the moment in an error, `<t1>`, `<t2>` ... for the timestamps of entities in the order they appeared (the same in a
//! body, in an ETag, and in the `If-Match` of a later request), `<id1>` ... for boundaries, `<table-token>`. Their form is
//! checked before they are replaced. `␍` is a carriage return before a line end, `<BOM>` a byte order mark.
//!
//! `UPDATE_GOLDENFILES=1 cargo test --release -p partita-server` writes the files anew; read the diff.

use partita_auth::{SasBuilder, Scheme};
use partita_model::Ticks;
use partita_testing::http::{Request, Response};
use partita_testing::server::TestServer;
use partita_testing::signing::{ACCOUNT, KEY, WRONG_KEY, moment, token};
use std::path::Path;

#[test]
fn tables() {
    golden("tables");
}

#[test]
fn entities() {
    golden("entities");
}

#[test]
fn values() {
    golden("values");
}

#[test]
fn changes() {
    golden("changes");
}

#[test]
fn queries() {
    golden("queries");
}

#[test]
fn batches() {
    golden("batches");
}

#[test]
fn access_policies() {
    golden("access_policies");
}

#[test]
fn service() {
    golden("service");
}

#[test]
fn cors() {
    golden("cors");
}

#[test]
fn errors() {
    golden("errors");
}

#[test]
fn media_types() {
    golden("media_types");
}

/// Runs the conversation of a file and compares.
fn golden(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(format!("{name}.txt"));
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let actual = converse(&expected);
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&path, actual).expect("goldens can be written");
        return;
    }
    for (number, (expected, actual)) in expected.lines().zip(actual.lines()).enumerate() {
        assert_eq!(actual, expected, "line {} of {}", number + 1, path.display());
    }
    assert_eq!(actual.lines().count(), expected.lines().count(), "lines of {}", path.display());
}

fn converse(script: &str) -> String {
    let server = TestServer::start();
    let mut names = Names::default();
    let mut out = String::new();
    let mut request: Vec<&str> = Vec::new();
    for line in script.lines().filter(|line| !line.starts_with('<')).chain([""]) {
        if let Some(text) = line.strip_prefix('>') {
            request.push(text.strip_prefix(' ').unwrap_or(text));
        } else if !request.is_empty() {
            let response = server.send_as_is(&names.request(&request));
            out.push_str(&names.response(&response));
            request.clear();
        }
        out.push_str(line);
        out.push('\n');
    }
    out.trim_end().to_owned() + "\n"
}

/// What the placeholders stand for.
#[derive(Default)]
struct Names {
    timestamps: Vec<String>,
    ids: Vec<String>,
    table_token: String,
}

impl Names {
    /// Reads a request of a file.
    fn request(&self, lines: &[&str]) -> Request {
        let blank = lines.iter().position(|line| line.is_empty()).unwrap_or(lines.len());
        let (method, target) = lines[0].split_once(' ').expect("a verb and a target");
        let target = self.fill(target);
        let (account, rest) = target[1..].split_at(target[1..].find('/').expect("an account"));
        let mut request = Request::new(method, rest).at(account);
        request.headers.clear();
        for line in &lines[1..blank] {
            let (name, value) = line.split_once(": ").expect("a header");
            request = request.header(name, self.fill(value));
        }
        let is_batch = request.get_header("Content-Type").is_some_and(|sent| sent.starts_with("multipart"));
        let body = lines.get(blank + 1..).unwrap_or_default().join(if is_batch { "\r\n" } else { "\n" });
        request = request.body(self.fill(&body));
        match request.get_header("Authorization") {
            Some("none") => request.without("Authorization"),
            Some("wrong key") => request.without("Authorization").signed_with(Scheme::SharedKey, WRONG_KEY),
            _ => request.signed(),
        }
    }

    /// Puts in what placeholders stand for.
    fn fill(&self, text: &str) -> String {
        let mut text = text.replace("<table-token>", &self.table_token);
        for (index, timestamp) in self.timestamps.iter().enumerate() {
            text = text.replace(&format!("<t{}>", index + 1), &timestamp.replace(':', "%3A"));
        }
        match text.split_once("<sas ").and_then(|(before, rest)| Some((before, rest.split_once('>')?))) {
            Some((before, (fields, after))) => format!("{before}{}{after}", sas(fields)),
            None => text,
        }
    }

    /// Writes a response.
    fn response(&mut self, response: &Response) -> String {
        let mut out = format!("< {} {}\n", response.status, response.reason);
        let request_id = response.header("x-ms-request-id").unwrap_or("there is none").to_owned();
        for (name, value) in &response.headers {
            let value = match name.to_ascii_lowercase().as_str() {
                "x-ms-request-id" => "<request-id>".to_owned(),
                "x-ms-continuation-nexttablename" => {
                    assert!(value.starts_with("1!"), "{value}");
                    self.table_token = value.replace('!', "%21");
                    "<table-token>".to_owned()
                }
                "content-length" => {
                    // Fractions of timestamps differ in length.
                    assert_eq!(value, &response.body.len().to_string());
                    "<length>".to_owned()
                }
                _ => self.replace(value),
            };
            out.push_str(&format!("< {name}: {value}\n"));
        }
        if !response.body.is_empty() {
            let body = std::str::from_utf8(&response.body).expect("bodies are text");
            let body = self.replace(body).replace(&request_id, "<request-id>").replace('\u{feff}', "<BOM>");
            out.push_str("<\n");
            for line in body.replace('\r', "␍").split('\n') {
                out.push_str(if line.is_empty() { "<" } else { "< " });
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }

    /// Puts placeholders in the place of dates and boundaries.
    fn replace(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (length, with) = self.recognise(&out, rest).unwrap_or((first.len_utf8(), first.to_string()));
            out.push_str(&with);
            rest = &rest[length..];
        }
        out
    }

    /// How long the varying text at the start of `rest` is, and its placeholder.
    fn recognise(&mut self, before: &str, rest: &str) -> Option<(usize, String)> {
        const RFC1123_BYTES: usize = "Thu, 01 Jan 2026 00:00:00 GMT".len();
        const GUID_BYTES: usize = "00000000-0000-0000-0000-000000000000".len();
        if before.ends_with("response_") {
            let id = rest.get(..GUID_BYTES)?;
            return Some((GUID_BYTES, format!("<id{}>", place(&mut self.ids, id))));
        }
        if let Some(date) = rest.get(..RFC1123_BYTES).filter(|date| Ticks::parse_rfc1123(date).is_some_and(is_now)) {
            return Some((date.len(), "<date>".to_owned()));
        }
        if !rest.starts_with("20") {
            return None;
        }
        let text = &rest[..=rest.find('Z')?];
        let plain = text.replace("%3A", ":");
        let moment = Ticks::parse_iso(&plain).filter(|&moment| is_now(moment))?;
        if before.ends_with("\\nTime:") || before.ends_with("\nTime:") {
            assert_eq!(text, moment.seven_digits(), "an error has seven digits");
            return Some((text.len(), "<now>".to_owned()));
        }
        assert_eq!(before.ends_with("datetime'"), text != plain, "only tags are encoded: {before}{text}");
        assert!(!plain.ends_with("0Z") || !plain.contains('.'), "a fraction has no zeros at its end: {plain}");
        Some((text.len(), format!("<t{}>", place(&mut self.timestamps, &plain))))
    }
}

/// The place of a text in the order of appearance, from 1 on.
fn place(seen: &mut Vec<String>, text: &str) -> usize {
    let known = seen.iter().position(|other| other == text);
    known.unwrap_or_else(|| {
        seen.push(text.to_owned());
        seen.len() - 1
    }) + 1
}

/// Whether a moment is of this run and not of the file.
fn is_now(moment_found: Ticks) -> bool {
    (moment(-3600)..moment(3600)).contains(&moment_found)
}

/// A signature of fields such as `tn=People sp=r`.
fn sas(fields: &str) -> String {
    let fields: Vec<_> = fields.split(' ').filter_map(|field| field.split_once('=')).collect();
    let get = |name| fields.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    let mut builder = match get("tn") {
        Some(table) => SasBuilder::table(table),
        None => SasBuilder::account(get("ss").unwrap_or("t"), get("srt").unwrap_or("sco")),
    };
    builder = builder.permissions(get("sp").unwrap_or("r"));
    builder = builder.expiry(if get("se") == Some("past") { moment(-60) } else { moment(3600) });
    if let Some(partition_key) = get("spk") {
        builder = builder.start_keys(partition_key, None);
    }
    token(&builder, ACCOUNT, KEY)
}
