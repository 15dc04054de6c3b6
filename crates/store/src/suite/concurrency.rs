//! Many callers at once, on threads of their own, so that an engine meets real races.

use super::*;
use std::sync::atomic::{AtomicU64, AtomicUsize};

const THREADS: usize = 8;

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().expect("eight bytes"))
}

/// Read, add one, write if unchanged: every increment counts, however many run at once.
pub async fn increments_are_not_lost(store: &dyn Store) {
    const INCREMENTS: u64 = 25;
    write(store, b"p", vec![put(b"counter", &0_u64.to_be_bytes())]).await;
    on_threads(THREADS, async |_| {
        let mut done = 0;
        while done < INCREMENTS {
            let row = read(store, b"p", b"counter").await.expect("the counter is there");
            let next = Bytes::copy_from_slice(&(number(&row.value) + 1).to_be_bytes());
            let items = vec![item(b"counter", Expect::Version(row.version), Action::Put(next))];
            match store.commit(batch(SPACE, b"p", items)).await {
                Ok(version) => {
                    assert!(version > row.version);
                    done += 1;
                }
                Err(Error::Conflict { index: 0, found }) => assert!(found > Some(row.version)),
                Err(error) => panic!("{error}"),
            }
        }
    });
    let row = read(store, b"p", b"counter").await.expect("the counter is there");
    assert_eq!(number(&row.value), THREADS as u64 * INCREMENTS);
}

/// While batches rewrite all rows of a partition, every scan finds them all of one batch, and never an older batch than
/// a read or scan before it.
pub async fn a_scan_never_sees_half_a_batch(store: &dyn Store) {
    const ROWS: u8 = 20;
    const BATCHES: u64 = 200;
    let whole = |round: u64| -> Vec<Item> { (0..ROWS).map(|row| put(&[row], &round.to_be_bytes())).collect() };
    write(store, b"p", whole(0)).await;
    let done = AtomicBool::new(false);
    on_threads(4, async |thread| {
        if thread == 0 {
            for round in 1..=BATCHES {
                // Half of the batches delete a row that the next one creates again, so that rows also come and go.
                let mut items = whole(round);
                if round % 2 == 1 {
                    items[7] = delete(&[7]);
                }
                write(store, b"p", items).await;
            }
            done.store(true, Ordering::SeqCst);
            return;
        }
        let mut last = 0;
        while !done.load(Ordering::SeqCst) {
            if let Some(row) = read(store, b"p", &[3]).await {
                assert!(number(&row.value) >= last, "a read went back");
                last = number(&row.value);
            }
            let rows = scanned(store, scan_all(SPACE)).await;
            let round = number(&rows[0].value);
            assert!(round >= last, "a scan went back from {last} to {round}");
            last = round;
            assert!(rows.iter().all(|row| number(&row.value) == round), "half of a batch: {rows:?}");
            assert!(rows.iter().all(|row| row.version == rows[0].version), "half of a batch: {rows:?}");
            assert_eq!(rows.len(), usize::from(ROWS) - (round % 2) as usize, "half of a batch: {rows:?}");
        }
    });
}

/// While a space is dropped, a scan reads all of it or says that it is gone.
pub async fn a_drop_is_seen_as_a_whole(store: &dyn Store) {
    const ROWS: usize = 1500;
    for round in 0..6 {
        let space = Space(100 + round);
        // Some spaces are small, since engines may drop small and large ones in two ways.
        let rows = if round % 2 == 0 { 100 } else { ROWS };
        fill(store, space, 1, rows as u32).await;
        let started = AtomicUsize::new(0);
        on_threads(3, async |thread| {
            if thread == 0 {
                while started.load(Ordering::SeqCst) < 2 {
                    tokio::task::yield_now().await;
                }
                let drop = Batch { drop_space: Some(space), ..batch(SPACE, b"tables", vec![delete(b"table")]) };
                store.commit(drop).await.expect("the space is dropped");
                return;
            }
            loop {
                let found = visit(store, scan_all(space), |_| Step::Next).await;
                started.fetch_add(1, Ordering::SeqCst);
                match found {
                    Ok((found, end)) => assert_eq!((found.len(), end), (rows, ScanEnd::Exhausted)),
                    Err(Error::SpaceDropped) => break,
                    Err(error) => panic!("{error}"),
                }
                match store.get(space, &0_u32.to_be_bytes(), &1_u32.to_be_bytes()).await {
                    Ok(row) => assert!(row.is_some(), "rows vanished before the space did"),
                    Err(Error::SpaceDropped) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            assert_dropped(store.commit(batch(space, b"p", vec![put(b"r", b"late")])).await);
        });
    }
}

/// While rows are replaced, deleted and created again one after the other, whoever reads one finds nothing older than
/// what was acknowledged, or shown to anybody, before it began to read.
pub async fn nobody_reads_a_row_older_than_one_seen(store: &dyn Store) {
    const ROWS: u8 = 3;
    const ROUNDS: u64 = 400;
    write(store, b"p", (0..ROWS).map(|row| put(&[row], &0_u64.to_be_bytes())).collect()).await;
    let seen: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    on_threads(5, async |thread| {
        if thread == 0 {
            for round in 1..=ROUNDS {
                let row = (round % u64::from(ROWS)) as u8;
                if round % 5 == 0 {
                    write(store, b"p", vec![delete(&[row])]).await;
                }
                write(store, b"p", vec![put(&[row], &round.to_be_bytes())]).await;
                seen[usize::from(row)].fetch_max(round, Ordering::SeqCst);
            }
            done.store(true, Ordering::SeqCst);
            return;
        }
        let mut row = thread as u8 % ROWS;
        while !done.load(Ordering::SeqCst) {
            row = (row + 1) % ROWS;
            let at_least = seen[usize::from(row)].load(Ordering::SeqCst);
            let found = match thread {
                // Scans see rows where they are, whatever else is remembered of them.
                1 => scanned(store, scan_all(SPACE))
                    .await
                    .into_iter()
                    .find(|seen| seen.row == [row])
                    .map(|seen| seen.value),
                _ => read(store, b"p", &[row]).await.map(|row| row.value.to_vec()),
            };
            if let Some(value) = found {
                let found = number(&value);
                assert!(found >= at_least, "row {row} was {at_least} and is {found} now");
                seen[usize::from(row)].fetch_max(found, Ordering::SeqCst);
            }
        }
    });
}

/// Each writer reads its own writes at once, and all of them are there in the end.
pub async fn many_writers_on_one_partition(store: &dyn Store) {
    many_writers(store, 1).await;
}

/// The same with a partition for each writer.
pub async fn many_writers_on_many_partitions(store: &dyn Store) {
    many_writers(store, THREADS).await;
}

async fn many_writers(store: &dyn Store, partitions: usize) {
    const COMMITS: u8 = 40;
    on_threads(THREADS, async |thread| {
        let partition = [(thread % partitions) as u8];
        let mut last = 0;
        for commit in 0..COMMITS {
            let items = (0..3).map(|row| put(&[thread as u8, commit, row], &[commit; 100])).collect();
            let version = write(store, &partition, items).await;
            assert!(version > last, "{version} follows {last}");
            last = version;
            let row = read(store, &partition, &[thread as u8, commit, 2]).await.expect("acknowledged rows are read");
            assert_eq!((row.version, row.value.as_ref()), (version, &[commit; 100][..]));
        }
    });
    let rows = scanned(store, scan_all(SPACE)).await;
    assert_eq!(rows.len(), THREADS * usize::from(COMMITS) * 3);
    // Every commit has a version of its own, so rows share one only within a commit.
    let mut versions: Vec<Version> = rows.iter().map(|row| row.version).collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), THREADS * usize::from(COMMITS));
}

/// Of many who create the same row one succeeds, and the others learn which version was first.
pub async fn one_of_many_creators_wins(store: &dyn Store) {
    for round in 0..20_u8 {
        let won = AtomicUsize::new(0);
        on_threads(THREADS, async |thread| {
            let value = Bytes::from(vec![thread as u8]);
            let items = vec![item(&[round], Expect::Absent, Action::Put(value.clone()))];
            match store.commit(batch(SPACE, b"p", items)).await {
                Ok(version) => {
                    won.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(read(store, b"p", &[round]).await, Some(Row { version, value }));
                }
                Err(Error::Conflict { index: 0, found: Some(version) }) => {
                    assert_eq!(read(store, b"p", &[round]).await.map(|row| row.version), Some(version));
                }
                Err(error) => panic!("{error}"),
            }
        });
        assert_eq!(won.load(Ordering::SeqCst), 1);
    }
}
