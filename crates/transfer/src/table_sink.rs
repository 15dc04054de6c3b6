//! A table as a sink, over HTTP: rows in transactions, several under way at a time.
//!
//! Transactions of one partition go over one connection in their order, so that of two rows with the same keys the later
//! one wins, as it would if they were written one by one.

use crate::batcher::{Batch, Batcher};
use crate::client::{Client, Mode};
use crate::connection::Connection;
use crate::{Entity, Error, Page, Result, Sink};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;

/// Waiting for its connection, beside the one under way.
const WAITING_MAX: usize = 4;

/// How entities are written.
#[derive(Clone, Debug)]
pub struct Writing {
    /// The table.
    pub table: String,
    /// What becomes of each entity.
    pub mode: Mode,
    /// How many connections are used.
    pub connections: usize,
    /// How many rows of the source an earlier run has written; further ones may be there as well.
    pub resumed_at: Option<u64>,
}

/// Called with the number of rows of the source that are written, without a gap.
pub type OnWritten = Box<dyn FnMut(u64) -> Result<()> + Send>;

/// Writes what it is given.
pub struct TableSink {
    batcher: Batcher,
    workers: Vec<Worker>,
}

struct Worker {
    batches: Sender<Batch>,
    task: JoinHandle<Result<()>>,
}

/// Which rows are written.
struct Written {
    /// All before this.
    rows: u64,
    /// And these: where they begin and end.
    beyond: BTreeMap<u64, u64>,
    /// Told when the first number grows.
    on_written: OnWritten,
}

impl Written {
    fn add(&mut self, from: u64, count: u64) -> Result<()> {
        self.beyond.insert(from, from + count);
        let before = self.rows;
        while let Some(end) = self.beyond.remove(&self.rows) {
            self.rows = end;
        }
        if self.rows > before { (self.on_written)(self.rows) } else { Ok(()) }
    }
}

impl std::fmt::Debug for TableSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableSink").finish_non_exhaustive()
    }
}

impl TableSink {
    /// Connects when there is something to write.
    pub fn new(connection: &Arc<Connection>, writing: &Writing, on_written: OnWritten) -> Result<TableSink> {
        let rows = writing.resumed_at.unwrap_or(0);
        let written = Arc::new(Mutex::new(Written { rows, beyond: BTreeMap::new(), on_written }));
        let worker = |_| {
            let (batches, mut waiting) = channel::<Batch>(WAITING_MAX);
            let mut client = Client::new(connection.clone())?;
            let (writing, written) = (writing.clone(), written.clone());
            let task = tokio::spawn(async move {
                while let Some(batch) = waiting.recv().await {
                    write(&mut client, &writing, &batch.entities).await?;
                    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                    written.add(batch.before, batch.entities.len() as u64)?;
                }
                Ok(())
            });
            Ok(Worker { batches, task })
        };
        let workers = (0..writing.connections.max(1)).map(worker).collect::<Result<_>>()?;
        Ok(TableSink { batcher: Batcher::after(rows), workers })
    }

    async fn send(&mut self, batch: Batch) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        batch.entities[0].partition_key.hash(&mut hasher);
        let index = (hasher.finish() % self.workers.len() as u64) as usize;
        if self.workers[index].batches.send(batch).await.is_err() {
            // The worker has ended, which it does early for one reason only.
            let worker = self.workers.swap_remove(index);
            return Err(ended(worker.task.await).err().unwrap_or(Error::Unavailable("a connection ended".into())));
        }
        Ok(())
    }
}

fn ended(task: std::result::Result<Result<()>, tokio::task::JoinError>) -> Result<()> {
    task.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
}

impl Sink for TableSink {
    async fn put(&mut self, page: Page) -> Result<()> {
        for entity in page.entities {
            if let Some(batch) = self.batcher.push(entity) {
                self.send(batch).await?;
            }
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        if let Some(batch) = self.batcher.take() {
            self.send(batch).await?;
        }
        let mut outcome = Ok(());
        for Worker { batches, task } in self.workers.drain(..) {
            drop(batches);
            // The others are waited for all the same: what they write counts.
            let ended = ended(task.await);
            outcome = outcome.and(ended);
        }
        outcome
    }
}

/// Writes a transaction. An insert that meets its own row, written by an attempt of which no answer came or by an earlier
/// run, has done what it should.
async fn write(client: &mut Client, writing: &Writing, entities: &[Entity]) -> Result<()> {
    let Writing { table, mode, resumed_at, .. } = writing;
    let error = match client.write(table, *mode, entities).await {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let exists = matches!(&error, Error::Refused { code, .. } if code == "EntityAlreadyExists");
    if !exists || *mode != Mode::Insert || !(resumed_at.is_some() || client.was_in_doubt()) {
        return Err(error);
    }
    for entity in entities {
        match client.get(table, &entity.partition_key, &entity.row_key).await? {
            Some(found) if found == *entity => {}
            Some(_) => return Err(error),
            None => client.write(table, *mode, std::slice::from_ref(entity)).await?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_rows_are_counted_without_gaps() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        let on_written: OnWritten = Box::new(move |rows| {
            heard.lock().unwrap().push(rows);
            Ok(())
        });
        let mut written = Written { rows: 10, beyond: BTreeMap::new(), on_written };
        for (from, count) in [(30, 5), (20, 10), (10, 10), (35, 1)] {
            written.add(from, count).unwrap();
        }
        assert_eq!(*told.lock().unwrap(), [35, 36]);
    }
}
