//! The three pictures: how much, how fast, and what becomes of it with more rows.

use crate::Result;
use crate::contestants::PEERS;
use crate::report::{count, micros, source};
use crate::results::{Cell, Results, Source, Summary};
use crate::workloads::{Style, Workload, all};
use partita_svg::{Anchor, GRID, INK, LogScale, PALE, Picture};
use std::path::Path;

const COLOURS: [&str; 5] = ["#0969da", "#8c959f", "#cf222e", "#1a7f37", "#bf8700"];
const WIDTH: f64 = 860.0;
/// Where the names of rows end and the scale begins.
const LEFT: f64 = 210.0;
/// Where the scale ends; behind it is room for numbers.
const RIGHT: f64 = 770.0;

/// Draws all pictures into a folder.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, svg) in
        [("throughput.svg", throughput(results)), ("latency.svg", latency(results)), ("size.svg", size(results))]
    {
        std::fs::write(folder.join(name), svg)?;
    }
    Ok(())
}

/// Where and when, below a title.
fn setting(results: &Results) -> String {
    let machine = &results.machine;
    let rounds =
        if results.rounds == 1 { "one round".to_owned() } else { format!("median of {} rounds", results.rounds) };
    format!("{} cores of {} shared by server and load, {rounds}, {}", machine.cores, machine.cpu, &results.date)
}

fn contestants(results: &Results) -> Vec<(&'static str, &'static str)> {
    let took_part = |name: &str| results.cells.iter().any(|cell| cell.contestant == name);
    PEERS.into_iter().zip(COLOURS).filter(|(name, _)| took_part(name)).collect()
}

/// The connections that most is known about.
fn usual_connections(results: &Results) -> usize {
    let all = results.connections("get");
    if all.contains(&16) { 16 } else { all.last().copied().unwrap_or(16) }
}

fn throughput(results: &Results) -> String {
    let usual = usual_connections(results);
    let names = contestants(results);
    let connections = |workload: &Workload| if workload.style == Style::Alone { 1 } else { usual };
    let summary = |workload: &Workload, name: &str| results.summary(name, source(workload, connections(workload)));
    let measured = |workload: &Workload| names.iter().any(|(name, _)| summary(workload, name).is_some());
    let workloads: Vec<Workload> =
        all().filter(|workload| workload.style != Style::Paced && measured(workload)).collect();
    let rows = |workload: &Workload| names.iter().filter(|(name, _)| summary(workload, name).is_some()).count() as f64;
    let height = 118.0 + workloads.iter().map(|workload| 14.0 * rows(workload) + 10.0).sum::<f64>();
    let title = format!("Operations a second on {usual} connections (each step of the scale is ten times as much)");
    let mut picture = Picture::new(WIDTH, height, &title, &setting(results));
    picture.legend(20.0, 72.0, &names);
    let values = workloads.iter().flat_map(|workload| names.iter().filter_map(|(name, _)| summary(workload, name)));
    let scale = LogScale::new(values.flat_map(|value| [value.median, value.max]), LEFT, RIGHT);
    vertical_grid(&mut picture, scale, 88.0, height - 28.0, short);
    let mut y = 94.0;
    for workload in &workloads {
        let middle = y + 7.0 * rows(workload);
        picture.text(LEFT - 8.0, middle + 4.0, 12.0, INK, Anchor::End, workload.title);
        for (name, colour) in &names {
            let Some(value) = summary(workload, name) else { continue };
            let end = scale.place(value.median);
            picture.bar(LEFT, y, (end - LEFT).max(1.0), 11.0, colour);
            if value.max > value.min {
                picture.line((scale.place(value.min), y + 5.5), (scale.place(value.max), y + 5.5), 1.2, INK);
            }
            let x = end.max(scale.place(value.max)) + 5.0;
            picture.text(x, y + 9.5, 10.5, PALE, Anchor::Start, &count(value.median));
            y += 14.0;
        }
        y += 10.0;
    }
    picture.finish()
}

fn latency(results: &Results) -> String {
    let usual = usual_connections(results);
    let names = contestants(results);
    let percentiles = |name: &str, workload: &str, connections: usize| {
        let cells = || results.cells_of(name, workload).filter(move |cell| cell.connections == connections);
        let median = |value: fn(&Cell) -> f64| Some(Summary::of(cells().map(value))?.median);
        Some([median(|cell| cell.p50)?, median(|cell| cell.p99)?, median(|cell| cell.p999)?])
    };
    let mut lines: Vec<(String, &str, [f64; 3])> = Vec::new();
    for (name, colour) in &names {
        if let Some(values) = percentiles(name, "get-paced", usual) {
            lines.push(((*name).to_owned(), colour, values));
        }
    }
    let paced = lines.len();
    for workload in all().filter(|workload| workload.style != Style::Paced) {
        let connections = if workload.style == Style::Alone { 1 } else { usual };
        if let Some(values) = percentiles("partita", workload.name, connections) {
            lines.push((workload.title.to_owned(), COLOURS[0], values));
        }
    }
    let height = 180.0 + 22.0 * lines.len() as f64;
    let mut picture = Picture::new(WIDTH, height, "Latency: median (large dot), 99 % and 99.9 %", &setting(results));
    let scale = LogScale::new(lines.iter().flat_map(|(_, _, values)| *values), LEFT, RIGHT);
    vertical_grid(&mut picture, scale, 66.0, height - 28.0, short_time);
    let mut y = 84.0;
    for (number, (title, colour, values)) in lines.iter().enumerate() {
        if number == 0 || number == paced {
            let words = if number < paced {
                format!("Point GET at half the maximum of each, {usual} connections, from the intended time of sending")
            } else {
                format!("Partita as fast as {usual} connections go")
            };
            picture.text(20.0, y + 4.0, 12.5, PALE, Anchor::Start, &words);
            y += 24.0;
        }
        let [p50, p99, p999] = values.map(|value| scale.place(value));
        picture.text(LEFT - 8.0, y + 4.0, 12.0, INK, Anchor::End, title);
        picture.line((p50, y), (p999, y), 2.0, colour);
        picture.dot(p50, y, 5.0, colour);
        picture.dot(p99, y, 4.0, colour);
        picture.dot(p999, y, 3.0, colour);
        picture.text(p999 + 8.0, y + 4.0, 10.5, PALE, Anchor::Start, &format!("p99 {}", micros(values[1])));
        y += 22.0;
    }
    picture.finish()
}

fn size(results: &Results) -> String {
    const SIZES: [(f64, &str, &str); 3] =
        [(1e4, "get", "filter"), (1e5, "get-100k", "filter-100k"), (1e6, "get-1m", "filter-1m")];
    let usual = usual_connections(results);
    let height = 380.0;
    let mut picture = Picture::new(WIDTH, height, "Cost by number of rows", &setting(results));
    let names = contestants(results);
    picture.legend(20.0, 72.0, &names);
    let microseconds = |name: &str, workload: &str, connections: usize| {
        let rate = results.summary(name, Source::Operations(workload, connections))?;
        (rate.median > 0.0).then_some(1e6 / rate.median)
    };
    let get = |name: &str, size: usize| microseconds(name, SIZES[size].1, usual);
    let filter = |name: &str, size: usize| microseconds(name, SIZES[size].2, 1);
    type Cost<'a> = &'a dyn Fn(&str, usize) -> Option<f64>;
    let get_title = format!("Time for a point GET, {usual} connections");
    let panels: [(f64, &str, Cost<'_>); 2] =
        [(75.0, &get_title, &get), (480.0, "Time for a filter that is no key, 10 hits", &filter)];
    for (left, title, cost) in panels {
        let (top, bottom, right) = (118.0, height - 50.0, left + 310.0);
        picture.text(left, 100.0, 12.5, INK, Anchor::Start, title);
        let x = LogScale::new([1e4, 1e6], left, right);
        let points = |name: &'static str| (0..3).filter_map(move |size| Some((SIZES[size].0, cost(name, size)?)));
        let y = LogScale::new(names.iter().flat_map(|(name, _)| points(name).map(|(_, cost)| cost)), bottom, top);
        for tick in y.ticks() {
            picture.line((left, y.place(tick)), (right, y.place(tick)), 1.0, GRID);
            picture.text(left - 6.0, y.place(tick) + 4.0, 11.0, PALE, Anchor::End, &short_time(tick));
        }
        for (rows, _, _) in SIZES {
            picture.text(x.place(rows), bottom + 20.0, 11.0, PALE, Anchor::Middle, &format!("{} rows", count(rows)));
        }
        for (name, colour) in &names {
            let points: Vec<_> = points(name).map(|(rows, cost)| (x.place(rows), y.place(cost))).collect();
            points.windows(2).for_each(|pair| picture.line(pair[0], pair[1], 2.5, colour));
            points.iter().for_each(|point| picture.dot(point.0, point.1, 4.0, colour));
        }
    }
    picture.finish()
}

fn vertical_grid(picture: &mut Picture, scale: LogScale, top: f64, bottom: f64, label: fn(f64) -> String) {
    for tick in scale.ticks() {
        let x = scale.place(tick);
        picture.line((x, top), (x, bottom), 1.0, GRID);
        picture.text(x, bottom + 16.0, 11.0, PALE, Anchor::Middle, &label(tick));
    }
}

/// A power of ten of microseconds.
fn short_time(value: f64) -> String {
    micros(value).replace(".00", "")
}

/// A round number in few letters.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} M", count(value / 1e6)),
        value if value >= 1e3 => format!("{} k", count(value / 1e3)),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::sample;
    use partita_svg::check;

    #[test]
    fn pictures_of_much_and_of_nothing_are_well_formed() {
        for results in [sample(), Results::default()] {
            for svg in [throughput(&results), latency(&results), size(&results)] {
                check(&svg);
            }
        }
        assert!(throughput(&sample()).contains("point GET, SharedKey"));
    }
}
