//! Requests one after the other on a connection that hands them over in any pieces.

use super::super::heads::Heads;
use super::*;
use crate::body::{self, BodyMemory};
use crate::head::Head;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::{JoinHandle, yield_now};

/// Answers with what it was asked.
struct Echo;

impl Handler for Echo {
    async fn answer<'a>(&'a self, head: &'a Head<'a>, body: &'a mut Body<'_>, _: IpAddr) -> Answer {
        let (memory, deadline) = (BodyMemory::new(), Instant::now() + Duration::from_secs(60));
        match body::read(&memory, body, deadline).await {
            Ok(body) => {
                let body = String::from_utf8_lossy(&body.bytes);
                Answer::text(200, "text/plain", format!("{} {} {body}", head.method, head.path))
            }
            Err(error) => Answer::text(error.status(), "text/plain", error.code().to_owned()),
        }
    }
}

/// The client's end of a connection, what keeps the server from stopping, and what becomes of the connection.
fn connect() -> (DuplexStream, watch::Sender<bool>, JoinHandle<io::Result<bool>>) {
    let (client, server) = duplex(1 << 20);
    let (stop, told) = watch::channel(false);
    let served = tokio::spawn(async move {
        let memory = HeadMemory::new(Heads::new());
        let connection = Connection::new(server, memory, Duration::from_secs(60), Stop::new(&told));
        let end = connection.serve(&Echo, IpAddr::from([127, 0, 0, 1])).await?;
        Ok(matches!(end, End::Http2(..)))
    });
    (client, stop, served)
}

/// Statuses and bodies of the answers to what is sent in these pieces, each of which is taken before the next is sent.
async fn answers(pieces: impl Iterator<Item = &[u8]>) -> Vec<(String, String)> {
    let (mut client, stop, served) = connect();
    for piece in pieces {
        // Behind the last request nobody reads.
        let _ = client.write_all(piece).await;
        for _ in 0..5 {
            yield_now().await;
        }
    }
    let mut text = String::new();
    // What the client has sent is answered first.
    let _ = client.shutdown().await;
    client.read_to_string(&mut text).await.expect("the server closes");
    served.await.expect("it does not panic").expect("it ends well");
    drop(stop);
    let mut rest = text.as_str();
    let mut answers = Vec::new();
    while let Some((head, after)) = rest.split_once("\r\n\r\n") {
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse().unwrap());
        let (body, after) = after.split_at(length);
        answers.push((head[9..12].to_owned(), body.to_owned()));
        rest = after;
    }
    assert_eq!(rest, "");
    answers
}

const REQUESTS: &[u8] = b"\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n\
    PUT /b?c HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\
    POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n\r\n\
    PUT /e HTTP/1.1\nContent-Length: 0\n\nDELETE /f HTTP/1.1\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\n\r\n";

#[tokio::test]
async fn pieces_of_any_size() {
    let wanted = ["GET /a ", "PUT /b hello", "POST /d abcde", "PUT /e ", "DELETE /f "];
    let wanted: Vec<_> = wanted.iter().map(|body| ("200".to_owned(), body.to_string())).collect();
    for size in (1..12).chain([REQUESTS.len()]) {
        assert_eq!(answers(REQUESTS.chunks(size)).await, wanted, "in pieces of {size}");
    }
    for cut in 0..REQUESTS.len() {
        let (one, two) = REQUESTS.split_at(cut);
        assert_eq!(answers([one, two].into_iter()).await, wanted, "cut at {cut}");
        let one_by_one = std::iter::once(one).chain(two.chunks(1));
        assert_eq!(answers(one_by_one).await, wanted, "cut at {cut}, then one by one");
    }
}

#[tokio::test]
async fn what_is_refused_is_the_last() {
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(HEADER_BYTES_MAX));
    let body = "PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n";
    for (request, status) in
        [("GET\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "400"), (&*long, "431"), (body, "400")]
    {
        let bytes = [b"GET /a HTTP/1.1\r\n\r\n", request.as_bytes(), b"GET /never HTTP/1.1\r\n\r\n"].concat();
        let found: Vec<_> = answers(bytes.chunks(10_000)).await.into_iter().map(|(status, _)| status).collect();
        assert_eq!(found, ["200", status], "{:.40}", request);
    }
}

/// A long head or body leaves the room that others have.
#[tokio::test]
async fn long_heads_and_bodies() {
    let (long, body) = ("x".repeat(100_000), "y".repeat(300_000));
    let length = body.len();
    let text = format!(
        "GET /{long} HTTP/1.1\r\n\r\nPUT /b HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}GET /c HTTP/1.1\r\n\r\n"
    );
    let wanted: Vec<_> = [format!("GET /{long} "), format!("PUT /b {body}"), "GET /c ".to_owned()]
        .map(|body| ("200".to_owned(), body))
        .into();
    for size in [7_000, 50_000, text.len()] {
        assert!(answers(text.as_bytes().chunks(size)).await == wanted, "in pieces of {size}");
    }
}

#[tokio::test]
async fn it_stops_between_requests() {
    let (mut client, stop, served) = connect();
    client.write_all(b"GET /a HTTP/1.1\r\n\r\n").await.expect("there is room");
    let mut byte = [0];
    client.read_exact(&mut byte).await.expect("an answer");
    stop.send(true).expect("the connection listens");
    client.read_to_end(&mut Vec::new()).await.expect("the server closes");
    assert!(!served.await.expect("it does not panic").expect("it ends well"));
}

#[tokio::test]
async fn the_other_version() {
    for size in [1, 3, HTTP2_PREFACE.len()] {
        let (mut client, _stop, served) = connect();
        for piece in HTTP2_PREFACE.chunks(size) {
            client.write_all(piece).await.expect("there is room");
            yield_now().await;
        }
        assert!(served.await.expect("it does not panic").expect("it ends well"));
    }
}
