use super::*;
use proptest::prelude::*;
use rocksdb::{DB, WriteBatch, WriteOptions};

/// Writes records as RocksDB does, and says where each begins and ends.
fn write(records: &[(u64, u32, usize)]) -> (Vec<u8>, Vec<(usize, usize)>) {
    let mut log = Vec::new();
    let mut places = Vec::new();
    for (sequence, operations, length) in records {
        let mut record = [&sequence.to_le_bytes()[..], &operations.to_le_bytes()].concat();
        record.extend((0..*length).map(|at| (at * 7 + *sequence as usize) as u8));
        let mut rest = &record[..];
        let mut kind = (FIRST, WHOLE);
        let mut start = None;
        loop {
            let room = BLOCK_BYTES - log.len() % BLOCK_BYTES;
            if room < HEADER_BYTES {
                log.resize(log.len() + room, 0);
                continue;
            }
            start.get_or_insert(log.len());
            let (bytes, left) = rest.split_at(rest.len().min(room - HEADER_BYTES));
            let kind_now = if left.is_empty() { kind.1 } else { kind.0 };
            let checksum = checksum::masked(crc32c::crc32c(&[&[kind_now], bytes].concat()));
            log.extend(checksum.to_le_bytes());
            log.extend((bytes.len() as u16).to_le_bytes());
            log.push(kind_now);
            log.extend(bytes);
            rest = left;
            kind = (3, LAST);
            if rest.is_empty() {
                break;
            }
        }
        places.push((start.expect("a record has a fragment"), log.len()));
    }
    (log, places)
}

/// Records of one to three operations that follow one another.
fn records() -> impl Strategy<Value = Vec<(u64, u32, usize)>> {
    let length = prop_oneof![3 => 0..200_usize, 1 => 0..80_000_usize, 1 => 32_700..32_770_usize];
    (1..1_000_u64, prop::collection::vec((1..4_u32, length), 1..12)).prop_map(|(mut sequence, records)| {
        let record = |(operations, length)| {
            let record = (sequence, operations, length);
            sequence += u64::from(operations);
            record
        };
        records.into_iter().map(record).collect()
    })
}

proptest! {
    #[test]
    fn a_whole_log_is_whole(records in records()) {
        let (log, _) = write(&records);
        let contents = Contents::read(&log);
        let (last, operations, _) = records[records.len() - 1];
        prop_assert_eq!(contents.first, Some(records[0].0));
        prop_assert_eq!(contents.next, Some(last + u64::from(operations)));
        prop_assert!(!contents.goes_on);
    }

    /// Also if the last block has no room for another header, and the zeros for that are not there yet.
    #[test]
    fn zeros_behind_the_last_record_are_no_part_of_a_log(records in records(), zeros in 0..70_000_usize) {
        let (log, _) = write(&records);
        let longer = [&log[..], &vec![0; zeros]].concat();
        prop_assert_eq!(super::records(&longer).len(), log.len());
        prop_assert_eq!(Contents::read(&longer), Contents::read(&log));
    }

    /// The last record may stand in any state between not written and written, sector by sector.
    #[test]
    fn a_torn_end_is_no_damage(records in records(), sectors in prop::collection::vec(any::<bool>(), 200), cut in any::<prop::sample::Index>()) {
        let (mut log, places) = write(&records);
        let (start, end) = places[places.len() - 1];
        for at in start..end {
            if !sectors[(at / 512 - start / 512) % sectors.len()] {
                log[at] = 0;
            }
        }
        log.truncate(start + cut.index(end - start + 1));
        let contents = Contents::read(&log);
        prop_assert!(!contents.goes_on);
        let whole = if contents.next == Some(records[records.len() - 1].0 + u64::from(records[records.len() - 1].1)) { end } else { start };
        prop_assert!(contents.end as usize <= whole);
        prop_assert!(contents.next.is_none_or(|next| next >= records[records.len() - 1].0));
    }

    /// A flipped byte anywhere in a record that is not the last is noticed, and nothing behind the record before it is counted.
    #[test]
    fn damage_before_the_last_record_is_found(records in records(), record in any::<prop::sample::Index>(), byte in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        prop_assume!(records.len() > 2);
        let (mut log, places) = write(&records);
        // Behind the first record, so that it is known which sequence number is to come.
        let record = 1 + record.index(records.len() - 2);
        let (start, end) = places[record];
        log[start + byte.index(end - start)] ^= flip;
        let contents = Contents::read(&log);
        prop_assert!(contents.goes_on);
        prop_assert_eq!(contents.next, Some(records[record].0));
    }

    #[test]
    fn whatever_is_in_a_file_is_read(log in prop::collection::vec(any::<u8>(), 0..70_000)) {
        Contents::read(&log);
    }
}

fn logs(contents: Vec<(u64, Vec<u8>)>) -> Logs {
    let log = |(number, bytes): (u64, Vec<u8>)| Log {
        number,
        file: format!("{number:06}.log").into(),
        contents: Contents::read(&bytes),
    };
    Logs(contents.into_iter().map(log).collect())
}

#[test]
fn a_log_that_does_not_go_on_where_the_one_before_ended_tells_of_damage() {
    let (first, places) = write(&[(10, 2, 100), (12, 2, 100), (14, 2, 100)]);
    let (next, _) = write(&[(16, 0, 0), (16, 3, 100)]);
    let whole = vec![(4, first.clone()), (9, next.clone()), (11, Vec::new())];
    assert_eq!(logs(whole).damage(0), None);
    let emptied = logs(vec![(4, Vec::new()), (7, Vec::new()), (9, next.clone())]);
    assert_eq!(emptied.damage(0), Some(Damage { file: "000004.log".into(), offset: 0 }));
    let emptied = logs(vec![(4, first.clone()), (7, Vec::new()), (9, next.clone())]);
    assert_eq!(emptied.damage(0), Some(Damage { file: "000007.log".into(), offset: 0 }));

    let cut = first[..places[2].0].to_vec();
    let damage = logs(vec![(4, cut.clone()), (9, next.clone())]).damage(0);
    assert_eq!(damage, Some(Damage { file: "000004.log".into(), offset: places[2].0 as u64 }));
    assert_eq!(logs(vec![(4, cut), (9, next)]).damage(9), None, "a log that is no longer needed may be anything");

    // After a power cut the next log goes on behind the last whole record.
    let torn = first[..places[2].1 - 1].to_vec();
    let (goes_on, _) = write(&[(14, 0, 0), (14, 3, 100)]);
    assert_eq!(logs(vec![(4, torn), (9, goes_on)]).damage(0), None);
}

/// The reader agrees with what RocksDB writes.
#[test]
fn logs_of_rocksdb_are_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let database = DB::open_default(folder.path()).expect("a database");
    let mut settings = WriteOptions::default();
    settings.set_sync(false);
    for number in 0..50_usize {
        let mut batch = WriteBatch::default();
        batch.put([number as u8], vec![number as u8; number * 1500]);
        batch.put(b"version", [number as u8]);
        database.write_opt(batch, &settings).expect("a write");
    }
    let read = || Logs::read(folder.path(), 0).expect("the logs are read");
    let found = read();
    let [log] = &found.0[..] else { panic!("{found:?}") };
    assert_eq!((log.contents.first, log.contents.next, log.contents.goes_on), (Some(1), Some(101), false));
    assert_eq!(log.contents.end, fs::metadata(&log.file).expect("a file").len());
    drop(database);

    let mut bytes = fs::read(&log.file).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log.file, bytes).expect("a file");
    let damage = read().damage(0).expect("there is damage");
    assert!(damage.offset <= middle as u64 && damage.offset > 0, "{damage:?}");
}
