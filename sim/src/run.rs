//! A run: half an hour of writes under one design and one rule, and what reading costs afterwards.

use crate::cluster::{Cluster, Counts, Rule, Settings, Step};
use crate::key::{Design, Event, Key, Question, Shape};
use crate::random::{Rng, Zipf};

/// Simulated writes of a step, so many for each node.
pub const WRITES: usize = 40 * NODES;
/// Nodes of the cluster.
pub const NODES: usize = 16;
/// Steps of a run.
pub const STEPS: usize = 180;
/// Seconds of a step.
pub const STEP: f64 = 10.0;
/// Operations a second that a node does. The results are shares and hardly depend on it.
pub const CAPACITY: f64 = 10_000.0;
/// Tenants, distributed after Zipf.
pub const TENANTS: u64 = 1_000;
/// An ordinary tenant, of which some questions are asked.
pub const TENANT: u64 = 9;
/// Steps of a minute.
const MINUTE: usize = 6;
/// The end of a run that averages are taken of.
pub const LAST: usize = 60;
const SEED: u64 = 7;

/// The designs that are compared.
pub const DESIGNS: [Design; 8] = [
    Design::Append,
    Design::LogTail,
    Design::Hashed(4),
    Design::Hashed(16),
    Design::Hashed(64),
    Design::TenantByTime,
    Design::TenantById,
    Design::Random,
];

/// The rules that are compared.
pub const RULES: [Rule; 3] = [
    Rule { name: "between partitions", inside_partitions: false, by_load: true },
    Rule { name: "by size", inside_partitions: true, by_load: false },
    Rule { name: "by size and load", inside_partitions: true, by_load: true },
];

/// The cluster of all runs: as much is asked of it as its nodes can do together, of entities of 1 KB.
pub fn settings() -> Settings {
    let weight = NODES as f64 * CAPACITY / WRITES as f64;
    Settings {
        nodes: NODES,
        capacity: CAPACITY,
        step: STEP,
        weight,
        bytes: weight * STEP * 1024.0,
        split_bytes: 512.0 * 1024.0 * 1024.0,
        split_load: 2_500.0,
        copy_rate: 64.0 * 1024.0 * 1024.0,
        copy_cost: 0.1,
        transfer_pause: 0.05,
    }
}

/// What a question must look at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// Stretches of keys, each a query.
    pub queries: usize,
    /// Ranges that hold some of them.
    pub ranges: usize,
    /// Rows that are read for each that is wanted.
    pub reads: f64,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Each step.
    pub steps: Vec<Step>,
    /// What was done to ranges.
    pub counts: Counts,
    /// The part of its writes that the largest tenant could make in the end.
    pub largest_tenant: f64,
    /// The last minute of everything.
    pub everything: Asked,
    /// The last minute of one tenant.
    pub tenant: Asked,
}

impl Outcome {
    /// The mean of something over the last steps.
    pub fn last(&self, value: impl Fn(&Step) -> f64) -> f64 {
        let last = &self.steps[self.steps.len().saturating_sub(LAST)..];
        last.iter().map(value).sum::<f64>() / last.len() as f64
    }
}

/// Runs a design.
pub fn run(design: Design, rule: Rule) -> Outcome {
    let shape = Shape { tenants: TENANTS, minute: (MINUTE * WRITES) as u64 };
    let mut events = Events::new();
    let mut cluster = Cluster::new(settings(), rule);
    let since = ((STEPS - MINUTE) * WRITES) as u64;
    let (mut asked, mut largest, mut wanted, mut wanted_of_tenant) = (0.0, 0.0, 0.0, 0.0);
    let mut steps = Vec::with_capacity(STEPS);
    for number in 0..STEPS {
        let events = events.step();
        let keys: Vec<Key> = events.iter().map(|event| design.key(event, &shape)).collect();
        steps.push(cluster.step(&keys, |place, part| {
            let event = &events[place];
            if event.tenant == 0 && number >= STEPS - LAST {
                asked += 1.0;
                largest += part;
            }
            if event.time >= since {
                wanted += part;
                wanted_of_tenant += if event.tenant == TENANT { part } else { 0.0 };
            }
        }));
    }
    let look = |question, wanted| look(&cluster, &design.stretches(question, &shape), wanted);
    Outcome {
        steps,
        largest_tenant: largest / asked,
        everything: look(Question::Everything { since }, wanted),
        tenant: look(Question::Tenant { tenant: TENANT, since }, wanted_of_tenant),
        counts: cluster.counts,
    }
}

/// Counts what is in stretches of keys.
fn look(cluster: &Cluster, stretches: &[(Key, Key)], wanted: f64) -> Asked {
    let mut touched = vec![false; cluster.ranges.len()];
    let mut rows = 0;
    for &(from, to) in stretches {
        let held = cluster.range_of(from)..cluster.ranges.partition_point(|range| range.start < to);
        touched[held.clone()].fill(true);
        let stored = cluster.ranges[held].iter().flat_map(|range| &range.rows);
        rows += stored.filter(|key| (from..to).contains(key)).count();
    }
    Asked {
        queries: stretches.len(),
        ranges: touched.into_iter().filter(|touched| *touched).count(),
        reads: rows as f64 / wanted,
    }
}

/// What happens. Tenants, hashes and ids are drawn evenly, one of each share, so that little is left to chance.
struct Events {
    rng: Rng,
    zipf: Zipf,
    time: u64,
}

impl Events {
    fn new() -> Events {
        Events { rng: Rng::new(SEED), zipf: Zipf::new(TENANTS), time: 0 }
    }

    fn step(&mut self) -> Vec<Event> {
        /// They have no factor in common with the number of writes, so every share comes up once, and not together.
        const STRIDES: [usize; 3] = [97, 331, 523];
        (0..WRITES)
            .map(|number| {
                let place = |stride| ((number * stride % WRITES) as f64 + self.rng.share()) / WRITES as f64;
                let [tenant, hash, id] = STRIDES.map(place);
                let [hash, id] = [(hash, 32), (id, 63)].map(|(place, bits)| (place * 2f64.powi(bits)) as u64);
                let event = Event { time: self.time, tenant: self.zipf.rank(tenant), hash, id };
                self.time += 1;
                event
            })
            .collect()
    }
}
