//! `$batch`: bodies of several requests, and their answers one by one.

use crate::http::{Request, Response};

/// A batch with one change set of these operations.
pub fn change_set(operations: &[Request]) -> Request {
    let mut body = String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
    for operation in operations {
        body.push_str("--changeset_c\r\n");
        push(&mut body, operation);
    }
    body.push_str("--changeset_c--\r\n--batch_b--\r\n");
    batch(body)
}

/// A batch with one query.
pub fn query(operation: &Request) -> Request {
    let mut body = String::from("--batch_b\r\n");
    push(&mut body, operation);
    body.push_str("--batch_b--\r\n");
    batch(body)
}

/// A batch with this body, whose boundary is `batch_b`.
pub fn batch(body: impl Into<Vec<u8>>) -> Request {
    Request::new("POST", "/$batch").header("Content-Type", "multipart/mixed; boundary=batch_b").body(body)
}

fn push(body: &mut String, operation: &Request) {
    body.push_str("Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n");
    body.push_str(&format!(
        "{} http://127.0.0.1/{}{} HTTP/1.1\r\n",
        operation.method, operation.account, operation.target
    ));
    for (name, value) in &operation.headers {
        body.push_str(&format!("{name}: {value}\r\n"));
    }
    body.push_str("\r\n");
    body.push_str(std::str::from_utf8(&operation.body).expect("bodies of parts are text"));
    body.push_str("\r\n");
}

/// The parts of a batch response.
#[track_caller]
pub fn parts(response: &Response) -> Vec<Response> {
    assert_eq!(response.status, 202, "{response:?}");
    let text = response.text();
    let mut parts = Vec::new();
    for piece in text.split("Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n").skip(1) {
        let (head, rest) = piece.split_once("\r\n\r\n").expect("a part has a head");
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let mut words = line.splitn(3, ' ').skip(1);
        let status = words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let reason = words.next().unwrap_or_default().to_owned();
        let headers = headers.lines().filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let body = rest.split_once("\r\n--").expect("a part ends").0.trim().as_bytes().to_vec();
        parts.push(Response { status, reason, headers, body });
    }
    parts
}

/// The one part of a batch response that has one.
#[track_caller]
pub fn part(response: &Response) -> Response {
    let parts = parts(response);
    assert_eq!(parts.len(), 1, "{response:?}");
    parts.into_iter().next().expect("there is one")
}
