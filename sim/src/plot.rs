//! The picture: what each design achieves over time, and what it costs to read what it wrote.

use crate::report::Outcomes;
use crate::run::{NODES, STEP, STEPS};
use partita_svg::{Anchor, GRID, INK, LogScale, PALE, Picture};

const COLOURS: [&str; 8] = ["#cf222e", "#bf8700", "#aac8e8", "#4f9ae0", "#0a3069", "#1a7f37", "#7fc98f", "#8250df"];
const SIZE: (f64, f64) = (860.0, 440.0);
const TOP: f64 = 118.0;
const BOTTOM: f64 = 330.0;

/// Draws it, for ranges that are split by size and load.
pub fn draw(outcomes: &Outcomes) -> String {
    let title = "Key design: what writing gains and reading pays";
    let subtitle =
        format!("{NODES} nodes asked for all they can do together; ranges split by size and load, from one range on");
    let mut picture = Picture::new(SIZE.0, SIZE.1, title, &subtitle);
    over_time(&mut picture, outcomes, (55.0, 420.0));
    against_reading(&mut picture, outcomes, (510.0, 835.0));
    let names: Vec<String> = outcomes.iter().map(|(design, _)| design.name()).collect();
    let entries: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(COLOURS).collect();
    for (row, entries) in entries.chunks(4).enumerate() {
        for (column, entry) in entries.iter().enumerate() {
            picture.legend(55.0 + 200.0 * column as f64, 396.0 + 22.0 * row as f64, &[*entry]);
        }
    }
    picture.finish()
}

fn height(share: f64) -> f64 {
    BOTTOM + share * (TOP - BOTTOM)
}

fn horizontal_grid(picture: &mut Picture, (left, right): (f64, f64)) {
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        picture.line((left, height(tick)), (right, height(tick)), 1.0, GRID);
        let label = format!("{:.0} %", 100.0 * tick);
        picture.text(left - 6.0, height(tick) + 4.0, 11.0, PALE, Anchor::End, &label);
    }
}

fn over_time(picture: &mut Picture, outcomes: &Outcomes, (left, right): (f64, f64)) {
    picture.text(left, 98.0, 12.5, INK, Anchor::Start, "Writes done, of what all nodes can do");
    horizontal_grid(picture, (left, right));
    let x = |step: f64| left + step / STEPS as f64 * (right - left);
    for minutes in [0.0, 10.0, 20.0, 30.0] {
        let label = if minutes == 0.0 { "start".to_owned() } else { format!("{minutes} min") };
        picture.text(x(minutes * 60.0 / STEP), BOTTOM + 20.0, 11.0, PALE, Anchor::Middle, &label);
    }
    for ((_, rules), colour) in outcomes.iter().zip(COLOURS) {
        let steps = &rules[2].steps;
        // A point for each minute; between them there is nothing to see.
        let points = steps.chunks(6).enumerate().map(|(minute, steps)| {
            let mean = steps.iter().map(|step| step.achieved).sum::<f64>() / steps.len() as f64;
            (x(6.0 * minute as f64 + 3.0), height(mean))
        });
        picture.curve(points, 2.0, colour);
    }
}

fn against_reading(picture: &mut Picture, outcomes: &Outcomes, (left, right): (f64, f64)) {
    picture.text(left, 98.0, 12.5, INK, Anchor::Start, "and ranges that the last minute of everything asks");
    horizontal_grid(picture, (left, right));
    let asked: Vec<f64> = outcomes.iter().map(|(_, rules)| rules[2].everything.ranges as f64).collect();
    let x = LogScale::new(asked.iter().copied().chain([1.0]), left, right);
    for tick in x.ticks() {
        picture.line((x.place(tick), TOP), (x.place(tick), BOTTOM), 1.0, GRID);
        picture.text(x.place(tick), BOTTOM + 20.0, 11.0, PALE, Anchor::Middle, &tick.to_string());
    }
    for (((_, rules), ranges), colour) in outcomes.iter().zip(asked).zip(COLOURS) {
        picture.dot(x.place(ranges), height(rules[2].last(|step| step.achieved)), 6.0, colour);
    }
}
