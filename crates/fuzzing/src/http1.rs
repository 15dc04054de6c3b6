//! What comes on a connection of HTTP/1.1: a head, and a body that has a length or is in chunks.
//!
//! A head is found at the same place however it arrives, and says one thing of the end of its body: a second, plainer look at
//! its lines agrees. Chunks give the same bytes in whatever pieces they come, and again when they are written anew.

use crate::chunks::{Chunks, Malformed};
use crate::parse::{Framing, Start, may_end, parse};

/// Takes what a client sends.
pub fn http1(data: &[u8]) {
    // A connection skips blank lines.
    let blank = data.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let data = &data[blank..];
    let Ok(Some(start)) = parse(data) else { return };
    assert!(start.length <= data.len());
    check_pieces(data, start.length);
    check_lines(&data[..start.length], &start);
    check_target(&start);
    if start.framing == Framing::Chunks {
        check_chunks(&data[start.length..]);
    }
}

/// Byte by byte, as a connection looks at it.
fn check_pieces(data: &[u8], length: usize) {
    let mut parsed = 0;
    for end in 1..=length {
        if parsed == 0 || may_end(&data[..end], parsed) {
            let found = parse(&data[..end]).expect("it is the beginning of a good one");
            assert_eq!(found.map(|start| start.length), (end == length).then_some(length));
        } else {
            assert!(end < length, "the end was missed");
        }
        parsed = end;
    }
}

/// What the lines say of the end of the body.
fn check_lines(head: &[u8], start: &Start<'_>) {
    let lines = head.split(|&byte| byte == b'\n').skip(1).filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((line[..colon].to_ascii_lowercase(), line[colon + 1..].trim_ascii()))
    });
    let lines: Vec<_> = lines.collect();
    let values = |name: &[u8]| lines.iter().filter(|(given, _)| given == name).map(|(_, value)| *value).collect();
    let (lengths, encodings): (Vec<&[u8]>, Vec<&[u8]>) = (values(b"content-length"), values(b"transfer-encoding"));
    match start.framing {
        Framing::Chunks => {
            assert!(lengths.is_empty() && encodings.len() == 1 && encodings[0].eq_ignore_ascii_case(b"chunked"));
            assert!(!start.is_http10);
        }
        Framing::Length(length) => {
            assert!(encodings.is_empty() && (length == 0 || !lengths.is_empty()));
            for given in lengths {
                assert!(!given.is_empty() && given.iter().all(u8::is_ascii_digit));
                assert_eq!(given.iter().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0')), length);
            }
        }
    }
    assert_eq!(start.head.fields.len(), lines.len());
}

/// The target is what its parts make.
fn check_target(start: &Start<'_>) {
    let head = &start.head;
    assert!(head.path.starts_with('/') || head.path == "*");
    assert!(!head.path.contains(['?', '#']) && !head.query.contains('#'));
    assert!(head.authority.is_none_or(|authority| !authority.is_empty() && !authority.contains(['/', '?'])));
}

fn check_chunks(data: &[u8]) {
    let whole = decode(data, data.len().max(1));
    assert_eq!(whole, decode(data, 1));
    assert_eq!(whole, decode(data, 7));
    let Ok((body, taken, is_done)) = whole else { return };
    assert!(taken == data.len() || is_done);
    let mut written = Vec::new();
    for piece in body.chunks(3) {
        written.extend_from_slice(format!("{:X};a\r\n", piece.len()).as_bytes());
        written.extend_from_slice(piece);
        written.extend_from_slice(b"\r\n");
    }
    // Extensions are bounded in sum.
    if body.len() < 3 * 8_000 {
        written.extend_from_slice(b"0\r\nA: b\r\n\r\n");
        assert_eq!(decode(&written, 5), Ok((body, written.len(), true)));
    }
}

/// The body, how much of the input it took, and whether its end was there.
fn decode(data: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Malformed> {
    let (mut chunks, mut body, mut taken) = (Chunks::new(), Vec::new(), 0);
    for piece in data.chunks(piece) {
        taken += chunks.decode(piece, &mut body)?;
    }
    Ok((body, taken, chunks.is_done()))
}
