//! Where ranges begin and end: splits by size and by load, and merges of what has become quiet.
//!
//! A split by load must help: its place is the middle of what arrived in one step, and it is made only if what arrives in
//! the next step is on both sides of it. A stream that only appends never is, so its range is never split by load. That is
//! also how CockroachDB decides, which counts on both sides of a few candidates.

use crate::cluster::{Cluster, Range};
use crate::key::Key;

/// The least share of the load that each side of a split must have.
const BALANCE: f64 = 0.25;
/// The share of the load of a split below which a range is quiet.
const QUIET: f64 = 0.05;
/// Steps of quiet before a range is merged with its neighbour.
const QUIET_STEPS: u32 = 30;
/// The share of the bytes of a split that two merged ranges may have.
const MERGED_BYTES: f64 = 0.5;

impl Cluster {
    pub(crate) fn split_and_merge(&mut self) {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 8);
        for mut range in std::mem::take(&mut self.ranges) {
            let right = self.place_to_split(&mut range).map(|key| cut(&mut range, key));
            ranges.push(range);
            if let Some(right) = right {
                ranges.push(right);
                self.counts.splits += 1;
            }
        }
        for range in &mut ranges {
            let is_quiet = range.load < QUIET * self.settings.split_load;
            range.quiet = if is_quiet { range.quiet + 1 } else { 0 };
        }
        for range in ranges {
            match self.ranges.last_mut() {
                Some(left) if can_merge(left, &range, self.settings.split_bytes / self.settings.bytes) => {
                    left.rows.extend(range.rows);
                    left.arrived.extend(range.arrived);
                    left.load += range.load;
                    left.quiet = 0;
                    // The copies of the right one must be where those of the left one are.
                    self.counts.moves += usize::from(left.nodes != range.nodes);
                    self.counts.merges += 1;
                }
                _ => self.ranges.push(range),
            }
        }
    }

    fn place_to_split(&self, range: &mut Range) -> Option<Key> {
        if range.copy.is_some() {
            return None;
        }
        if range.rows.len() as f64 * self.settings.bytes > self.settings.split_bytes {
            let middle = middle(&mut range.rows)?;
            if let Some(key) = self.allowed(range.start, middle, &range.rows) {
                return Some(key);
            }
        }
        if !self.rule.by_load || range.load <= self.settings.split_load {
            range.candidate = None;
            return None;
        }
        if let Some(key) = range.candidate.take()
            && share_left(&range.arrived, key) >= BALANCE
            && share_left(&range.arrived, key) <= 1.0 - BALANCE
        {
            return Some(key);
        }
        let middle = middle(&mut range.arrived)?;
        range.candidate = self.allowed(range.start, middle, &range.arrived);
        None
    }

    /// The place next to a key where the rule lets a range end, that leaves some of the keys on each side.
    fn allowed(&self, start: Key, key: Key, keys: &[Key]) -> Option<Key> {
        let places = match self.rule.inside_partitions {
            true => vec![key],
            false => vec![Key::start_of(key.partition), Key::start_of(key.partition.saturating_add(1))],
        };
        let uneven = |place: &Key| (share_left(keys, *place) - 0.5).abs();
        let divides = |place: &Key| *place > start && uneven(place) < 0.5;
        places.into_iter().filter(divides).min_by(|one, other| uneven(one).total_cmp(&uneven(other)))
    }
}

fn middle(keys: &mut [Key]) -> Option<Key> {
    if keys.is_empty() {
        return None;
    }
    let half = keys.len() / 2;
    Some(*keys.select_nth_unstable(half).1)
}

fn share_left(keys: &[Key], place: Key) -> f64 {
    keys.iter().filter(|key| **key < place).count() as f64 / keys.len().max(1) as f64
}

/// Cuts a range at a key; what is returned is its right part, on the same nodes.
fn cut(range: &mut Range, key: Key) -> Range {
    let mut right = Range::new(key, range.nodes);
    let share = 1.0 - share_left(&range.arrived, key);
    let take = |keys: &mut Vec<Key>| keys.extract_if(.., |held| *held >= key).collect();
    right.rows = take(&mut range.rows);
    right.arrived = take(&mut range.arrived);
    right.load = range.load * share;
    range.load -= right.load;
    range.candidate = None;
    right
}

fn can_merge(left: &Range, right: &Range, rows_max: f64) -> bool {
    let rows = (left.rows.len() + right.rows.len()) as f64;
    left.quiet >= QUIET_STEPS
        && right.quiet >= QUIET_STEPS
        && left.copy.is_none()
        && right.copy.is_none()
        && rows <= MERGED_BYTES * rows_max
}
