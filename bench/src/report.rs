//! Results as text: a line for each measurement as it comes, and tables at the end.

use crate::contestants::{NAMES, PEERS, STORES};
use crate::goals::{Verdict, goals};
use crate::results::{Cell, Results, Source, Summary};
use crate::workloads::{Style, Workload, all};
use std::fmt::Write;

/// A line about one measurement.
pub fn progress(cell: &Cell, workload: &Workload) -> String {
    let rate = if matches!(workload.style, Style::Rows | Style::Alone) { cell.rows } else { cell.operations };
    format!(
        "  round {} {:<9} {:<20} {:>3} conn {:>10}/s  p50 {:>9}  p99 {:>9}  p99.9 {:>9}  cpu {:>7.1} us  others {:>3.0} %",
        cell.round,
        cell.contestant,
        cell.workload,
        cell.connections,
        count(rate),
        micros(cell.p50),
        micros(cell.p99),
        micros(cell.p999),
        cell.server_cpu,
        100.0 * cell.others
    )
}

/// Everything: where, who, workloads, figures, goals.
pub fn all_of(results: &Results) -> String {
    let mut text = String::new();
    let parts = [header, workloads, one_partition, stores, latencies, figures, goal_lines].map(|part| part(results));
    for part in parts.iter().filter(|part| !part.is_empty()) {
        text.push_str(part);
        text.push('\n');
    }
    for remark in &results.remarks {
        writeln!(text, "REMARK: {remark}").expect("a String takes everything");
    }
    text
}

fn header(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "{}, {} cores of {}, {} MiB, {}\n{} of {} s each, medians; in brackets the smallest and the largest\n",
        results.date,
        machine.cores,
        machine.cpu,
        count(machine.memory_mib as f64),
        machine.kernel,
        if results.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", results.rounds) },
        results.seconds,
    );
    if let Some(others) = Summary::of(results.cells.iter().map(|cell| 100.0 * cell.others)) {
        let warning = if others.median > 10.0 { ": THE RATES SAY LITTLE" } else { "" };
        writeln!(text, "meanwhile others used {:.0} % of the machine{warning}", others.median)
            .expect("a String takes everything");
    }
    for version in &results.contestants {
        writeln!(text, "  {:<9} {}", version.contestant, version.version).expect("a String takes everything");
    }
    text
}

/// What is counted of a workload.
pub fn source(workload: &Workload, connections: usize) -> Source<'static> {
    match workload.style {
        Style::Rows | Style::Alone => Source::Rows(workload.name, connections),
        Style::Operations | Style::Paced => Source::Operations(workload.name, connections),
    }
}

fn workloads(results: &Results) -> String {
    let mut rows = vec![["workload", "conn", "partita", "cpu us"].map(str::to_owned).to_vec()];
    rows[0].extend(PEERS[1..].iter().map(|name| format!("x {name}")));
    for workload in all().filter(|workload| workload.style != Style::Paced) {
        for connections in results.connections(workload.name) {
            let source = source(&workload, connections);
            let Some(own) = results.summary("partita", source) else { continue };
            let cells = results.cells_of("partita", workload.name).filter(|cell| cell.connections == connections);
            let cpu = Summary::of(cells.map(|cell| cell.server_cpu)).map_or(0.0, |cpu| cpu.median);
            let mut row = vec![workload.title.to_owned(), connections.to_string()];
            row.extend([format!("{}/s", count(own.median)), format!("{cpu:.1}")]);
            row.extend(PEERS[1..].iter().map(|name| compared(results, &workload, name, source)));
            rows.push(row);
        }
    }
    format!(
        "Partita a second, its processor time for an operation, and how many times as much as others it does\n\n{}",
        table(&rows)
    )
}

/// What is left of the rate when all rows are in one partition; nothing if that was not measured.
fn one_partition(results: &Results) -> String {
    let mut rows =
        vec![["one partition, of the rate in many", "conn", "partita", "azurite"].map(str::to_owned).to_vec()];
    for (one, many) in all().filter_map(|one| Some((one, one.in_many()?))) {
        for connections in results.connections(one.name) {
            let ratio = |name| results.ratio((name, source(&one, connections)), (name, source(&many, connections)));
            if let Some(own) = ratio("partita") {
                let azurite = ratio("azurite").map_or("-".to_owned(), spread);
                rows.push(vec![many.title.to_owned(), connections.to_string(), spread(own), azurite]);
            }
        }
    }
    match rows.len() {
        1 => String::new(),
        _ => format!("Everything in one partition\n\n{}", table(&rows)),
    }
}

/// How close nodes on PostgreSQL come to PostgreSQL, and what a node adds; nothing if that was not measured.
fn stores(results: &Results) -> String {
    let [one, two, three] = STORES;
    let pairs = [(one, "postgres"), (two, "postgres"), (three, "postgres"), (two, one), (three, one)];
    let mut rows = vec![["on PostgreSQL", "conn", one, "cpu us"].map(str::to_owned).to_vec()];
    rows[0].extend(pairs.map(|(who, whom)| format!("{who} x {whom}")));
    for workload in all().filter(|workload| workload.style != Style::Paced) {
        for connections in results.connections(workload.name) {
            let source = source(&workload, connections);
            let Some(own) = results.summary(one, source) else { continue };
            let cells = results.cells_of(one, workload.name).filter(|cell| cell.connections == connections);
            let cpu = Summary::of(cells.map(|cell| cell.server_cpu)).map_or(0.0, |cpu| cpu.median);
            let mut row = vec![workload.title.to_owned(), connections.to_string()];
            row.extend([format!("{}/s", count(own.median)), format!("{cpu:.1}")]);
            let ratio = |(who, whom)| results.ratio((who, source), (whom, source)).map_or("-".to_owned(), spread);
            row.extend(pairs.map(ratio));
            rows.push(row);
        }
    }
    match rows.len() {
        1 => String::new(),
        _ => format!("Nodes on PostgreSQL, with the database's processor time, and in proportion\n\n{}", table(&rows)),
    }
}

fn compared(results: &Results, workload: &Workload, name: &str, source: Source<'_>) -> String {
    let took_part = results.contestants.iter().any(|version| version.contestant == name);
    match results.ratio(("partita", source), (name, source)) {
        Some(ratio) => spread(ratio),
        None if took_part && name == "azurite" && workload.name.ends_with("-1m") => "cannot".to_owned(),
        None => "-".to_owned(),
    }
}

fn latencies(results: &Results) -> String {
    let head = ["point GET at half the maximum", "conn", "rate", "p50", "p99", "p99.9", "max"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for name in NAMES {
        for connections in results.connections("get-paced") {
            let cells = || results.cells_of(name, "get-paced").filter(|cell| cell.connections == connections);
            let median = |value: fn(&Cell) -> f64| Summary::of(cells().map(value)).map(|summary| summary.median);
            let Some(rate) = median(|cell| cell.operations) else { continue };
            let mut row = vec![name.to_owned(), connections.to_string(), format!("{}/s", count(rate))];
            let values: [fn(&Cell) -> f64; 4] = [|cell| cell.p50, |cell| cell.p99, |cell| cell.p999, |cell| cell.max];
            row.extend(values.into_iter().filter_map(median).map(micros));
            rows.push(row);
        }
    }
    format!("Latency from the intended time of sending\n\n{}", table(&rows))
}

fn figures(results: &Results) -> String {
    let mut names: Vec<&str> = results.figures.iter().map(|figure| figure.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut rows = vec![vec!["figure".to_owned()]];
    rows[0].extend(NAMES.map(str::to_owned));
    for name in names {
        let mut row = vec![name.rsplit_once(' ').map_or(name, |(name, _)| name).to_owned()];
        row.extend(NAMES.iter().map(|contestant| {
            results
                .summary(contestant, Source::Figure(name))
                .map_or("-".to_owned(), |summary| unit(name, summary.median))
        }));
        rows.push(row);
    }
    format!("Start, memory, disk\n\n{}", table(&rows))
}

/// A figure in its unit, which is the last word of its name.
fn unit(name: &str, value: f64) -> String {
    if name.ends_with("bytes") { format!("{:.1} MB", value / 1e6) } else { format!("{value:.1} ms") }
}

fn goal_lines(results: &Results) -> String {
    let mut rows = vec![["goal", "wanted", "measured", "ceiling", ""].map(str::to_owned).to_vec()];
    for goal in goals(results) {
        let verdict = match goal.verdict {
            Verdict::Reached => "reached",
            Verdict::Missed => "MISSED",
            Verdict::NotMeasured => "not measured",
        };
        let ceiling = goal.ceiling.unwrap_or_else(|| "-".to_owned());
        rows.push(vec![goal.title, goal.wanted, goal.measured, ceiling, verdict.to_owned()]);
    }
    format!("Goals\n\n{}", table(&rows))
}

/// Columns as wide as they must be; the first to the left, the others to the right.
fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = width(column).unwrap_or(0);
            match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            }
            .expect("a String takes everything");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// A ratio and its spread.
pub fn spread(ratio: Summary) -> String {
    let short = |value: f64| match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    let Summary { median, min, max } = ratio;
    if min == max { short(median) } else { format!("{} [{}-{}]", short(median), short(min), short(max)) }
}

/// A number with commas.
pub fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds in a unit that is easy to read.
pub fn micros(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2} s", value / 1e6),
        value if value >= 1e3 => format!("{:.2} ms", value / 1e3),
        value => format!("{value:.0} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::sample;

    #[test]
    fn numbers() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0.0, 999.0, 1000.0, 1_234_567.0].map(count).each_ref().map(String::as_str)
        );
        assert_eq!(micros(12.3), "12 us");
        assert_eq!(micros(1234.0), "1.23 ms");
        assert_eq!(micros(2_500_000.0), "2.50 s");
        assert_eq!(spread(Summary { median: 0.75, min: 0.7, max: 0.8 }), "0.75 [0.70-0.80]");
        assert_eq!(spread(Summary { median: 40.0, min: 40.0, max: 40.0 }), "40.0");
    }

    #[test]
    fn one_partition_is_held_against_many() {
        let mut results = sample();
        assert!(!all_of(&results).contains("Everything in one partition"));
        let half = |cell: &Cell| Cell { workload: "get-hot".into(), operations: cell.operations / 2.0, ..cell.clone() };
        let cells: Vec<Cell> = results.cells_of("partita", "get").map(half).collect();
        results.cells.extend(cells);
        let text = one_partition(&results);
        let line = text.lines().find(|line| line.starts_with("point GET, SharedKey")).unwrap();
        assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["16", "0.50", "-"]);
    }

    #[test]
    fn a_line_for_each_workload() {
        let text = all_of(&sample());
        let line = text.lines().find(|line| line.starts_with("point GET, SharedKey")).unwrap();
        let words: Vec<&str> = line.split_whitespace().skip(3).collect();
        assert_eq!(words, ["16", "80/s", "0.0", "0.75", "[0.70-0.80]", "-", "-", "-"]);
        assert!(text.contains("MISSED"), "80 requests a second are not enough");
    }
}
