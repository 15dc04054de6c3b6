use super::*;
use crate::{Durability, Options, RocksStore};
use partita_store::{Action, Batch, Error, Expect, Item, Row, Space, Store};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::{fs, thread};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const SPACE: Space = Space(3);

struct Test {
    store: RocksStore,
    runtime: Runtime,
    folder: TempDir,
}

impl Test {
    fn new() -> Test {
        Test::with(Options::default())
    }

    fn with(options: Options) -> Test {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { durability: Durability::None, ..options };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Test { store: RocksStore::open(folder.path(), options).unwrap(), runtime, folder }
    }

    fn commit(&self, row: u32, action: Action) {
        let items = vec![Item { row: row.to_be_bytes().to_vec(), expect: Expect::Any, action }];
        let batch = Batch { space: SPACE, partition: b"p".to_vec(), items, drop_space: None };
        self.runtime.block_on(self.store.commit(batch)).expect("it is committed");
    }

    fn put(&self, row: u32, number: u32) {
        self.commit(row, Action::Put(number.to_be_bytes().repeat(100).into()));
    }

    fn get(&self, row: u32) -> Result<Option<Row>> {
        self.runtime.block_on(self.store.get(SPACE, b"p", &row.to_be_bytes()))
    }

    fn number(&self, row: u32) -> Option<u32> {
        number_of(self.get(row).expect("it can be read"))
    }

    /// The number of a row if it is found without asking RocksDB.
    fn at_once(&self, row: u32) -> Option<u32> {
        let found = self.store.get_now(SPACE, b"p", &row.to_be_bytes())?;
        number_of(found.expect("it can be read"))
    }

    fn survey(&self) -> Survey {
        survey(&self.store.shared, u64::MAX / ROWS_PER_READ).expect("files can be read")
    }

    fn merge(&self) {
        self.store.shared.database.compact_range::<&[u8], &[u8]>(None, None);
    }

    fn files(&self) -> usize {
        self.store.shared.files.count()
    }
}

fn number_of(row: Option<Row>) -> Option<u32> {
    let value = row?.value;
    assert_eq!(value, value[..4].repeat(100), "a row is whole");
    Some(u32::from_be_bytes(value[..4].try_into().unwrap()))
}

fn flush(test: &Test) {
    test.store.shared.database.flush().unwrap();
}

#[test]
fn rows_are_found_where_they_stand_until_they_are_written_again() {
    let test = Test::new();
    (0..500).for_each(|row| test.put(row, row));
    assert_eq!(test.survey(), Survey::NothingToDo, "there is no file yet");
    flush(&test);
    // A second file with some of the rows, newer than the first, and some that are deleted.
    (0..500).step_by(5).for_each(|row| test.put(row, row + 1000));
    (0..500).step_by(7).for_each(|row| test.commit(row, Action::Delete));
    flush(&test);
    // And in no file at all.
    (0..500).step_by(11).for_each(|row| test.put(row, row + 2000));
    assert_eq!(test.survey(), Survey::Done);
    assert_eq!(test.survey(), Survey::NothingToDo);
    let number = |row: u32| match row {
        row if row % 11 == 0 => Some(row + 2000),
        row if row % 7 == 0 => None,
        row if row % 5 == 0 => Some(row + 1000),
        row => Some(row),
    };
    for row in 0..500 {
        assert_eq!(test.at_once(row), number(row).filter(|_| row % 11 > 0), "row {row}");
        assert_eq!(test.number(row), number(row), "row {row}");
    }
    for row in 0..500 {
        test.put(row, row + 3000);
        assert_eq!((test.at_once(row), test.number(row)), (None, Some(row + 3000)), "row {row}");
    }
}

#[test]
fn files_that_were_merged_into_others_are_let_go_of() {
    let test = Test::new();
    for part in 0..3 {
        (0..300).filter(|row| row % 3 == part).for_each(|row| test.put(row, row));
        flush(&test);
    }
    test.survey();
    assert_eq!(test.files(), 3);
    test.merge();
    assert!((0..300).all(|row| test.at_once(row) == Some(row)), "what they say is still true");
    // RocksDB may remove them a little later.
    while test.files() > 0 {
        let_go(&test.store.shared);
    }
    assert_eq!(test.store.shared.rows.figures().places, 0);
    assert!((0..300).all(|row| test.number(row) == Some(row)));
    test.survey();
    assert_eq!((test.files(), test.store.shared.rows.figures().places), (1, 300));
}

#[test]
fn without_room_no_more_files_are_gone_through() {
    let test = Test::with(Options { cache_bytes: 1 << 20, ..Options::default() });
    for part in 0..3 {
        (0..20_000).filter(|row| row % 3 == part).for_each(|row| test.put(row, row));
        flush(&test);
    }
    let places = || test.store.shared.rows.figures().places;
    while test.survey() == Survey::Done {}
    let (files, full) = (test.files(), places());
    assert!(files < 3 && full > 1000, "{files} files, {full} places");
    assert_eq!((test.survey(), test.files(), places()), (Survey::NothingToDo, files, full));
    assert!((0..20_000).step_by(100).all(|row| test.number(row) == Some(row)));
    test.merge();
    let_go(&test.store.shared);
    test.survey();
    assert!(places() > 1000, "there is room again");
}

#[test]
fn rows_of_a_dropped_space_are_gone() {
    let test = Test::new();
    (0..100).for_each(|row| test.put(row, row));
    flush(&test);
    test.survey();
    assert!((0..100).all(|row| test.at_once(row) == Some(row)));
    let batch = Batch { space: Space(1), partition: b"p".to_vec(), items: Vec::new(), drop_space: Some(SPACE) };
    test.runtime.block_on(test.store.commit(batch)).unwrap();
    // So often that some of them would be kept.
    for row in (0..100).cycle().take(10_000) {
        assert_eq!(test.at_once(row), None);
    }
    assert!((0..100).all(|row| matches!(test.get(row), Err(Error::SpaceDropped))));
}

#[test]
fn a_damaged_row_is_not_shown() {
    let test = Test::new();
    (0..100).for_each(|row| test.put(row, row));
    flush(&test);
    test.survey();
    let is_table = |path: &Path| path.extension().is_some_and(|extension| extension == "sst");
    let mut files = fs::read_dir(test.folder.path()).unwrap().map(|file| file.unwrap().path());
    let path = files.find(|path| is_table(path)).unwrap();
    let place = fs::read(&path).unwrap().windows(40).position(|bytes| bytes == 7_u32.to_be_bytes().repeat(10)).unwrap();
    fs::File::options().write(true).open(path).unwrap().write_at(&[1], place as u64 + 17).unwrap();
    assert_eq!(test.at_once(7), None);
    assert!(matches!(test.get(7), Err(Error::Corrupt(_))));
    assert_eq!(test.at_once(99), Some(99));
}

#[test]
fn reads_the_long_way_lead_to_a_survey() {
    let test = Test::new();
    (0..100).for_each(|row| test.put(row, row));
    flush(&test);
    // What is kept would not be read again.
    let key = |row: u32| partita_store::encode_key(SPACE, b"p", &row.to_be_bytes());
    let forget = |row| drop(test.store.shared.rows.writing(&[test.store.shared.rows.hash(&key(row))], &[]));
    while test.at_once(0).is_none() {
        assert_eq!(test.number(1), Some(1));
        forget(1);
    }
    assert_eq!(test.files(), 1);
}

/// One writes rows and has them written out and merged all the time, another surveys the files, and others find no row that is older
/// than what was acknowledged before they asked.
#[test]
fn nobody_finds_a_row_older_than_was_acknowledged() {
    const ROWS: u32 = 64;
    const FOUND_MIN: u64 = 20_000;
    let test = Test::new();
    (0..ROWS).for_each(|row| test.put(row, 0));
    let acknowledged: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    let (done, found) = (AtomicBool::new(false), AtomicU64::new(0));
    let (test, acknowledged, done, found) = (&test, &acknowledged, &done, &found);
    thread::scope(|scope| {
        let surveyor = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let_go(&test.store.shared);
                test.survey();
            }
        });
        let reader = || {
            let mut row = 0;
            while !done.load(Ordering::Relaxed) {
                row = (row + 1) % ROWS;
                let least = acknowledged[row as usize].load(Ordering::Acquire);
                if let Some(number) = test.at_once(row) {
                    assert!(u64::from(number) >= least, "row {row} is {number} after {least} was acknowledged");
                    found.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        for number in 1.. {
            let row = number * 7 % ROWS;
            test.put(row, number);
            acknowledged[row as usize].store(number.into(), Ordering::Release);
            match number % 64 {
                0 => test.merge(),
                16 | 32 | 48 => flush(test),
                _ => {}
            }
            let is_enough = number > 2000 && found.load(Ordering::Relaxed) > FOUND_MIN;
            if is_enough || readers.iter().any(|reader| reader.is_finished()) || surveyor.is_finished() {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
