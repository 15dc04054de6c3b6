//! Point reads and inserts that go together.
//!
//! Each statement costs the database a transaction, a system call and a process to wake; an insert also a record in its
//! log. So what arrives on a runtime at the same moment goes in one statement, and so does what arrives while as many
//! statements are under way as may be. A node that has little to do sends each at once.
//!
//! Where several insert at a time, they will have answers at the same time and come again at nearly the same time. So they
//! wait for one another, if only a moment: for as many as there were the last time ([`Company`]).
//!
//! What is promised of each holds as before. All that go together were asked for before the statement was sent, so its
//! snapshot is no older than any of them. An insert writes the rows that may be written and names them; whoever is not
//! among them asks alone for the reason. If a statement fails, nothing was written, and each goes on alone; if nobody knows
//! whether it did, nobody is told otherwise. Rows are written in the order of their keys, as in a batch, so that nobody waits
//! in a circle. Whoever stops waiting does not stop the others, so what they asked for may still be done.

use crate::failure::Failure;
use crate::pool::Statements;
use crate::sql;
use crate::store::{Shared, answered};
use bytes::Bytes;
use partita_store::{Batch, Row, Space, Version};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error as PgError, Row as PgRow};

/// Statements under way on a runtime: reads, which only take processor time, and inserts, which wait for a disk and are
/// synced together by the database. What comes when there are as many waits.
const READS_UNDER_WAY_MAX: usize = 2;
const INSERTS_UNDER_WAY_MAX: usize = 8;
/// So many inserts on a runtime are worth waiting for, and so long. A row costs the database a third in a statement of eight.
const COMPANY: Company = Company { least: 4, patience: Duration::from_millis(1) };
/// Rows of a statement.
const ROWS_MAX: usize = 100;
/// Bytes that a statement writes, if it has more than one row.
const BYTES_MAX: usize = 256 << 10;

/// A space as it is stored, a partition and a row.
type Key = (i64, Vec<u8>, Vec<u8>);

/// What became of something that went together with others.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    /// It was done.
    Done(T),
    /// The statement failed and changed nothing; whoever asks alone will be told more.
    Alone,
    /// The database cannot be reached; nothing was sent.
    Unreached(String),
    /// Nobody knows whether it was done.
    Lost(String),
}

/// What a read found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Row(Option<Row>),
    Dropped,
}

/// Those that wait on each runtime.
#[derive(Debug)]
pub(crate) struct Queues<W> {
    queues: Mutex<HashMap<Id, Queue<W>>>,
    under_way_max: usize,
    company: Option<Company>,
}

/// When to wait for others.
#[derive(Debug)]
struct Company {
    /// For fewer nobody waits.
    least: usize,
    /// The first to come waits no longer.
    patience: Duration,
}

#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<W>,
    /// Statements, and those who are in them.
    under_way: usize,
    rows_under_way: usize,
    /// How many were under way when the last statement had been sent.
    expected: usize,
    /// Told when so many wait.
    complete: Arc<Notify>,
    /// Whether somebody has been told to send and has not taken anybody yet.
    is_called: bool,
}

impl Queues<Reader> {
    pub(crate) fn of_readers() -> Queues<Reader> {
        Queues { queues: Mutex::default(), under_way_max: READS_UNDER_WAY_MAX, company: None }
    }
}

impl Queues<Inserter> {
    pub(crate) fn of_inserters() -> Queues<Inserter> {
        Queues { queues: Mutex::default(), under_way_max: INSERTS_UNDER_WAY_MAX, company: Some(COMPANY) }
    }
}

impl<W> Queues<W> {
    /// Looks at the queue of this runtime.
    fn with<T>(&self, look: impl FnOnce(&mut Queue<W>) -> T) -> T {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        look(queues.entry(Handle::current().id()).or_insert_with(|| Queue {
            waiting: VecDeque::new(),
            under_way: 0,
            rows_under_way: 0,
            expected: 0,
            complete: Arc::default(),
            is_called: false,
        }))
    }

    /// Adds somebody. Says whether to send a statement.
    fn push(&self, waiter: W) -> bool {
        self.with(|queue| {
            queue.waiting.push_back(waiter);
            if queue.waiting.len() == queue.expected {
                queue.complete.notify_one();
            }
            queue.may_send(self.under_way_max)
        })
    }

    /// Whether to send one more statement.
    fn may_send(&self) -> bool {
        self.with(|queue| queue.may_send(self.under_way_max))
    }

    /// Those who go in the next statement, and how many were taken for it.
    async fn take<G>(&self, choose: impl FnOnce(&mut VecDeque<W>) -> G) -> (G, usize) {
        // Connections on which a request has come are woken, and then it is asked. With the first alone a node answers a sixth
        // fewer reads.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        if let Some(company) = &self.company {
            let enough_waited = Instant::now() + company.patience;
            while let Some(complete) = self.with(|queue| queue.lacks(company.least).then(|| queue.complete.clone()))
                && timeout_at(enough_waited, complete.notified()).await.is_ok()
            {}
        }
        self.with(|queue| {
            let there = queue.waiting.len();
            let group = choose(&mut queue.waiting);
            let rows = there - queue.waiting.len();
            queue.rows_under_way += rows;
            queue.expected = queue.rows_under_way;
            queue.is_called = false;
            (group, rows)
        })
    }

    /// Notes that a statement was answered. Says whether to send another.
    fn answered(&self, rows: usize) -> bool {
        self.with(|queue| {
            queue.under_way -= 1;
            queue.rows_under_way -= rows;
            queue.may_send(self.under_way_max)
        })
    }
}

impl<W> Queue<W> {
    /// Whether to send one more statement, which is then counted.
    fn may_send(&mut self, under_way_max: usize) -> bool {
        let may_send = !self.waiting.is_empty() && !self.is_called && self.under_way < under_way_max;
        if may_send {
            self.is_called = true;
            self.under_way += 1;
        }
        may_send
    }

    /// Whether others are worth waiting for, and not all there.
    fn lacks(&self, least: usize) -> bool {
        self.expected >= least && self.waiting.len() < self.expected
    }
}

/// Somebody who wants to know a row.
#[derive(Debug)]
pub(crate) struct Reader {
    key: Key,
    answer: oneshot::Sender<Outcome<Found>>,
}

/// Somebody who inserts a row where there is none.
#[derive(Debug)]
pub(crate) struct Inserter {
    key: Key,
    version: Version,
    value: Bytes,
    answer: oneshot::Sender<Outcome<bool>>,
}

/// The readers of the next statement by key: who wants to know the same row is told the same.
fn next_readers(waiting: &mut VecDeque<Reader>) -> BTreeMap<Key, Vec<oneshot::Sender<Outcome<Found>>>> {
    let mut group = BTreeMap::<Key, Vec<_>>::new();
    while group.len() < ROWS_MAX
        && let Some(Reader { key, answer }) = waiting.pop_front()
    {
        group.entry(key).or_default().push(answer);
    }
    group
}

/// The inserters of the next statement, which cannot have a key twice.
fn next_inserters(waiting: &mut VecDeque<Inserter>) -> BTreeMap<Key, Inserter> {
    let (mut group, mut bytes) = (BTreeMap::new(), 0);
    for inserter in std::mem::take(waiting) {
        let length = inserter.value.len();
        let has_room = group.is_empty() || group.len() < ROWS_MAX && bytes + length <= BYTES_MAX;
        if has_room && !group.contains_key(&inserter.key) {
            bytes += length;
            group.insert(inserter.key.clone(), inserter);
        } else {
            waiting.push_back(inserter);
        }
    }
    group
}

impl Shared {
    /// Reads a row, together with others if there are any.
    pub(crate) async fn read_together(
        self: &Arc<Shared>,
        space: Space,
        partition: &[u8],
        row: &[u8],
    ) -> Outcome<Found> {
        let (answer, outcome) = oneshot::channel();
        let key = (sql::space(space), partition.to_vec(), row.to_vec());
        if self.readers.push(Reader { key, answer }) {
            self.send_reads();
        }
        outcome.await.unwrap_or(Outcome::Alone)
    }

    fn send_reads(self: &Arc<Shared>) {
        let shared = self.clone();
        tokio::spawn(async move {
            let (group, rows) = shared.readers.take(next_readers).await;
            // There may be more than a statement takes.
            if shared.readers.may_send() {
                shared.send_reads();
            }
            shared.read_group(group).await;
            if shared.readers.answered(rows) {
                shared.send_reads();
            }
        });
    }

    async fn read_group(&self, group: BTreeMap<Key, Vec<oneshot::Sender<Outcome<Found>>>>) {
        let Keys { spaces, partitions, rows, copies } = Keys::of(group.keys());
        let places: Vec<i64> = (0..group.len() as i64).collect();
        // Arrays take the database longer to read than one row takes.
        let outcome = if group.len() == 1 {
            let parameters: [&(dyn ToSql + Sync); 4] = [&spaces[0], &partitions[0], &rows[0], &copies[0]];
            let found = self.ask(async |client, statements| client.query_one(&statements.get, &parameters).await);
            found.await.map(|found| HashMap::from([(0, found_in(&found, 0))]))
        } else {
            let parameters: [&(dyn ToSql + Sync); 5] = [&spaces, &partitions, &rows, &places, &copies];
            let answer = self.ask(async |client, statements| client.query(&statements.get_many, &parameters).await);
            let found = |row: &PgRow| (row.get::<_, i64>(0), found_in(row, 1));
            answer.await.map(|answer| answer.iter().map(found).collect::<HashMap<i64, Found>>())
        };
        for (place, answers) in places.into_iter().zip(group.into_values()) {
            for answer in answers {
                let _ = answer.send(outcome.as_ref().map(|found| found[&place].clone()));
            }
        }
    }

    /// Inserts the row of a batch that does nothing else, together with others if there are any. Says whether it was
    /// written; if not, whoever asks alone will be told why.
    pub(crate) async fn insert_together(
        self: &Arc<Shared>,
        batch: &Batch,
        version: Version,
        value: &Bytes,
    ) -> Outcome<bool> {
        let (answer, outcome) = oneshot::channel();
        let key = (sql::space(batch.space), batch.partition.clone(), batch.items[0].row.clone());
        if self.inserters.push(Inserter { key, version, value: value.clone(), answer }) {
            self.send_inserts();
        }
        outcome.await.unwrap_or_else(|_| Outcome::Lost("the node is ending".into()))
    }

    fn send_inserts(self: &Arc<Shared>) {
        let shared = self.clone();
        tokio::spawn(async move {
            let (group, rows) = shared.inserters.take(next_inserters).await;
            if shared.inserters.may_send() {
                shared.send_inserts();
            }
            shared.insert_group(group).await;
            if shared.inserters.answered(rows) {
                shared.send_inserts();
            }
        });
    }

    async fn insert_group(&self, group: BTreeMap<Key, Inserter>) {
        let Keys { spaces, partitions, rows, copies } = Keys::of(group.keys());
        let versions: Vec<i64> = group.values().map(|inserter| inserter.version as i64).collect();
        let values: Vec<&[u8]> = group.values().map(|inserter| &inserter.value[..]).collect();
        // As with reads.
        let outcome = if let [version] = versions[..] {
            let parameters: [&(dyn ToSql + Sync); 6] =
                [&spaces[0], &partitions[0], &rows[0], &version, &values[0], &copies[0]];
            let count =
                self.ask(async |client, statements| client.execute(&statements.insert_absent, &parameters).await);
            count.await.map(|count| HashSet::from_iter((count == 1).then_some(version)))
        } else {
            let parameters: [&(dyn ToSql + Sync); 6] = [&spaces, &partitions, &rows, &versions, &values, &copies];
            let answer = self.ask(async |client, statements| client.query(&statements.insert_many, &parameters).await);
            answer.await.map(|answer| answer.iter().map(|row| row.get(0)).collect::<HashSet<i64>>())
        };
        for (version, inserter) in versions.into_iter().zip(group.into_values()) {
            let _ = inserter.answer.send(outcome.as_ref().map(|written| written.contains(&version)));
        }
    }

    async fn ask<T>(&self, send: impl AsyncFnOnce(&Client, &Statements) -> Result<T, PgError>) -> Outcome<T> {
        let lease = match self.pool.lease().await {
            Ok(lease) => lease,
            Err(error) => return Outcome::Unreached(error.to_string()),
        };
        match answered(send(&lease.client, &lease.statements)).await {
            Ok(answer) => {
                lease.give_back();
                Outcome::Done(answer)
            }
            Err(failure) => {
                lease.give_back_after(&failure);
                match failure {
                    Failure::Lost(why) => Outcome::Lost(why),
                    _ => Outcome::Alone,
                }
            }
        }
    }
}

impl<T> Outcome<T> {
    fn map<U>(self, done: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Outcome::Done(value) => Outcome::Done(done(value)),
            Outcome::Alone => Outcome::Alone,
            Outcome::Unreached(why) => Outcome::Unreached(why),
            Outcome::Lost(why) => Outcome::Lost(why),
        }
    }

    fn as_ref(&self) -> Outcome<&T> {
        match self {
            Outcome::Done(value) => Outcome::Done(value),
            Outcome::Alone => Outcome::Alone,
            Outcome::Unreached(why) => Outcome::Unreached(why.clone()),
            Outcome::Lost(why) => Outcome::Lost(why.clone()),
        }
    }
}

/// Keys as arrays, and the copy of the marks to ask for each.
struct Keys<'k> {
    spaces: Vec<i64>,
    partitions: Vec<&'k [u8]>,
    rows: Vec<&'k [u8]>,
    copies: Vec<i64>,
}

impl<'k> Keys<'k> {
    fn of(keys: impl Iterator<Item = &'k Key> + Clone) -> Keys<'k> {
        Keys {
            spaces: keys.clone().map(|(space, ..)| *space).collect(),
            partitions: keys.clone().map(|(_, partition, _)| &partition[..]).collect(),
            rows: keys.clone().map(|(.., row)| &row[..]).collect(),
            copies: keys.map(|(space, partition, _)| sql::copy(*space, partition)).collect(),
        }
    }
}

/// The row in an answer of [`sql::GET`] or [`sql::GET_MANY`], from a column on.
pub(crate) fn found_in(answer: &PgRow, at: usize) -> Found {
    if answer.get(at) {
        return Found::Dropped;
    }
    let (version, value): (Option<i64>, Option<&[u8]>) = (answer.get(at + 1), answer.get(at + 2));
    let row = |(version, value)| Row { version: version as Version, value: Bytes::copy_from_slice(value) };
    Found::Row(version.zip(value).map(row))
}

#[cfg(test)]
mod tests;
