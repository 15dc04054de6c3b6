//! Consecutive rows of one partition become transactions.

use crate::Entity;
use crate::client::PART_BYTES_MAX;
use partita_model::limits::{BATCH_OPERATIONS_MAX, BODY_BYTES_MAX};
use partita_wire::entity_json::write_typed;
use partita_wire::url::entity_path;
use std::collections::HashSet;

/// Rows that are written together, with the place of the first in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// How many rows came before it.
    pub before: u64,
    /// At least one, all of one partition, each RowKey once.
    pub entities: Vec<Entity>,
}

/// Gathers rows until they are worth a transaction.
#[derive(Debug, Default)]
pub struct Batcher {
    entities: Vec<Entity>,
    row_keys: HashSet<String>,
    bytes: usize,
    before: u64,
}

impl Batcher {
    /// Gathers behind rows that are passed over.
    pub fn after(rows: u64) -> Batcher {
        Batcher { before: rows, ..Batcher::default() }
    }

    /// Takes a row. Gives the rows before it, if it cannot join them: it is of another partition, there are enough of them,
    /// or the same row is among them, which no transaction allows.
    pub fn push(&mut self, entity: Entity) -> Option<Batch> {
        let mut json = Vec::new();
        write_typed(&mut json, &entity.partition_key, &entity.row_key, &entity.properties);
        let address = entity_path("", &entity.partition_key, &entity.row_key);
        let bytes = json.len() + address.len() + PART_BYTES_MAX;
        let joins = self.entities.first().is_none_or(|first| first.partition_key == entity.partition_key)
            && self.entities.len() < BATCH_OPERATIONS_MAX
            && self.bytes + bytes <= BODY_BYTES_MAX - PART_BYTES_MAX
            && !self.row_keys.contains(&entity.row_key);
        let batch = if joins { None } else { self.take() };
        self.bytes += bytes;
        self.row_keys.insert(entity.row_key.clone());
        self.entities.push(entity);
        batch
    }

    /// The rows that are left.
    pub fn take(&mut self) -> Option<Batch> {
        let entities = std::mem::take(&mut self.entities);
        self.row_keys.clear();
        self.bytes = 0;
        let before = self.before;
        self.before += entities.len() as u64;
        (!entities.is_empty()).then_some(Batch { before, entities })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partita_model::Value;

    fn row(partition_key: &str, row_key: &str, bytes: usize) -> Entity {
        let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
        Entity { partition_key, row_key, properties: vec![("A", Value::Binary(vec![0; bytes])).into()] }
    }

    fn sizes(rows: impl IntoIterator<Item = Entity>) -> Vec<(u64, usize)> {
        let mut batcher = Batcher::after(7);
        let mut batches: Vec<_> = rows.into_iter().filter_map(|row| batcher.push(row)).collect();
        batches.extend(batcher.take());
        batches.into_iter().map(|batch| (batch.before, batch.entities.len())).collect()
    }

    #[test]
    fn cuts() {
        assert_eq!(sizes([]), []);
        assert_eq!(sizes((0..250).map(|n| row("p", &n.to_string(), 1))), [(7, 100), (107, 100), (207, 50)]);
        assert_eq!(sizes(["a1", "a2", "b1", "a3"].map(|key| row(&key[..1], key, 1))), [(7, 2), (9, 1), (10, 1)]);
        assert_eq!(sizes([row("p", "1", 1), row("p", "2", 1), row("p", "1", 1)]), [(7, 2), (9, 1)]);
        // 48 KB are 64 KB of base64.
        let large = sizes((0..100).map(|n| row("p", &n.to_string(), 48 << 10)));
        assert!(large.len() == 2 && large[0].1 > 50, "{large:?}");
    }
}
