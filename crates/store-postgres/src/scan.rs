//! Scans: pages by key, in one snapshot.
//!
//! A transaction that only reads is begun, whether the space was dropped is asked, and the first page is asked for, all
//! three in one round trip. Each further page begins behind the last row of the one before, never at an offset. A page is
//! taken from the wire row by row, so it needs no memory, and it has a bounded number of rows, because those that the
//! visitor does not want are read all the same. The transaction is ended without waiting for it.

use crate::failure::Failure;
use crate::pool::{Connection, Lease};
use crate::sql;
use crate::store::{SILENCE, Shared, answered};
use futures_util::StreamExt;
use partita_store::{Error, Position, Result, RowRef, Scan, ScanEnd, Step, Version, Visitor};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error as PgError, Row, RowStream};

/// Rows of the first page, at most: how large they are is not known yet.
const FIRST_PAGE_ROWS_MAX: usize = 128;
const PAGE_ROWS_MIN: usize = 8;
const PAGE_ROWS_MAX: usize = 2000;
/// What a page should come to.
const PAGE_BYTES: usize = 2 << 20;
/// More than this is not read to the end for nobody: the connection is closed instead.
const UNREAD_BYTES_MAX: usize = 4 << 20;
/// The database ends a statement by itself this long after the deadline, when nobody can be waiting for a row.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);

/// Rows that a seek passes over in a page before it is cheaper to ask for another page.
const ROWS_PASSED_MAX: usize = 16;

/// Where a scan is.
struct Progress<'a, 's> {
    scan: &'a Scan<'s>,
    /// The first place that was not read yet.
    next: Position,
    /// How many rows to ask for.
    page_rows: usize,
    rows: usize,
    bytes: usize,
    /// How much of the last page was asked for and not used, as far as can be told.
    unread_bytes: usize,
    /// Whether the next row is shown whatever the sieve says.
    shows_any: bool,
}

/// What comes behind a page.
enum PageEnd {
    More,
    Scan(ScanEnd),
}

impl Shared {
    pub(crate) async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        let mut progress = Progress {
            next: scan.start.clone(),
            page_rows: scan.rows_hint.clamp(1, FIRST_PAGE_ROWS_MAX),
            scan: &scan,
            rows: 0,
            bytes: 0,
            unread_bytes: 0,
            shows_any: false,
        };
        for attempt in 1.. {
            let lease = self.pool.lease().await?;
            let failure = match progress.run(&lease, visitor).await {
                Ok(end) => {
                    if progress.unread_bytes <= UNREAD_BYTES_MAX {
                        finish(lease);
                    }
                    return end;
                }
                Err(failure) => failure,
            };
            // The transaction is left behind half way, so the connection is not given back.
            drop(lease);
            if progress.rows == 0 {
                self.read_failed(failure, attempt)?;
            } else if matches!(failure, Failure::TimedOut) && Instant::now() >= scan.deadline {
                return Ok(ScanEnd::Deadline(progress.next));
            } else {
                // What was shown cannot be taken back, and another snapshot must not go on from there.
                return Err(Error::Unavailable(failure.into_words()));
            }
        }
        unreachable!("the last attempt returns")
    }
}

/// Ends the transaction without waiting, and gives the connection back. Whatever it is asked next comes behind the end.
fn finish(lease: Lease<'_>) {
    let is_sent = {
        let mut end = pin!(lease.client.batch_execute(sql::SCAN_END));
        !matches!(end.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)))
    };
    if is_sent {
        lease.give_back();
    }
}

impl Progress<'_, '_> {
    /// Reads in one snapshot, as far as the scan goes.
    async fn run(
        &mut self,
        connection: &Connection,
        visitor: &mut Visitor<'_>,
    ) -> std::result::Result<Result<ScanEnd>, Failure> {
        let space = sql::space(self.scan.space);
        let time = self.scan.deadline.saturating_duration_since(Instant::now()) + DEADLINE_GRACE;
        let begin = format!("{}{}", sql::SCAN_BEGIN, time.as_millis().min(30_000));
        let copy = sql::copy(space, &self.scan.start.partition);
        let parameters: [&(dyn ToSql + Sync); 2] = [&space, &copy];
        let opening = async {
            tokio::try_join!(
                connection.client.batch_execute(&begin),
                connection.client.query_one(&connection.statements.is_dropped, &parameters),
                self.page(connection)
            )
        };
        let ((), is_dropped, mut page) = answered(opening).await?;
        if is_dropped.get(0) {
            return Ok(Err(Error::SpaceDropped));
        }
        loop {
            match self.read(page, visitor).await? {
                PageEnd::Scan(end) => return Ok(Ok(end)),
                PageEnd::More => page = answered(self.page(connection)).await?,
            }
        }
    }

    /// Asks for a page from the next place on.
    async fn page(&self, connection: &Connection) -> std::result::Result<RowStream, PgError> {
        let Connection { client, statements, .. } = connection;
        let (space, rows) = (sql::space(self.scan.space), self.page_rows as i64);
        let Position { partition, row } = &self.next;
        match &self.scan.end {
            None => {
                let parameters: [&(dyn ToSql + Sync); 4] = [&space, partition, row, &rows];
                client.query_raw(&statements.scan_from, parameters).await
            }
            Some(end) => {
                let parameters: [&(dyn ToSql + Sync); 6] = [&space, partition, row, &rows, &end.partition, &end.row];
                client.query_raw(&statements.scan_between, parameters).await
            }
        }
    }

    /// Shows the rows of a page.
    async fn read(&mut self, page: RowStream, visitor: &mut Visitor<'_>) -> std::result::Result<PageEnd, Failure> {
        let mut page = pin!(page);
        let (mut received, mut used, mut passed) = (0, 0, 0);
        let mut last: Option<Row> = None;
        let mut target: Option<Position> = None;
        let end = loop {
            let row = match tokio::time::timeout(SILENCE, page.next()).await {
                Ok(Some(Ok(row))) => row,
                Ok(Some(Err(error))) => break Err(Failure::from(error)),
                Ok(None) => {
                    let is_full = received == self.page_rows;
                    received = self.page_rows;
                    break Ok(if is_full { PageEnd::More } else { PageEnd::Scan(ScanEnd::Exhausted) });
                }
                Err(_) => break Err(Failure::Lost("the database does not answer".into())),
            };
            received += 1;
            let (partition, name): (&[u8], &[u8]) = (row.get(0), row.get(1));
            if let Some(place) = &target {
                if (partition, name) < (&place.partition, &place.row) {
                    passed += 1;
                    if passed > ROWS_PASSED_MAX {
                        break Ok(PageEnd::More);
                    }
                    continue;
                }
                target = None;
            }
            if self.rows > 0 && Instant::now() >= self.scan.deadline {
                break Ok(PageEnd::Scan(ScanEnd::Deadline(Position::new(partition, name))));
            }
            let value: &[u8] = row.get(3);
            let seen = RowRef { partition, row: name, version: row.get::<_, i64>(2) as Version, value };
            self.rows += 1;
            self.bytes += partition.len() + name.len() + value.len();
            used += 1;
            let is_passed_over = !self.shows_any && self.scan.sieve.is_some_and(|sieve| !sieve.keeps(seen));
            let step = if is_passed_over {
                self.scan.sieve.inspect(|sieve| sieve.passed_over(1));
                Step::Next
            } else {
                visitor(seen)
            };
            self.shows_any = step == Step::NextAny;
            match step {
                Step::Next | Step::NextAny => {}
                Step::Stop => break Ok(PageEnd::Scan(ScanEnd::Stopped)),
                Step::Seek(place) => {
                    assert!((partition, name) < (&place.partition, &place.row), "a scan seeks forwards only");
                    if self.scan.end.as_ref().is_some_and(|end| place >= *end) {
                        break Ok(PageEnd::Scan(ScanEnd::Exhausted));
                    }
                    passed = 0;
                    target = Some(place);
                }
            }
            last = Some(row);
        };
        let bytes = self.bytes.checked_div(self.rows).unwrap_or_default();
        self.unread_bytes = (self.page_rows - received) * bytes;
        let rows = match target {
            // Whoever seeks again soon has no use for many rows.
            Some(place) => {
                self.next = place;
                used * 2
            }
            None => {
                if let Some(row) = last {
                    self.next = Position::after_row(row.get::<_, &[u8]>(0), row.get::<_, &[u8]>(1));
                }
                self.page_rows * 4
            }
        };
        self.page_rows = rows.clamp(PAGE_ROWS_MIN, (PAGE_BYTES / bytes.max(1)).clamp(PAGE_ROWS_MIN, PAGE_ROWS_MAX));
        end
    }
}
