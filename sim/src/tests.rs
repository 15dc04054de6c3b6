//! What must hold whatever the designs do.

use crate::cluster::{Cluster, Rule, Settings};
use crate::key::{Design, Event, Key, Shape};
use crate::random::mix;
use crate::run::{CAPACITY, NODES, RULES, WRITES, run, settings};

const ALL: [Design; 6] =
    [Design::Append, Design::LogTail, Design::Hashed(4), Design::TenantByTime, Design::TenantById, Design::Random];
const SHAPE: Shape = Shape { tenants: 10, minute: 100 };

fn writes(design: Design, step: usize) -> Vec<Key> {
    let events = (step * WRITES..(step + 1) * WRITES).map(|time| {
        let time = time as u64;
        Event { time, tenant: time % SHAPE.tenants, hash: mix(time) >> 32, id: mix(time) >> 1 }
    });
    events.map(|event| design.key(&event, &SHAPE)).collect()
}

fn check_ranges(cluster: &Cluster) {
    assert_eq!(cluster.ranges[0].start, Key::default());
    for (number, range) in cluster.ranges.iter().enumerate() {
        let end = cluster.ranges.get(number + 1).map(|next| next.start);
        assert!(end.is_none_or(|end| range.start < end));
        assert!(range.rows.iter().all(|key| *key >= range.start && end.is_none_or(|end| *key < end)));
        assert!(cluster.rule.inside_partitions || range.start.row == 0, "{:?}", range.start);
        let [one, two, three] = range.nodes;
        assert!(one != two && two != three && one != three && range.nodes.iter().all(|node| *node < NODES));
    }
}

#[test]
fn ranges_are_the_whole_key_space_and_hold_what_was_accepted() {
    for rule in RULES {
        for design in ALL {
            let mut cluster = Cluster::new(settings(), rule);
            let mut accepted = 0.0;
            for step in 0..40 {
                let writes = writes(design, step);
                let mut asked = 0;
                cluster.step(&writes, |_, part| {
                    asked += 1;
                    accepted += part;
                });
                assert_eq!(asked, WRITES);
                check_ranges(&cluster);
            }
            // Each range keeps the part of a write that is not a whole one yet.
            let stored: usize = cluster.ranges.iter().map(|range| range.rows.len()).sum();
            let ever = cluster.ranges.len() + cluster.counts.merges;
            assert!(stored as f64 <= accepted + 1e-6 && stored as f64 > accepted - ever as f64, "{design:?} {rule:?}");
        }
    }
}

#[test]
fn no_load_is_lost_when_ranges_are_split_merged_and_moved() {
    for design in ALL {
        let mut cluster = Cluster::new(settings(), RULES[2]);
        let mut expected = 0.0;
        for step in 0..40 {
            cluster.step(&writes(design, step), |_, _| {});
            expected += 0.3 * (NODES as f64 * CAPACITY - expected);
            let load: f64 = cluster.ranges.iter().map(|range| range.load).sum();
            assert!((load / expected - 1.0).abs() < 1e-9, "{design:?}");
        }
    }
}

#[test]
fn one_stream_is_bound_by_one_node() {
    for rule in RULES {
        for design in [Design::Append, Design::LogTail] {
            let outcome = run(design, rule);
            assert!(outcome.steps.iter().all(|step| step.achieved <= 1.0 / NODES as f64 + 1e-9));
            assert_eq!(outcome.last(|step| step.hottest), 1.0);
        }
    }
}

#[test]
fn hashed_prefixes_scale_up_to_their_number() {
    for buckets in [1, 2, 4, 8, 16] {
        let achieved = run(Design::Hashed(buckets), RULES[2]).last(|step| step.achieved);
        let bound = buckets as f64 / NODES as f64;
        assert!(achieved <= bound + 1e-9 && achieved > 0.95 * bound, "{buckets}: {achieved}");
    }
}

#[test]
fn a_large_tenant_is_split_only_where_ranges_may_end_inside_a_partition() {
    let largest = |rule: Rule| run(Design::TenantById, rule).largest_tenant;
    let [between, _, inside] = RULES.map(largest);
    assert!(between < 0.6 && inside > 0.9, "{between} {inside}");
}

#[test]
fn what_has_become_quiet_is_merged() {
    // Rows are small, so that it is the load that splits.
    let mut cluster = Cluster::new(Settings { bytes: 1.0, ..settings() }, RULES[2]);
    for step in 0..10 {
        cluster.step(&writes(Design::Random, step), |_, _| {});
    }
    let busy = cluster.ranges.len();
    for _ in 0..100 {
        cluster.step(&[], |_, _| {});
    }
    assert!(busy > cluster.ranges.len() && cluster.counts.merges > 0, "{busy} {}", cluster.ranges.len());
    check_ranges(&cluster);
}
