//! A table as a sink: rows in transactions, several under way at a time.
//!
//! Transactions of one partition go to one writer in their order, so that of two rows with the same keys the later
//! one wins, as it would if they were written one by one.

use crate::batcher::{Batch, Batcher};
use crate::{Entity, Error, Page, Result, Sink};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;

/// Waiting for its writer, beside the one under way.
const WAITING_MAX: usize = 4;

/// Writes transactions into a table, one after the other.
pub trait Writer: Send + 'static {
    /// Writes entities of one partition, all or none.
    fn write(&mut self, entities: &[Entity]) -> impl Future<Output = Result<()>> + Send;
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
    /// A sink of as many transactions at a time as there are writers, behind rows of the source that an earlier run has
    /// written.
    pub fn new<W: Writer>(writers: Vec<W>, rows: u64, on_written: OnWritten) -> TableSink {
        let written = Arc::new(Mutex::new(Written { rows, beyond: BTreeMap::new(), on_written }));
        let worker = |mut writer: W| {
            let (batches, mut waiting) = channel::<Batch>(WAITING_MAX);
            let written = written.clone();
            let task = tokio::spawn(async move {
                while let Some(batch) = waiting.recv().await {
                    writer.write(&batch.entities).await?;
                    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                    written.add(batch.before, batch.entities.len() as u64)?;
                }
                Ok(())
            });
            Worker { batches, task }
        };
        TableSink { batcher: Batcher::after(rows), workers: writers.into_iter().map(worker).collect() }
    }

    /// Takes a row.
    pub(crate) async fn push(&mut self, entity: Entity) -> Result<()> {
        match self.batcher.push(entity) {
            Some(batch) => self.send(batch).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, batch: Batch) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        batch.entities[0].partition_key.hash(&mut hasher);
        let index = (hasher.finish() % self.workers.len() as u64) as usize;
        if self.workers[index].batches.send(batch).await.is_err() {
            // The worker has ended, which it does early for one reason only.
            let worker = self.workers.swap_remove(index);
            return Err(ended(worker.task.await).err().unwrap_or(Error::Unavailable("a writer ended".into())));
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
            self.push(entity).await?;
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
