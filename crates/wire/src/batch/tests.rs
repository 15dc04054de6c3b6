//! Batches as clients write them, batches nobody should write, and the exact bytes of replies.

use super::*;
use proptest::prelude::*;

const CONTENT_TYPE: &str = "multipart/mixed; boundary=batch_1";

/// A batch around these parts of a change set, lines ended by CRLF. Each part starts behind the line of its boundary.
fn change_set_of(parts: &[&str]) -> String {
    let mut body = "--batch_1\nContent-Type: multipart/mixed; boundary=changeset_1\n\n".to_owned();
    for part in parts {
        body.push_str(&format!("--changeset_1\n{part}\n"));
    }
    body.push_str("--changeset_1--\n--batch_1--\n");
    body.replace('\n', "\r\n")
}

fn operations(body: &str) -> Vec<Part<'_>> {
    match parse(CONTENT_TYPE, body.as_bytes()) {
        Ok(Batch::ChangeSet(parts)) => parts,
        other => panic!("{other:?} for {body}"),
    }
}

const INSERT: &str = "Content-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
    POST http://127.0.0.1:10002/acct/T HTTP/1.1\nContent-Type: application/json\n\n{\"a\":1}";

#[test]
fn a_change_set() {
    let delete = "content-type: application/http\ncontent-transfer-encoding: binary\nContent-ID: 7\n\n\
        DELETE /T(PartitionKey='p',RowKey='a b') HTTP/1.1\nIf-Match: *\ncontent-id: 2\nDATE:x\n\n";
    let body = change_set_of(&[INSERT, delete]);
    let [insert, delete] = <[Part<'_>; 2]>::try_from(operations(&body)).unwrap();
    assert_eq!(insert.method, "POST");
    assert_eq!(insert.target, "http://127.0.0.1:10002/acct/T");
    assert_eq!(insert.headers, [("Content-Type", "application/json".into())]);
    assert_eq!(insert.body, b"{\"a\":1}");
    assert_eq!(insert.content_id, None);
    assert_eq!(delete.method, "DELETE");
    assert_eq!(delete.target, "/T(PartitionKey='p',RowKey='a b')");
    assert_eq!(delete.header("if-match"), Some("*"));
    assert_eq!(delete.header("Date"), Some("x"));
    assert_eq!(delete.body, b"");
    assert_eq!(delete.content_id.as_deref(), Some("2"));
}

/// Every form here is one operation with this body.
fn check(part: &str, expect: &str) {
    for body in [change_set_of(&[part]), change_set_of(&[part]).replace("\r\n", "\n")] {
        let parts = operations(&body);
        assert_eq!(parts.len(), 1, "{body}");
        let read = std::str::from_utf8(parts[0].body).unwrap().replace("\r\n", "\n");
        assert_eq!(read, expect, "{body}");
    }
}

#[test]
fn forms_of_a_part() {
    check(INSERT, "{\"a\":1}");
    check("\nPOST /T HTTP/1.1\n\n{}", "{}");
    check("\n\n\nPOST /T HTTP/1.1\n\n{}", "{}");
    check("A: b\n\nPOST /T HTTP/1.1\nContent-Length: 2\n\n{}", "{}");
    check("A: b\n\nPOST /T HTTP/1.1\nContent-Length: 2\n\n{}\n\n\n", "{}");
    check("A: b\n\nPOST /T HTTP/1.1\n\n{\n\n  \"a\": 1\n\n}\n\n", "{\n\n  \"a\": 1\n\n}");
    check("A: b\n\nPOST /T HTTP/1.1\nA: b\n  c\n\td\n\n{}", "{}");
    // A length in characters, too long, or no number: the delimiter decides.
    check("A: b\n\nPOST /T HTTP/1.1\nContent-Length: 8\n\n{\"\u{E9}\":1}", "{\"\u{E9}\":1}");
    check("A: b\n\nPOST /T HTTP/1.1\nContent-Length: 99999999999999999999\n\n{}", "{}");
    check("A: b\n\nPOST /T HTTP/1.1\nContent-Length: 500\n\n{}", "{}");
    check("A: b\n\nDELETE /T(PartitionKey='',RowKey='') HTTP/1.1", "");
    check("A: b\n\nDELETE /T(PartitionKey='',RowKey='') HTTP/1.1\nIf-Match: *", "");
    check("A: b\n\nDELETE /T(PartitionKey='',RowKey='') HTTP/1.1\nIf-Match: *\n", "");
    check("A: b\n\nDELETE /T(PartitionKey='',RowKey='') HTTP/1.1\nIf-Match: *\n\n\n", "");
    // Text that looks like a boundary but is no delimiter line.
    check("A: b\n\nPOST /T HTTP/1.1\n\n{\"a\":\"--changeset_1\"}", "{\"a\":\"--changeset_1\"}");
    check("A: b\n\nPOST /T HTTP/1.1\n\n{\n--changeset_12\n--batch_1x\n}", "{\n--changeset_12\n--batch_1x\n}");
}

#[test]
fn folded_headers_are_joined() {
    let body = change_set_of(&["A: b\n\nPOST /T HTTP/1.1\nX: b\n  c\n\td\n\n{}"]);
    assert_eq!(operations(&body)[0].header("x"), Some("b c d"));
    // A value that starts on the second line has no space before it.
    let body = change_set_of(&["A: b\n\nPOST /T HTTP/1.1\nX:\n b\n \u{A0}\n c\n\n{}"]);
    assert_eq!(operations(&body)[0].header("x"), Some("b c"));
}

/// Found while the fuzz targets were written: joining copied the value anew for each line, so that a body of 4 MiB could
/// keep a thread busy for minutes.
#[test]
fn a_header_of_a_million_lines_is_joined_at_once() {
    let lines = 1_000_000;
    let body = change_set_of(&[&format!("A: b\n\nPOST /T HTTP/1.1\nX: b{}\n\n{{}}", "\n a".repeat(lines))]);
    assert_eq!(operations(&body)[0].header("x").map(str::len), Some(1 + 2 * lines));
}

#[test]
fn forms_of_a_batch() {
    let plain = change_set_of(&[INSERT]);
    let expect = operations(&plain).remove(0);
    let inner = "boundary=changeset_1";
    for body in [
        format!("a preamble\r\nof two lines\r\n{plain}and an epilogue"),
        plain.replace("--batch_1\r\n", "--batch_1 \t\r\n").replace("--changeset_1\r\n", "--changeset_1  \r\n"),
        plain.replace("--batch_1--", "\r\n\r\n--batch_1--"),
        plain.trim_end().to_owned(),
        plain.replace(inner, "boundary=\"changeset_1\""),
        plain.replace(inner, "charset=utf-8; BOUNDARY = changeset_1 ; x=y"),
        plain.replace("Content-Type: multipart", "content-type:multipart"),
        plain.replace("multipart/mixed;", "Multipart/Mixed ;"),
        plain.replace(&format!("mixed; {inner}"), &format!("mixed;\r\n {inner}")),
    ] {
        assert_eq!(operations(&body), std::slice::from_ref(&expect), "{body}");
    }
    for content_type in [
        "multipart/mixed; boundary=\"batch_1\"",
        "MULTIPART/MIXED;boundary=batch_1",
        "multipart/mixed; type=\"a;b=\\\"c\"; boundary=batch_1",
        "multipart/mixed; boundary=batch_1; charset=utf-8",
        // Not the boundary of the body, whose own first line says which one it is.
        "multipart/mixed; boundary=batch_00000000-0000-0000-0000-000000000000",
    ] {
        assert!(parse(content_type, plain.as_bytes()).is_ok(), "{content_type}");
    }
}

#[test]
fn empty_change_sets() {
    for body in [
        change_set_of(&[]),
        change_set_of(&[""]),
        change_set_of(&["\n\n"]),
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n\r\n--batch_1--".to_owned(),
    ] {
        assert_eq!(operations(&body), [], "{body}");
    }
}

#[test]
fn queries() {
    for body in [
        "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET /T()?$filter=a%20eq%201 HTTP/1.1\r\nAccept: application/json\r\n\r\n--batch_1--",
        "--batch_1\nContent-Type: application/http\n\nGET /T()?$filter=a%20eq%201 HTTP/1.1\nAccept: application/json\n\n\n--batch_1--\n",
        "--batch_1\n\nGET /T()?$filter=a%20eq%201 HTTP/1.1\nAccept: application/json\n--batch_1--\n",
    ] {
        let Ok(Batch::Query(part)) = parse(CONTENT_TYPE, body.as_bytes()) else { panic!("{body}") };
        assert_eq!((part.method, part.target), ("GET", "/T()?$filter=a%20eq%201"));
        assert_eq!((part.header("accept"), part.body), (Some("application/json"), &b""[..]));
    }
}

#[test]
fn too_many_operations_can_be_told() {
    let body = change_set_of(&vec![INSERT; 100]);
    assert_eq!(operations(&body).len(), 100);
    let body = change_set_of(&vec![INSERT; 5000]);
    assert_eq!(operations(&body).len(), 101);
}

#[test]
fn nonsense_is_refused() {
    let query = "Content-Type: application/http\n\nGET /T HTTP/1.1\n\n";
    let plain = change_set_of(&[INSERT]);
    let start = plain.strip_suffix("--batch_1--\r\n").unwrap();
    for (content_type, body, word) in [
        ("application/json", plain.clone(), "multipart/mixed"),
        ("", plain.clone(), "multipart/mixed"),
        ("multipart/mixed", plain.clone(), "no boundary"),
        ("multipart/mixed; charset=utf-8", plain.clone(), "no boundary"),
        ("multipart/mixed; boundary=", plain.clone(), "boundary"),
        ("multipart/mixed; boundary=\"batch_1", plain.clone(), "quote"),
        ("multipart/mixed; boundary=other", plain.replace("--batch_1", "batch_1"), "--other--"),
        (CONTENT_TYPE, String::new(), "--batch_1--"),
        (CONTENT_TYPE, start.to_owned(), "--batch_1--"),
        (CONTENT_TYPE, plain.replace("--changeset_1--", ""), "--changeset_1--"),
        (CONTENT_TYPE, plain.replace("; boundary=changeset_1", ""), "no boundary"),
        (CONTENT_TYPE, "--batch_1--".into(), "neither"),
        (CONTENT_TYPE, format!("{start}{plain}"), "not several"),
        (CONTENT_TYPE, format!("{start}--batch_1\r\n{query}\r\n--batch_1--"), "not several"),
        (CONTENT_TYPE, format!("--batch_1\n{query}\n--batch_1\n{query}\n--batch_1--"), "not several"),
        (CONTENT_TYPE, format!("--batch_1\n{INSERT}\n--batch_1--"), "belongs in a change set"),
        (CONTENT_TYPE, change_set_of(&[query]), "query cannot stand"),
        (CONTENT_TYPE, change_set_of(&["Content-Type: multipart/mixed; boundary=x\n\n--x--"]), "inside a change set"),
        (CONTENT_TYPE, change_set_of(&["Content-Type: application/http"]), "request line"),
        (CONTENT_TYPE, change_set_of(&["A: b\n\nPOST /T"]), "request line"),
        (CONTENT_TYPE, change_set_of(&["A: b\n\nPOST HTTP/1.1"]), "request line"),
        (CONTENT_TYPE, change_set_of(&["A: b\n\n{\"a\":1}"]), "request line"),
        (CONTENT_TYPE, change_set_of(&["A: b\n\nPOST /T HTTP/1.1\nno colon\n\n{}"]), "no colon"),
        (CONTENT_TYPE, change_set_of(&[" A: b\n\nPOST /T HTTP/1.1\n\n{}"]), "starts with a space"),
        (CONTENT_TYPE, change_set_of(&["A: b\n\nPOST /T HTTP/1.1\nA: b\u{1}\n\n{}"]), "control character"),
        (CONTENT_TYPE, change_set_of(&["A: b\n\nPOST /T\rHost:x HTTP/1.1\n\n{}"]), "control character"),
        (CONTENT_TYPE, change_set_of(&[&format!("A: b\n\nPOST /T HTTP/1.1\n{}\n", "A: b\n".repeat(500))]), "too many"),
    ] {
        match parse(content_type, body.as_bytes()) {
            Err(ServiceError::BatchMalformed { detail }) => {
                assert!(detail.starts_with('\n') && detail.contains(word), "{detail}: {body}");
            }
            other => panic!("{other:?} for {content_type} {body}"),
        }
    }
    assert!(
        parse(CONTENT_TYPE, &change_set_of(&["A: b\n\nPOST /X HTTP/1.1\n\n"]).replace('X', "\u{E9}").into_bytes())
            .is_ok()
    );
    let mut latin: Vec<u8> = change_set_of(&["A: b\n\nPOST /X HTTP/1.1\n\n"]).into_bytes();
    latin.iter_mut().filter(|byte| **byte == b'X').for_each(|byte| *byte = 0xE9);
    assert!(parse(CONTENT_TYPE, &latin).is_err());
}

fn reply(status: u16, headers: &str, body: &str) -> PartReply<'static> {
    let (headers, body) = (headers.replace('\n', "\r\n").into(), body.into());
    PartReply { status, content_id: None, headers, body }
}

fn check_reply(parts: &[PartReply<'_>], query: bool, expect: &str) {
    let bytes = write(parts, query, "batchresponse_b", "changesetresponse_c");
    assert_eq!(String::from_utf8(bytes).unwrap(), expect.replace('\n', "\r\n"));
}

#[test]
fn replies() {
    let inserted = reply(204, "DataServiceVersion: 3.0;\nETag: W/\"x\"\n", "");
    let created = PartReply { content_id: Some("7"), ..reply(201, "ETag: W/\"y\"\n", "{\"a\":1}") };
    check_reply(
        &[inserted, created],
        false,
        "--batchresponse_b\nContent-Type: multipart/mixed; boundary=changesetresponse_c\n\n\
         --changesetresponse_c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
         HTTP/1.1 204 No Content\nDataServiceVersion: 3.0;\nETag: W/\"x\"\n\n\n\
         --changesetresponse_c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
         HTTP/1.1 201 Created\nContent-ID: 7\nETag: W/\"y\"\n\n{\"a\":1}\n\
         --changesetresponse_c--\n--batchresponse_b--\n",
    );
    check_reply(
        &[reply(409, "Content-Type: application/json\n", "{}")],
        false,
        "--batchresponse_b\nContent-Type: multipart/mixed; boundary=changesetresponse_c\n\n\
         --changesetresponse_c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
         HTTP/1.1 409 Conflict\nContent-Type: application/json\n\n{}\n\
         --changesetresponse_c--\n--batchresponse_b--\n",
    );
    check_reply(
        &[],
        false,
        "--batchresponse_b\nContent-Type: multipart/mixed; boundary=changesetresponse_c\n\n\
         --changesetresponse_c--\n--batchresponse_b--\n",
    );
    check_reply(
        &[reply(200, "DataServiceVersion: 3.0;\n", "{\"a\":1}")],
        true,
        "--batchresponse_b\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
         HTTP/1.1 200 OK\nDataServiceVersion: 3.0;\n\n{\"a\":1}\n--batchresponse_b--\n",
    );
    assert_eq!(response_content_type("batchresponse_b"), "multipart/mixed; boundary=batchresponse_b");
}

proptest! {
    #[test]
    fn what_a_client_writes_is_read(
        parts in proptest::collection::vec(("(POST|PUT|MERGE|DELETE)", "/[!-~]{1,40}", "[a-z]{0,8}", any::<String>()), 0..8),
        boundary in "[A-Za-z0-9'()+_,./:=?-]{1,70}",
        line_end in prop_oneof![Just("\n"), Just("\r\n")],
        with_length in any::<bool>(),
    ) {
        let mut body = format!("--out{line_end}Content-Type: multipart/mixed; boundary=\"{boundary}\"{line_end}{line_end}");
        let json: Vec<String> = parts.iter().map(|part| serde_json::json!({ "a": part.3 }).to_string()).collect();
        for ((method, target, header, _), json) in parts.iter().zip(&json) {
            let length = if with_length { format!("Content-Length: {}{line_end}", json.len()) } else { String::new() };
            body.push_str(&format!(
                "--{boundary}{line_end}Content-Type: application/http{line_end}{line_end}\
                 {method} {target} HTTP/1.1{line_end}X-A: {header}{line_end}{length}{line_end}{json}{line_end}"
            ));
        }
        body.push_str(&format!("--{boundary}--{line_end}--out--{line_end}"));
        prop_assume!(boundary != "out" && boundary != "out--");
        let Batch::ChangeSet(read) = parse("multipart/mixed; boundary=out", body.as_bytes()).unwrap() else {
            panic!("not a change set");
        };
        prop_assert_eq!(read.len(), parts.len());
        for ((part, (method, target, header, _)), json) in read.iter().zip(&parts).zip(&json) {
            prop_assert_eq!(
                (part.method, part.target, part.header("x-a")),
                (method.as_str(), target.as_str(), Some(header.as_str()))
            );
            prop_assert_eq!(part.body, json.as_bytes());
        }
    }

    #[test]
    fn damage_never_panics(
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        inserted in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'-')], 0..6),
    ) {
        let mut body = change_set_of(&[INSERT, INSERT]).into_bytes();
        let at = at.index(body.len());
        body.splice(at..at, inserted);
        let _ = parse(CONTENT_TYPE, &body);
        body.truncate(cut.index(body.len()));
        let _ = parse(CONTENT_TYPE, &body);
    }

    #[test]
    fn any_bytes_are_answered(content_type in any::<String>(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&content_type, &body);
        let _ = parse(&format!("multipart/mixed;{content_type}"), &body);
        let _ = parse("multipart/mixed;boundary=-", &body);
    }

    #[test]
    fn a_reply_has_the_shape_of_a_batch(bodies in proptest::collection::vec("\\{[ -~]{0,30}\\}", 0..5)) {
        let parts: Vec<_> = bodies.iter().map(|body| reply(200, "A: b\n", body)).collect();
        let bytes = write(&parts, false, "batchresponse_b", "changesetresponse_c");
        // The reader wants requests; give it those.
        let text = String::from_utf8(bytes).unwrap().replace("HTTP/1.1 200 OK", "POST /T HTTP/1.1");
        let Batch::ChangeSet(read) = parse("multipart/mixed; boundary=batchresponse_b", text.as_bytes()).unwrap() else {
            panic!("not a change set");
        };
        let read: Vec<_> = read.iter().map(|part| std::str::from_utf8(part.body).unwrap()).collect();
        prop_assert_eq!(read, bodies);
    }
}
