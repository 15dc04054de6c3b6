use super::*;
use std::sync::RwLock;
use std::sync::atomic::AtomicBool;

const SPACE: Space = Space(7);

fn key(space: Space, row: u64) -> Vec<u8> {
    partita_store::encode_key(space, b"p", &row.to_be_bytes())
}

/// Keeps a row as a reader does that found it in the database.
fn keep(cache: &RowCache, key: &[u8], version: Version) {
    let hash = cache.hash(key);
    let ticket = cache.ticket(hash).expect("nobody writes");
    cache.keep(hash, ticket, key, version, &version.to_be_bytes());
}

fn get(cache: &RowCache, key: &[u8]) -> Option<Version> {
    let Found::Row(row) = cache.find(cache.hash(key), key) else { return None };
    assert_eq!(row.value, row.version.to_be_bytes().as_slice());
    Some(row.version)
}

#[test]
fn a_row_is_found_until_it_is_written() {
    let cache = RowCache::new(1 << 20, 1 << 20);
    let (one, two) = (key(SPACE, 1), key(SPACE, 2));
    keep(&cache, &one, 11);
    keep(&cache, &two, 12);
    assert_eq!((get(&cache, &one), get(&cache, &two)), (Some(11), Some(12)));
    assert_eq!(cache.version(cache.hash(&one), &one), Some(11));
    drop(cache.writing(&[cache.hash(&one)], &[]));
    assert_eq!((get(&cache, &one), get(&cache, &two)), (None, Some(12)));
    assert_eq!(cache.figures().rows, 1);
}

#[test]
fn what_was_read_before_or_during_a_write_is_not_kept() {
    let cache = RowCache::new(1 << 20, 1 << 20);
    let key = key(SPACE, 1);
    let hash = cache.hash(&key);
    let before = cache.ticket(hash).expect("nobody writes");
    let writing = cache.writing(&[hash, hash], &[]);
    assert!(cache.ticket(hash).is_none(), "it is being written");
    cache.keep(hash, before, &key, 1, &[]);
    assert_eq!(get(&cache, &key), None);
    drop(writing);
    cache.keep(hash, before, &key, 1, &[]);
    assert_eq!(get(&cache, &key), None);
    keep(&cache, &key, 2);
    assert_eq!(get(&cache, &key), Some(2));
}

#[test]
fn a_place_goes_by_the_rules_of_rows() {
    let cache = RowCache::new(1 << 20, 1 << 20);
    let key = key(SPACE, 1);
    let hash = cache.hash(&key);
    let place = Place::of(7, 100, &key, &[0; 20]).unwrap();
    let found = || if let Found::Place(place, _) = cache.find(hash, &key) { Some(place) } else { None };
    let before = cache.ticket(hash).expect("nobody writes");
    assert!(cache.note(hash, before, place));
    assert_eq!(found(), Some(place));
    let writing = cache.writing(&[hash], &[]);
    assert_eq!(found(), None);
    cache.note(hash, before, place);
    assert_eq!(found(), None, "it is being written");
    drop(writing);
    cache.note(hash, before, place);
    assert_eq!(found(), None, "it was written");
    assert!(cache.note(hash, cache.ticket(hash).expect("nobody writes"), place));
    let tickets =
        || (0..PLACES_PER_KEPT).filter(|_| matches!(cache.find(hash, &key), Found::Place(_, Some(_)))).count();
    assert_eq!((tickets(), tickets()), (1, 1), "a row that is read often is kept");
    keep(&cache, &key, 2);
    assert_eq!((get(&cache, &key), found()), (Some(2), None), "a row that is here is better");
    assert_eq!((cache.figures().rows, cache.figures().places), (1, 1));
    drop(cache.writing(&[hash], &[]));
    assert_eq!((get(&cache, &key), found()), (None, None));
    let full = RowCache::new(1 << 20, 0);
    assert!(!full.note(hash, full.ticket(hash).expect("nobody writes"), place), "there is no room");
}

#[test]
fn a_dropped_space_vanishes_and_what_was_read_of_it_is_not_kept() {
    let cache = RowCache::new(1 << 20, 1 << 20);
    let other = Space(SPACE.0 + 1);
    (0..100).for_each(|row| keep(&cache, &key(SPACE, row), 1));
    (0..100).for_each(|row| keep(&cache, &key(other, row), 2));
    let late = key(SPACE, 1000);
    let hash = cache.hash(&late);
    let ticket = cache.ticket(hash).expect("nobody writes");
    drop(cache.writing(&[], &[SPACE]));
    cache.keep(hash, ticket, &late, 1, &[]);
    assert_eq!(get(&cache, &late), None);
    assert!((0..100).all(|row| get(&cache, &key(SPACE, row)).is_none()));
    assert!((0..100).all(|row| get(&cache, &key(other, row)) == Some(2)));
}

#[test]
fn bytes_are_bounded_and_rows_in_use_stay() {
    let bytes_max = 1 << 20;
    let cache = RowCache::new(bytes_max, 0);
    let in_use = key(SPACE, 0);
    keep(&cache, &in_use, 1);
    for row in 1..100_000 {
        keep(&cache, &key(SPACE, row), 1);
        assert_eq!(get(&cache, &in_use), Some(1), "it is used all the time");
    }
    let figures = cache.figures();
    assert!(figures.bytes <= bytes_max as u64 && figures.bytes > bytes_max as u64 / 2, "{figures:?}");
    let large = key(SPACE, 0);
    let hash = cache.hash(&large);
    cache.keep(hash, cache.ticket(hash).expect("nobody writes"), &large, 2, &vec![0; bytes_max]);
    assert!(cache.figures().bytes <= bytes_max as u64);
}

#[test]
fn without_room_nothing_is_kept() {
    let cache = RowCache::new(0, 0);
    keep(&cache, &key(SPACE, 1), 1);
    assert_eq!(cache.figures().rows, 0);
}

/// Readers fill the cache from a database of a few numbers while a writer changes them. What is found in the cache is
/// never less than what the database showed before.
#[test]
fn nobody_finds_a_row_older_than_the_database_showed() {
    const ROWS: u64 = 4;
    const WRITES_MIN: u64 = 20_000;
    const HITS_MIN: u64 = 20_000;
    let cache = RowCache::new(1 << 20, 1 << 20);
    let database: Vec<RwLock<u64>> = (0..ROWS).map(|_| RwLock::new(0)).collect();
    let keys: Vec<Vec<u8>> = (0..ROWS).map(|row| key(SPACE, row)).collect();
    let (done, hits) = (AtomicBool::new(false), AtomicU64::new(0));
    let read = |row: usize| *database[row].read().expect("nobody panics");
    let reader = || {
        let mut row = 0;
        while !done.load(Ordering::Relaxed) {
            row = (row + 1) % keys.len();
            let (key, hash) = (&keys[row], cache.hash(&keys[row]));
            let at_least = read(row);
            if let Some(found) = get(&cache, key) {
                assert!(found >= at_least, "row {row} is {found} in the cache after {at_least} was seen");
                hits.fetch_add(1, Ordering::Relaxed);
            } else if let Some(ticket) = cache.ticket(hash) {
                let found = read(row);
                // Gives the writer time to overtake.
                std::thread::yield_now();
                cache.keep(hash, ticket, key, found, &found.to_be_bytes());
            }
        }
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(reader)).collect();
        for number in 1.. {
            if number > WRITES_MIN && hits.load(Ordering::Relaxed) > HITS_MIN
                || readers.iter().any(|reader| reader.is_finished())
            {
                break;
            }
            let row = (number % ROWS) as usize;
            let writing = cache.writing(&[cache.hash(&keys[row])], &[]);
            *database[row].write().expect("nobody panics") = number;
            drop(writing);
            if number % 64 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
