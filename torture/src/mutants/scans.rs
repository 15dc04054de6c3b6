//! Scans that are not of one moment, or not of all rows.

use super::pause;
use partita_store::{Position, Result, RowRef, Scan, ScanEnd, Space, Step, Store, Visitor};
use std::time::{Duration, Instant};

/// The names of all rows of a space.
pub(super) async fn rows(store: &dyn Store, space: Space) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut rows = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(3600);
    let scan = Scan { space, start: Position::default(), end: None, deadline, rows_hint: 1000, sieve: None };
    store
        .scan(scan, &mut |row| {
            rows.push((row.partition.to_vec(), row.row.to_vec()));
            Step::Next
        })
        .await?;
    Ok(rows)
}

/// Reads a few rows, and the others a moment later.
pub(super) async fn torn(store: &dyn Store, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
    const ROWS: usize = 6;
    let mut seen = 0;
    let mut goes_on = None;
    let first = Scan { sieve: None, ..scan.clone() };
    let end = store
        .scan(first, &mut |row| {
            let step = visitor(row);
            seen += 1;
            if seen < ROWS {
                return step;
            }
            goes_on = match &step {
                Step::Next | Step::NextAny => Some(Position::after_row(row.partition, row.row)),
                Step::Seek(position) => Some(position.clone()),
                Step::Stop => None,
            };
            Step::Stop
        })
        .await?;
    let Some(start) = goes_on else { return Ok(end) };
    if scan.end.as_ref().is_some_and(|end| *end <= start) {
        return Ok(ScanEnd::Exhausted);
    }
    pause().await;
    store.scan(Scan { start, sieve: None, ..scan }, visitor).await
}

/// Whether a scan begins in the middle of a partition, as that of a further page does.
fn goes_on(scan: &Scan<'_>) -> bool {
    !scan.start.row.is_empty()
}

/// Passes over the first row of a further page.
pub(super) async fn skipping(store: &dyn Store, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
    let mut skip = goes_on(&scan);
    let mut skipping = |row: RowRef<'_>| if std::mem::take(&mut skip) { Step::Next } else { visitor(row) };
    store.scan(Scan { sieve: None, ..scan }, &mut skipping).await
}

/// Begins a further page a row too early.
pub(super) async fn repeating(store: &dyn Store, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
    let mut start = scan.start.clone();
    if goes_on(&scan) {
        let names = rows(store, scan.space).await?;
        let before =
            names.into_iter().map(|(partition, row)| Position { partition, row }).filter(|other| *other < start);
        let before = before.rev().find(|other| other.partition == scan.start.partition);
        start = before.unwrap_or(start);
    }
    store.scan(Scan { start, sieve: None, ..scan }, visitor).await
}
