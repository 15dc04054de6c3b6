//! A clock that jumps by hours and years, both ways, while the real binary is written to, and between its starts.

#![cfg(target_os = "linux")]

use partita_faults::disk::Disk;
use partita_faults::random::Random;
use partita_testing::batch::{change_set, parts};
use partita_testing::http::{Connection, Request, entity};
use partita_testing::process::Process;
use partita_testing::signing::{ACCOUNT, KEY, account_sas, moment, token};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

/// A request that is valid whatever the server's clock says, for its signature lives for two centuries.
fn authorized(request: Request) -> Request {
    let sas = account_sas("sco", "rwdlau").expiry(moment(200 * YEAR));
    request.query(&token(&sas, ACCOUNT, KEY))
}

fn put(row: &str) -> Request {
    authorized(Request::json("PUT", entity("Clocks", "p", row), r#"{"A":1}"#))
}

/// The time in an ETag, with all seven digits behind the second, so that it sorts as text.
fn time(etag: &str) -> String {
    let time = etag.strip_prefix("W/\"datetime'").and_then(|rest| rest.strip_suffix("Z'\"")).expect("an ETag");
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{seconds}.{fraction:0<7}")
}

/// Writes to a row of its own, again and again, and returns the times of its versions in order.
fn write(connection: &mut Connection, row: &str, count: usize) -> Vec<String> {
    let written = |_| {
        let response = connection.send(&put(row)).expect(204);
        time(response.header("ETag").expect("a write has an ETag"))
    };
    (0..count).map(written).collect()
}

#[test]
fn versions_grow_and_etags_are_unique_whatever_the_clock_does() {
    let disk = Disk::empty();
    let jumps = [0, HOUR, -HOUR, 3 * YEAR, -20 * YEAR, -YEAR, 40 * YEAR, 39 * YEAR, 0, -50 * YEAR];
    let mut last = String::new();
    let mut seen = BTreeSet::new();
    for (round, jump) in jumps.into_iter().enumerate() {
        // Every third jump happens while nobody runs.
        disk.control(&format!("clock {jump}"));
        let process = disk.start_untraced(&[]).unwrap_or_else(|(_, said)| panic!("{said}"));
        if round == 0 {
            let table = Request::json("POST", "/Tables", r#"{"TableName":"Clocks"}"#);
            process.connect().send(&authorized(table)).expect(201);
        }
        for jump in [jump, jump - 7 * HOUR, jump + YEAR, jump] {
            disk.control(&format!("clock {jump}"));
            let mut connection = process.connect();
            for time in write(&mut connection, "same", 5) {
                assert!(time > last, "{time} follows {last} at {jump}");
                last = time;
            }
            // A row that is made again has no old version either.
            let path = entity("Clocks", "p", "same");
            connection.send(&authorized(Request::delete(path).header("If-Match", "*"))).expect(204);
            let batch = change_set(&[put_part("same"), put_part("other")]);
            let parts = parts(&connection.send(&authorized(batch)));
            let times: BTreeSet<_> = parts.iter().map(|part| time(part.header("ETag").expect("an ETag"))).collect();
            assert_eq!(times.len(), 1, "a transaction has one version");
            let first = times.first().expect("there is one").clone();
            assert!(first > last, "{first} follows {last} at {jump}");
            last = first;
        }
        seen.extend(jumping_writers(&disk, &process, round));
        let most = seen.last().expect("there are versions").clone();
        last = last.max(most);
        process.kill();
    }
}

fn put_part(row: &str) -> Request {
    Request::json("PUT", entity("Clocks", "p", row), r#"{"A":2}"#)
}

/// Several write while the clock jumps; no two versions are the same, and those of each only grow.
fn jumping_writers(disk: &Disk, process: &Process, seed: usize) -> BTreeSet<String> {
    let done = AtomicBool::new(false);
    let all: Vec<String> = std::thread::scope(|scope| {
        let writer = |number: usize| {
            let address = process.address;
            move || {
                let times = write(&mut Connection::open(address), &format!("row{number}"), 50);
                assert!(times.is_sorted_by(|left, right| left < right), "versions of a row go back: {times:?}");
                times
            }
        };
        let writers: Vec<_> = (0..3).map(|number| scope.spawn(writer(number))).collect();
        let (done, mut random) = (&done, Random::new(seed as u64));
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let years = random.below(60) as i64 - 30;
                disk.control(&format!("clock {}", years * YEAR + random.below(86_400) as i64));
            }
        });
        let times = writers.into_iter().flat_map(|writer| writer.join().expect("a writer does not fail")).collect();
        done.store(true, Ordering::Relaxed);
        times
    });
    let unique: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(unique.len(), all.len(), "an ETag was given twice");
    unique
}
