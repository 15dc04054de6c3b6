//! The loops against an echo on loopback.

use super::*;
use crate::wire::{Answer, Step};
use std::io::{Read, Write};
use std::net::TcpListener;

/// Sends lines and wants them back.
struct Echo {
    left: usize,
    want: &'static [u8],
}

impl Wire for Echo {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        out.clear();
        out.extend_from_slice(b"ping\n");
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let consumed = memchr::memchr(b'\n', bytes)? + 1;
        let step = if &bytes[..consumed] == self.want { Step::Done(2) } else { Step::Failed };
        Some(Answer { consumed, step })
    }
}

fn links(count: usize, lines: usize, want: &'static [u8]) -> Vec<Link> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let link = |number: usize| {
        let stream = TcpStream::connect(address).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 64];
            while let Ok(read @ 1..) = peer.read(&mut bytes) {
                if peer.write_all(&bytes[..read]).is_err() {
                    return;
                }
            }
        });
        Link { stream, wire: Box::new(Echo { left: lines, want }), is_measured: number == 0 }
    };
    (0..count).map(link).collect()
}

const PLAN: Plan = Plan { warm_up: Duration::ZERO, time: None, rate: None, threads: 1 };

#[test]
fn a_closed_loop_asks_everything_once() {
    for threads in [1, 2] {
        let outcome = drive(links(2, 50, b"ping\n"), Plan { threads, ..PLAN }, || {}).unwrap();
        assert_eq!((outcome.operations, outcome.rows, outcome.disturbances), (50, 100, 50));
        assert_eq!(outcome.latencies.count(), 50);
    }
}

#[test]
fn an_open_loop_counts_from_when_a_request_was_due() {
    // All are due at once, so the last has waited for all the others.
    let outcome = drive(links(1, 50, b"ping\n"), Plan { rate: Some(1e9), ..PLAN }, || {}).unwrap();
    assert_eq!(outcome.operations, 50);
    assert!(outcome.latencies.max() as f64 > 0.5 * outcome.time.as_nanos() as f64, "{outcome:?}");
    assert!(outcome.latencies.percentile(50.0) > outcome.latencies.percentile(0.0));
}

#[test]
fn an_unexpected_answer_fails_the_run() {
    let error = drive(links(1, 5, b"pong\n"), PLAN, || {}).unwrap_err().to_string();
    assert!(error.contains("1 unexpected answers, the first was: ping"), "{error}");
}
