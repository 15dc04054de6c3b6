//! Nodes and ranges: who leads what, what is refused, and what is stored.
//!
//! ```text
//! key space   | range        | range   | range            |     each on three nodes, one of which leads it
//!             start          ...                               and takes its operations
//! ```
//!
//! Time goes in steps. In each the writes arrive, a node that is asked for more than it can do refuses the rest, and then
//! ranges are split and merged (`split`) and moved (`balance`). What a node spends on keeping copies of
//! ranges that others lead is in its capacity already. Nodes do not fail, and bytes are not balanced, only load.

use crate::key::Key;

/// Copies of each range, the leader's among them.
pub const REPLICAS: usize = 3;
/// How much of the last step the memory of a load is made of.
const FRESHNESS: f64 = 0.3;

/// What a cluster is made of; the same for all designs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many nodes there are.
    pub nodes: usize,
    /// Operations a second that a node can do on the ranges it leads.
    pub capacity: f64,
    /// Seconds of a step.
    pub step: f64,
    /// Operations a second that one simulated write stands for.
    pub weight: f64,
    /// Bytes that one simulated write stands for.
    pub bytes: f64,
    /// A range with more bytes is split.
    pub split_bytes: f64,
    /// A range with more operations a second is split, if that helps and the rule allows it.
    pub split_load: f64,
    /// Bytes a second at which a range is copied to another node.
    pub copy_rate: f64,
    /// The share of its capacity that a node loses while it sends or receives a copy.
    pub copy_cost: f64,
    /// The share of a step in which a range that gets another leader does nothing.
    pub transfer_pause: f64,
}

/// Where and why ranges are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it is called.
    pub name: &'static str,
    /// Whether a range may end inside a partition.
    pub inside_partitions: bool,
    /// Whether load is a reason.
    pub by_load: bool,
}

/// A stretch of the key space, up to the start of the next.
#[derive(Clone, Debug)]
pub struct Range {
    /// Its first key.
    pub start: Key,
    /// Who has a copy; the first leads.
    pub nodes: [usize; REPLICAS],
    /// What is stored in it, in no order.
    pub rows: Vec<Key>,
    /// Operations a second that arrive, smoothed.
    pub load: f64,
    /// What arrived in this step.
    pub(crate) arrived: Vec<Key>,
    /// Where it would be split, if what arrives next is on both sides.
    pub(crate) candidate: Option<Key>,
    /// Steps in which it had next to nothing to do.
    pub(crate) quiet: u32,
    /// A copy under way: to whom, and how many steps it still takes.
    pub(crate) copy: Option<(usize, u32)>,
    /// Whether its leader has just changed.
    pub(crate) is_paused: bool,
    /// Parts of writes that were accepted and not stored yet.
    credit: f64,
}

impl Range {
    pub(crate) fn new(start: Key, nodes: [usize; REPLICAS]) -> Range {
        Range {
            start,
            nodes,
            rows: Vec::new(),
            load: 0.0,
            arrived: Vec::new(),
            candidate: None,
            quiet: 0,
            copy: None,
            is_paused: false,
            credit: 0.0,
        }
    }

    /// The node that takes its operations.
    pub fn leader(&self) -> usize {
        self.nodes[0]
    }
}

/// How often something was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ranges cut in two.
    pub splits: usize,
    /// Ranges joined to their neighbour.
    pub merges: usize,
    /// Leaders that handed over to another copy.
    pub transfers: usize,
    /// Copies made on another node.
    pub moves: usize,
}

/// What a step came to.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The share of what all nodes could do that was done.
    pub achieved: f64,
    /// The share of what arrived that the busiest node was asked for.
    pub hottest: f64,
    /// How many ranges there were.
    pub ranges: usize,
}

/// All nodes and ranges.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// What it is made of.
    pub settings: Settings,
    /// Where it may split.
    pub rule: Rule,
    /// In the order of their keys; together they are the whole key space.
    pub ranges: Vec<Range>,
    /// What was done so far.
    pub counts: Counts,
}

impl Cluster {
    /// An empty key space: one range on the first nodes.
    pub fn new(settings: Settings, rule: Rule) -> Cluster {
        let ranges = vec![Range::new(Key::default(), [0, 1, 2])];
        Cluster { settings, rule, ranges, counts: Counts::default() }
    }

    /// The range that a key belongs to.
    pub fn range_of(&self, key: Key) -> usize {
        self.ranges.partition_point(|range| range.start <= key) - 1
    }

    /// Lets writes arrive, does what nodes can do, and looks after the ranges. `served` is told for each write, by its
    /// place, which part of it was done.
    pub fn step(&mut self, writes: &[Key], mut served: impl FnMut(usize, f64)) -> Step {
        let homes: Vec<usize> = writes.iter().map(|&key| self.range_of(key)).collect();
        for (&key, &home) in writes.iter().zip(&homes) {
            self.ranges[home].arrived.push(key);
        }
        let weight = self.settings.weight;
        let mut demand = vec![0.0; self.settings.nodes];
        for range in &self.ranges {
            demand[range.leader()] += weight * range.arrived.len() as f64;
        }
        let parts: Vec<f64> =
            self.capacities().iter().zip(&demand).map(|(can, asked)| (can / asked).min(1.0)).collect();
        let mut done = 0.0;
        for (place, (&key, &home)) in writes.iter().zip(&homes).enumerate() {
            let range = &mut self.ranges[home];
            let pause = if range.is_paused { self.settings.transfer_pause } else { 0.0 };
            let part = parts[range.leader()] * (1.0 - pause);
            range.credit += part;
            if range.credit >= 1.0 {
                range.credit -= 1.0;
                range.rows.push(key);
            }
            done += part * weight;
            served(place, part);
        }
        for range in &mut self.ranges {
            let now = weight * range.arrived.len() as f64;
            range.load += FRESHNESS * (now - range.load);
            range.is_paused = false;
        }
        self.split_and_merge();
        self.balance();
        self.ranges.iter_mut().for_each(|range| range.arrived.clear());
        let total: f64 = demand.iter().sum();
        Step {
            achieved: done / (self.settings.capacity * self.settings.nodes as f64),
            hottest: if total > 0.0 { demand.iter().copied().fold(0.0, f64::max) / total } else { 0.0 },
            ranges: self.ranges.len(),
        }
    }

    /// What each node can do in this step beside the copies that it sends or receives.
    fn capacities(&self) -> Vec<f64> {
        let mut capacities = vec![self.settings.capacity; self.settings.nodes];
        for range in &self.ranges {
            if let Some((target, _)) = range.copy {
                for node in [range.leader(), target] {
                    capacities[node] *= 1.0 - self.settings.copy_cost;
                }
            }
        }
        capacities
    }
}
