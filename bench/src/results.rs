//! Everything that was measured, as it is kept in `results.json`, and how it is put together.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// All of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// When it began.
    pub date: String,
    /// Whether it was the quick one.
    pub quick: bool,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// How often everything was measured.
    pub rounds: usize,
    /// Threads of the load generator.
    pub load_threads: usize,
    /// Where.
    pub machine: Machine,
    /// Who took part.
    pub contestants: Vec<Version>,
    /// What went wrong or was left out, in sentences.
    pub remarks: Vec<String>,
    /// Workloads.
    pub cells: Vec<Cell>,
    /// Everything else.
    pub figures: Vec<Figure>,
}

/// Who took part, and in which version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Version {
    /// Its name.
    pub contestant: String,
    /// What it says of itself.
    pub version: String,
}

/// One contestant doing one workload in one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Counted from 1.
    pub round: usize,
    /// Who.
    pub contestant: String,
    /// What.
    pub workload: String,
    /// On how many connections.
    pub connections: usize,
    /// Operations a second.
    pub operations: f64,
    /// Rows read, written or looked at a second.
    pub rows: f64,
    /// Latency in microseconds that half of the operations did not exceed.
    pub p50: f64,
    /// The same for 99 %.
    pub p99: f64,
    /// The same for 99.9 %.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// Processor time of the server for an operation, in microseconds.
    pub server_cpu: f64,
    /// The share of the machine that others used meanwhile.
    pub others: f64,
}

/// A figure that is no workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Counted from 1.
    pub round: usize,
    /// Whose.
    pub contestant: String,
    /// Which.
    pub name: String,
    /// Milliseconds or bytes, as the name says.
    pub value: f64,
}

/// Median and spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Summary {
    /// Of some values; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median =
            if values.len().is_multiple_of(2) { (values[half - 1] + values[half]) / 2.0 } else { values[half] };
        Some(Summary { median, min, max })
    }
}

/// Where a value comes from: a workload on so many connections, or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// Operations a second.
    Operations(&'a str, usize),
    /// Rows a second.
    Rows(&'a str, usize),
    /// Microseconds that 99 % of the operations did not exceed.
    P99(&'a str, usize),
    /// A figure.
    Figure(&'a str),
}

impl Results {
    /// The values of somebody, each with its round.
    fn values<'a>(&'a self, contestant: &'a str, source: Source<'a>) -> Box<dyn Iterator<Item = (usize, f64)> + 'a> {
        let cells = move |workload: &'a str, connections: usize, value: fn(&Cell) -> f64| {
            let wanted = move |cell: &&Cell| {
                cell.contestant == contestant && cell.workload == workload && cell.connections == connections
            };
            Box::new(self.cells.iter().filter(wanted).map(move |cell| (cell.round, value(cell))))
        };
        match source {
            Source::Operations(workload, connections) => cells(workload, connections, |cell| cell.operations),
            Source::Rows(workload, connections) => cells(workload, connections, |cell| cell.rows),
            Source::P99(workload, connections) => cells(workload, connections, |cell| cell.p99),
            Source::Figure(name) => {
                let wanted = move |figure: &&Figure| figure.contestant == contestant && figure.name == name;
                Box::new(self.figures.iter().filter(wanted).map(|figure| (figure.round, figure.value)))
            }
        }
    }

    /// The value over all rounds.
    pub fn summary(&self, contestant: &str, source: Source<'_>) -> Option<Summary> {
        Summary::of(self.values(contestant, source).map(|(_, value)| value))
    }

    /// How many times as much one has as another, compared only within rounds.
    pub fn ratio(&self, one: (&str, Source<'_>), other: (&str, Source<'_>)) -> Option<Summary> {
        let of_round = |(name, source): (&str, Source<'_>), round| {
            Summary::of(self.values(name, source).filter(|(of, _)| *of == round).map(|(_, value)| value))
        };
        Summary::of((1..=self.rounds).filter_map(|round| {
            let (one, other) = (of_round(one, round)?, of_round(other, round)?);
            (other.median > 0.0).then_some(one.median / other.median)
        }))
    }

    /// The cells of somebody at a workload.
    pub fn cells_of<'a>(&'a self, contestant: &'a str, workload: &'a str) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.contestant == contestant && cell.workload == workload)
    }

    /// On how many connections something was measured, in order.
    pub fn connections(&self, workload: &str) -> Vec<usize> {
        let mut connections: Vec<usize> =
            self.cells.iter().filter(|cell| cell.workload == workload).map(|cell| cell.connections).collect();
        connections.sort_unstable();
        connections.dedup();
        connections
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Rates of two contestants in three rounds.
    pub(crate) fn sample() -> Results {
        let mut results = Results { rounds: 3, ..Results::default() };
        for (round, partita, hyper) in [(1, 80.0, 100.0), (2, 30.0, 40.0), (3, 140.0, 200.0)] {
            for (contestant, operations) in [("partita", partita), ("hyper", hyper)] {
                results.cells.push(Cell {
                    round,
                    contestant: contestant.into(),
                    workload: "get".into(),
                    connections: 16,
                    operations,
                    rows: operations,
                    p50: 1e6 / operations,
                    p99: 3e6 / operations,
                    p999: 9e6 / operations,
                    ..Cell::default()
                });
            }
        }
        results
    }

    #[test]
    fn medians() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([3.0, 1.0, 2.0]), Some(Summary { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Summary::of([4.0, 1.0]), Some(Summary { median: 2.5, min: 1.0, max: 4.0 }));
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let results = sample();
        let get = Source::Operations("get", 16);
        assert_eq!(results.summary("partita", get).unwrap().median, 80.0);
        let ratio = results.ratio(("partita", get), ("hyper", get)).unwrap();
        assert_eq!(ratio, Summary { median: 0.75, min: 0.7, max: 0.8 });
        assert_eq!(results.ratio(("partita", get), ("redis", get)), None);
        assert_eq!(results.ratio(("partita", get), ("hyper", Source::Operations("get", 64))), None);
    }

    #[test]
    fn a_round_that_one_missed_does_not_count() {
        let mut results = sample();
        results.cells.retain(|cell| cell.contestant != "hyper" || cell.round == 2);
        let get = Source::Operations("get", 16);
        assert_eq!(results.ratio(("partita", get), ("hyper", get)).unwrap().min, 0.75);
    }

    #[test]
    fn figures_have_no_connections() {
        let mut results = sample();
        for (contestant, value) in [("partita", 10.0), ("azurite", 500.0)] {
            results.figures.push(Figure { round: 1, contestant: contestant.into(), name: "start".into(), value });
        }
        let start = Source::Figure("start");
        assert_eq!(results.ratio(("azurite", start), ("partita", start)).unwrap().median, 50.0);
    }
}
