//! Which keys a filter can match, and how to walk over them.
//!
//! The service makes one interval of keys from the terms joined by `and` at the top, and reads everything in it. A plan
//! keeps all the intervals, so `or` costs as many seeks as it has alternatives, and a RowKey term without a PartitionKey
//! one seek for each partition. A plan never leaves out a row that matches, but may include rows that do not: unless it
//! is exact, the filter decides in the end.
//!
//! Reading goes like this, with `rows` in key order:
//!
//! ```text
//! from start(), until end():
//!     seek(row) = Here       evaluate the filter, go on to the next row
//!                 To(place)  go on to the first row at or behind it
//!                 End        stop
//! ```

use crate::filter::{Filter, Op};
use crate::key_set::{Budget, KeySet, Piece, Range, Rows};
use partita_model::{PartitionKey, Position, Value};

/// What a query has to read, in the words of the service's design guide and, from `MultiPoint` on, in ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanClass {
    /// One row.
    Point,
    /// Consecutive rows of one partition.
    Range,
    /// All rows of one partition.
    PartitionScan,
    /// All rows of consecutive partitions.
    PartitionRangeScan,
    /// All rows.
    TableScan,
    /// Several single rows.
    MultiPoint,
    /// Several ranges of rows or partitions.
    MultiRange,
    /// Some rows of each of many partitions.
    SkipScan,
    /// Nothing: no row can match.
    Empty,
}

impl PlanClass {
    /// All of them; each stands at the place of its number.
    pub const ALL: [PlanClass; 9] = [
        PlanClass::Point,
        PlanClass::Range,
        PlanClass::PartitionScan,
        PlanClass::PartitionRangeScan,
        PlanClass::TableScan,
        PlanClass::MultiPoint,
        PlanClass::MultiRange,
        PlanClass::SkipScan,
        PlanClass::Empty,
    ];

    /// The name for metrics and headers.
    pub fn name(self) -> &'static str {
        match self {
            PlanClass::Point => "point",
            PlanClass::Range => "range",
            PlanClass::PartitionScan => "partition_scan",
            PlanClass::PartitionRangeScan => "partition_range_scan",
            PlanClass::TableScan => "table_scan",
            PlanClass::MultiPoint => "multi_point",
            PlanClass::MultiRange => "multi_range",
            PlanClass::SkipScan => "skip_scan",
            PlanClass::Empty => "empty",
        }
    }
}

/// What a plan says of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seek {
    /// It may match.
    Here,
    /// It does not match, nor does any before this place, which lies behind it.
    To(Position),
    /// Neither it nor any behind it matches.
    End,
}

/// The keys worth reading for a filter.
#[derive(Clone, Debug)]
pub struct Plan {
    keys: KeySet,
    is_exact: bool,
    class: PlanClass,
    azure_class: PlanClass,
}

impl Plan {
    /// The plan for a filter, or for none.
    pub fn of(filter: Option<&Filter>) -> Plan {
        Plan::within(filter, Budget::FULL)
    }

    fn within(filter: Option<&Filter>, mut budget: Budget) -> Plan {
        let keys = filter.map_or_else(KeySet::everything, |filter| keys_of(filter, &mut budget));
        let is_exact = !budget.is_spent() && filter.is_none_or(is_about_keys);
        let class = class_of(&keys);
        Plan { keys, is_exact, class, azure_class: azure_class_of(filter) }
    }

    /// Whether every row of the plan matches, so that there is no need to evaluate the filter.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// What we do.
    pub fn class(&self) -> PlanClass {
        self.class
    }

    /// What Azure would do: only terms joined by `and` at the top narrow what it reads.
    pub fn azure_class(&self) -> PlanClass {
        self.azure_class
    }

    /// The first place worth reading; `None` if there is none.
    pub fn start(&self) -> Option<Position> {
        self.keys.pieces().first().map(start_of)
    }

    /// The place to stop at, without the row there; `None` means the end of the table.
    pub fn end(&self) -> Option<Position> {
        let Some(last) = self.keys.pieces().last() else { return Some(Position::default()) };
        let last_row = if last.is_point() { last.value.pieces().last() } else { None };
        match last_row.and_then(|row| row.high.as_ref()) {
            Some(row) => Some(Position::new(&*last.low, &**row)),
            None => last.high.as_ref().map(|high| Position::new(&**high, [])),
        }
    }

    /// Whether a row is worth reading, and if not where to go on. Any place may be asked for, row or not.
    pub fn seek(&self, partition: &[u8], row: &[u8]) -> Seek {
        let pieces = self.keys.pieces();
        let behind = pieces.partition_point(|piece| *piece.low <= *partition);
        let around = behind.checked_sub(1).map(|at| &pieces[at]).filter(|piece| piece.below_high(partition));
        if let Some(piece) = around {
            let rows = piece.value.pieces();
            let row_behind = rows.partition_point(|candidate| *candidate.low <= *row);
            if row_behind > 0 && rows[row_behind - 1].below_high(row) {
                return Seek::Here;
            }
            if let Some(next) = rows.get(row_behind) {
                return Seek::To(Position::new(partition, &*next.low));
            }
            let next = Position::after_partition(partition);
            if piece.below_high(&next.partition) {
                return Seek::To(next);
            }
        }
        pieces.get(behind).map_or(Seek::End, |piece| Seek::To(start_of(piece)))
    }

    /// The rows by their keys, in order, if single rows are all there is to read: for [`PlanClass::Point`] and
    /// [`PlanClass::MultiPoint`].
    pub fn points(&self) -> Option<impl Iterator<Item = (&[u8], &[u8])>> {
        matches!(self.class, PlanClass::Point | PlanClass::MultiPoint).then(|| {
            self.keys.pieces().iter().flat_map(|piece| piece.value.pieces().iter().map(|row| (&*piece.low, &*row.low)))
        })
    }
}

fn start_of(piece: &Piece<Rows>) -> Position {
    let row = piece.value.pieces().first().expect("a partition without rows is in no set");
    Position::new(&*piece.low, &*row.low)
}

fn keys_of(filter: &Filter, budget: &mut Budget) -> KeySet {
    match filter {
        Filter::And(terms) => KeySet::intersection_of(keys_of_each(terms, budget), budget),
        Filter::Or(terms) => KeySet::union_of(keys_of_each(terms, budget), budget),
        Filter::Compare { property, op, literal } => match property.as_str() {
            "PartitionKey" => KeySet::of_partitions(range_of(*op, literal)),
            "RowKey" => KeySet::of_rows(range_of(*op, literal)),
            _ => KeySet::everything(),
        },
        // Keys are strings, which are never true.
        Filter::Property(name) if matches!(name.as_str(), "PartitionKey" | "RowKey") => KeySet::empty(),
        Filter::Boolean(false) => KeySet::empty(),
        // The set of a term may be too wide, so what lies outside the set of its opposite may still match.
        Filter::Not(_) | Filter::Property(_) | Filter::Boolean(true) => KeySet::everything(),
    }
}

/// A loop, because the frames of an iterator on each level add up when the filter is deep.
fn keys_of_each(terms: &[Filter], budget: &mut Budget) -> Vec<KeySet> {
    let mut sets = Vec::with_capacity(terms.len());
    for term in terms {
        sets.push(keys_of(term, budget));
    }
    sets
}

/// Whether the keys alone decide, in a way that a set of keys can express.
fn is_about_keys(filter: &Filter) -> bool {
    let is_key = |name: &str| matches!(name, "PartitionKey" | "RowKey");
    match filter {
        Filter::And(terms) | Filter::Or(terms) => {
            for term in terms {
                if !is_about_keys(term) {
                    return false;
                }
            }
            true
        }
        Filter::Not(_) => false,
        Filter::Compare { property, op: Op::Ne, literal: Value::String(_) } if is_key(property) => false,
        Filter::Compare { property, .. } => is_key(property),
        Filter::Boolean(_) => true,
        Filter::Property(name) => is_key(name),
    }
}

fn range_of(op: Op, literal: &Value) -> Range {
    let Value::String(text) = literal else {
        // A key is less than any literal of another type.
        return match op {
            Op::Eq | Op::Gt | Op::Ge => Range::Empty,
            Op::Ne | Op::Lt | Op::Le => Range::everything(),
        };
    };
    let key = PartitionKey::to_ordered(text);
    match op {
        Op::Eq => Range::point(&key),
        Op::Ne => Range::everything(),
        Op::Gt => Range::behind(&key),
        Op::Ge => Range::from(&key),
        Op::Lt => Range::before(&key),
        Op::Le => Range::up_to(&key),
    }
}

fn class_of(keys: &KeySet) -> PlanClass {
    let partitions = keys.pieces();
    let of_points = partitions.iter().all(Piece::is_point);
    let of_rows = partitions.iter().all(|partition| partition.value.pieces().iter().all(Piece::is_point));
    let skips = partitions.iter().any(|partition| !partition.is_point() && !partition.value.is_everything());
    match partitions {
        [] => PlanClass::Empty,
        _ if skips => PlanClass::SkipScan,
        [one] if one.is_everything() => PlanClass::TableScan,
        [_] if !of_points => PlanClass::PartitionRangeScan,
        [one] if one.value.is_everything() => PlanClass::PartitionScan,
        [one] if one.value.pieces().len() == 1 => {
            if of_rows {
                PlanClass::Point
            } else {
                PlanClass::Range
            }
        }
        _ if of_points && of_rows => PlanClass::MultiPoint,
        _ => PlanClass::MultiRange,
    }
}

fn azure_class_of(filter: Option<&Filter>) -> PlanClass {
    let terms = match filter {
        Some(Filter::And(terms)) => terms.as_slice(),
        Some(other) => std::slice::from_ref(other),
        None => &[],
    };
    // For PartitionKey and RowKey each: whether a term fixes it, whether one bounds it.
    let (mut fixed, mut bounded) = ([false; 2], [false; 2]);
    for term in terms {
        if let Filter::Compare { property, op, literal: Value::String(_) } = term
            && let Some(key) = ["PartitionKey", "RowKey"].iter().position(|key| key == property)
        {
            match op {
                Op::Eq => fixed[key] = true,
                Op::Ne => {}
                Op::Gt | Op::Ge | Op::Lt | Op::Le => bounded[key] = true,
            }
        }
    }
    match (fixed, bounded) {
        ([true, true], _) => PlanClass::Point,
        ([true, false], [_, true]) => PlanClass::Range,
        ([true, false], [_, false]) => PlanClass::PartitionScan,
        ([false, _], [true, _]) => PlanClass::PartitionRangeScan,
        ([false, _], [false, _]) => PlanClass::TableScan,
    }
}

#[cfg(test)]
mod tests;
