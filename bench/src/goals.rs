//! The goals that Partita has set itself, held against results.

use crate::contestants::STORES;
use crate::report::{count, micros, spread};
use crate::results::{Results, Source, Summary};

/// A line of the list of goals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// What it is about.
    pub title: String,
    /// The bound.
    pub wanted: String,
    /// What was found.
    pub measured: String,
    /// What the ceiling came to, a server that does next to nothing, where it takes part.
    pub ceiling: Option<String>,
    /// Whether that is enough.
    pub verdict: Verdict,
}

/// Whether a goal is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Reached,
    /// It is not.
    Missed,
    /// Nobody knows.
    NotMeasured,
}

/// Does of each request what a server on this machine cannot do without.
const CEILING: &str = "hyper";

/// What is no slower may be this much slower, since nothing is measured more exactly.
const NO_SLOWER: f64 = 0.95;

/// All goals.
pub fn goals(results: &Results) -> Vec<Goal> {
    let mut list = List { results, goals: Vec::new() };
    let get = Source::Operations("get", 16);
    list.rate("point GET, SharedKey, 16 connections", get, 110_000.0);
    list.times("", get, "hyper", 0.70);
    list.times("", get, "postgres", 1.0);
    list.times("", get, "azurite", 40.0);
    for (connections, rate) in [(16, 35_000.0), (64, 55_000.0)] {
        let insert = Source::Operations("insert", connections);
        list.rate(&format!("durable insert, {connections} connections"), insert, rate);
        list.times("", insert, "redis", 1.0);
        list.times("", insert, "postgres", 1.8);
        list.times("", insert, "azurite", 15.0);
    }
    let hot = Source::Operations("insert-hot", 16);
    list.rate("durable insert, one partition, 16 connections", hot, 35_000.0);
    list.own("", hot, Source::Operations("insert", 16), "of inserts into many", NO_SLOWER);
    let transaction = Source::Rows("transaction", 16);
    list.rate("rows in transactions of 100", transaction, 200_000.0);
    list.times("", transaction, "azurite", 18.0);
    let range = Source::Operations("range", 16);
    list.rate("query of 100 rows", range, 15_000.0);
    list.times("", range, "azurite", 30.0);
    let filter = Source::Rows("filter-100k", 1);
    list.rate("rows filtered of 100,000, no key", filter, 5_000_000.0);
    list.times("", filter, "azurite", NO_SLOWER);
    list.own("rows filtered of 1,000,000: linear", Source::Rows("filter-1m", 1), filter, "of the rate of 100,000", 0.8);
    let (many, few, title) = match results.quick {
        true => ("get-100k", "get", "point GET of 100,000"),
        false => ("get-1m", "get-beside-1m", "point GET of 1,000,000"),
    };
    let [many, few] = [many, few].map(|name| Source::Operations(name, 16));
    list.own(title, many, few, "of the rate of 10,000", 0.9);
    let start = Source::Figure("start ms");
    list.at_most("start to first answer", start, 30.0, |value| format!("{value:.1} ms"));
    let ratio = list.results.ratio(("azurite", start), ("partita", start));
    list.check("", "30 times as fast as azurite".into(), ratio.map(|ratio| (ratio.median >= 30.0, spread(ratio))));
    let (restart, resident, size) = match results.quick {
        true => ("restart 100k ms", "resident 100k bytes", "100,000"),
        false => ("restart 1m ms", "resident 1m bytes", "1,000,000"),
    };
    list.at_most(&format!("restart with {size} rows"), Source::Figure(restart), 150.0, |value| {
        format!("{value:.1} ms")
    });
    let megabytes = |value: f64| format!("{:.1} MB", value / 1e6);
    list.at_most("resident memory, idle", Source::Figure("resident idle bytes"), 20e6, megabytes);
    list.at_most(&format!("resident memory, {size} rows, after load"), Source::Figure(resident), 256e6, megabytes);
    list.at_most("p99 of point GET at half the maximum", Source::P99("get-paced", 16), 1000.0, micros);
    list.store("point GET, a node on PostgreSQL, 16 connections", get, 0.6);
    list.store("durable insert, a node on PostgreSQL, 16 connections", Source::Operations("insert", 16), 0.8);
    list.at_most("binary, stripped", Source::Figure("binary bytes"), 25e6, megabytes);
    list.goals
}

struct List<'a> {
    results: &'a Results,
    goals: Vec<Goal>,
}

impl List<'_> {
    fn check(&mut self, title: &str, wanted: String, found: Option<(bool, String)>) {
        self.check_below(title, wanted, found, None);
    }

    fn check_below(&mut self, title: &str, wanted: String, found: Option<(bool, String)>, ceiling: Option<String>) {
        let (verdict, measured) = match found {
            Some((true, measured)) => (Verdict::Reached, measured),
            Some((false, measured)) => (Verdict::Missed, measured),
            None => (Verdict::NotMeasured, "-".to_owned()),
        };
        self.goals.push(Goal { title: title.to_owned(), wanted, measured, ceiling, verdict });
    }

    fn summary(&self, source: Source<'_>) -> Option<Summary> {
        self.results.summary("partita", source)
    }

    /// At least so many a second.
    fn rate(&mut self, title: &str, source: Source<'_>, wanted: f64) {
        let words = |rate: Summary| format!("{}/s", count(rate.median));
        let found = self.summary(source).map(|rate| (rate.median >= wanted, words(rate)));
        let ceiling = self.results.summary(CEILING, source).map(words);
        self.check_below(title, format!("{}/s", count(wanted)), found, ceiling);
    }

    /// At least so many times as much as another.
    fn times(&mut self, title: &str, source: Source<'_>, other: &str, wanted: f64) {
        let ratio = |who| self.results.ratio((who, source), (other, source));
        let found = ratio("partita").map(|ratio| (ratio.median >= wanted, spread(ratio)));
        let ceiling = ratio(CEILING).filter(|_| other != CEILING).map(spread);
        self.check_below(title, format!("{wanted} x {other}"), found, ceiling);
    }

    /// At least so much of what PostgreSQL does without us.
    fn store(&mut self, title: &str, source: Source<'_>, wanted: f64) {
        let ratio = self.results.ratio((STORES[0], source), ("postgres", source));
        self.check(title, format!("{wanted} x postgres"), ratio.map(|ratio| (ratio.median >= wanted, spread(ratio))));
    }

    /// At least so many times as much as Partita itself does elsewhere.
    fn own(&mut self, title: &str, source: Source<'_>, other: Source<'_>, words: &str, wanted: f64) {
        let ratio = self.results.ratio(("partita", source), ("partita", other));
        self.check(title, format!("{wanted} {words}"), ratio.map(|ratio| (ratio.median >= wanted, spread(ratio))));
    }

    fn at_most(&mut self, title: &str, source: Source<'_>, wanted: f64, unit: fn(f64) -> String) {
        let found = self.summary(source).map(|value| (value.median <= wanted, unit(value.median)));
        self.check(title, format!("at most {}", unit(wanted)), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::sample;

    #[test]
    fn verdicts() {
        let goals = goals(&sample());
        let verdict = |wanted: &str| goals.iter().find(|goal| goal.wanted == wanted).unwrap().verdict;
        assert_eq!(verdict("110,000/s"), Verdict::Missed);
        assert_eq!(verdict("0.7 x hyper"), Verdict::Reached);
        assert_eq!(verdict("40 x azurite"), Verdict::NotMeasured);
        assert_eq!(verdict("at most 30.0 ms"), Verdict::NotMeasured);
    }
}
