//! Places in the order of rows.

/// A place in the order of the rows of one space, whether or not a row is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The partition.
    pub partition: Vec<u8>,
    /// The row in it; empty for the start of the partition.
    pub row: Vec<u8>,
}

impl Position {
    /// The place of a row.
    pub fn new(partition: impl Into<Vec<u8>>, row: impl Into<Vec<u8>>) -> Position {
        Position { partition: partition.into(), row: row.into() }
    }

    /// The place just behind a row.
    pub fn after_row(partition: impl Into<Vec<u8>>, row: impl Into<Vec<u8>>) -> Position {
        let mut position = Position::new(partition, row);
        position.row.push(0);
        position
    }

    /// The place just behind the last row of a partition.
    pub fn after_partition(partition: impl Into<Vec<u8>>) -> Position {
        let mut position = Position::new(partition, []);
        position.partition.push(0);
        position
    }
}
