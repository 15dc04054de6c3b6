//! Who leads what: load goes from hot nodes to cold ones.
//!
//! To hand the lead to a node that has a copy costs a moment. If no such node is cold enough, a copy is made on the coldest
//! one, which takes both of them some of their capacity until it is done, and then leads. A range is moved only if the
//! hotter of the two is cooler afterwards, so a range that is hot by itself stays where it is.

use crate::cluster::{Cluster, REPLICAS, Range};

/// A node is hot when it has so many times the load of the mean.
const HOT: f64 = 1.02;
/// What a move must take off the hotter node, as a share of a node's capacity.
const GAIN_MIN: f64 = 0.02;

/// A move that would help.
struct Move {
    range: usize,
    target: usize,
    gain: f64,
}

impl Cluster {
    pub(crate) fn balance(&mut self) {
        self.finish_copies();
        let mut loads = vec![0.0; self.settings.nodes];
        for range in &self.ranges {
            // A copy under way will lead.
            loads[range.copy.map_or(range.leader(), |(target, _)| target)] += range.load;
        }
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let mut hot: Vec<usize> = (0..loads.len()).filter(|&node| loads[node] > HOT * mean).collect();
        hot.sort_by(|&one, &other| loads[other].total_cmp(&loads[one]));
        let mut is_copying = vec![false; loads.len()];
        for range in &self.ranges {
            if let Some((target, _)) = range.copy {
                is_copying[target] = true;
                is_copying[range.leader()] = true;
            }
        }
        let gain_min = GAIN_MIN * self.settings.capacity;
        let is_worth_it = |best: &Move| best.gain >= gain_min;
        for node in hot {
            let has_copy = |range: &Range, target: usize| range.nodes[1..].contains(&target);
            if let Some(best) = self.best(node, &loads, 0..loads.len(), has_copy).filter(is_worth_it) {
                let range = &mut self.ranges[best.range];
                lead(range, best.target);
                self.counts.transfers += 1;
                loads[node] -= range.load;
                loads[best.target] += range.load;
                continue;
            }
            let coldest =
                (0..loads.len()).filter(|&other| !is_copying[other]).min_by(|&a, &b| loads[a].total_cmp(&loads[b]));
            let Some(coldest) = coldest.filter(|_| !is_copying[node]) else { continue };
            let has_none = |range: &Range, target: usize| !range.nodes.contains(&target);
            if let Some(best) = self.best(node, &loads, coldest..coldest + 1, has_none).filter(is_worth_it) {
                let range = &mut self.ranges[best.range];
                let seconds = range.rows.len() as f64 * self.settings.bytes / self.settings.copy_rate;
                range.copy = Some((best.target, (seconds / self.settings.step).ceil().max(1.0) as u32));
                self.counts.moves += 1;
                (is_copying[node], is_copying[best.target]) = (true, true);
                loads[node] -= range.load;
                loads[best.target] += range.load;
            }
        }
    }

    /// The range of a node that does most good on one of the nodes it may go to.
    fn best(
        &self,
        node: usize,
        loads: &[f64],
        targets: std::ops::Range<usize>,
        may_go: impl Fn(&Range, usize) -> bool,
    ) -> Option<Move> {
        let ranges = self.ranges.iter().enumerate();
        let movable = ranges.filter(|(_, range)| range.leader() == node && range.copy.is_none() && !range.is_paused);
        let may_go = &may_go;
        let moves = movable.flat_map(|(place, range)| {
            targets.clone().filter(move |&target| may_go(range, target)).map(move |target| {
                let after = (loads[node] - range.load).max(loads[target] + range.load);
                Move { range: place, target, gain: loads[node].max(loads[target]) - after }
            })
        });
        moves.max_by(|one, other| one.gain.total_cmp(&other.gain))
    }

    fn finish_copies(&mut self) {
        for range in &mut self.ranges {
            match range.copy {
                Some((target, 1)) => {
                    range.nodes[REPLICAS - 1] = target;
                    range.copy = None;
                    lead(range, target);
                }
                Some((target, steps)) => range.copy = Some((target, steps - 1)),
                None => {}
            }
        }
    }
}

/// Makes a node that has a copy lead.
fn lead(range: &mut Range, node: usize) {
    let place = range.nodes.iter().position(|&held| held == node).expect("the node has a copy");
    range.nodes.swap(0, place);
    range.is_paused = true;
}
