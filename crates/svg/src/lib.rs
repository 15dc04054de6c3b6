//! Drawing: just enough of SVG for the plots of the benchmark and the simulator.

use std::fmt::{Display, Write};

const FONT: &str = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif";
/// Colour of words.
pub const INK: &str = "#24292f";
/// Colour of less important words.
pub const PALE: &str = "#57606a";
/// Colour of the lines of a grid.
pub const GRID: &str = "#d8dee4";

/// A picture with a light ground of its own, so that it reads the same on a dark page.
#[derive(Debug)]
pub struct Picture {
    width: f64,
    height: f64,
    body: String,
}

/// To which side of its place a text stands.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// It starts there.
    Start,
    /// It is around it.
    Middle,
    /// It ends there.
    End,
}

impl Picture {
    /// An empty picture of this size with a title.
    pub fn new(width: f64, height: f64, title: &str, subtitle: &str) -> Picture {
        let mut picture = Picture { width, height, body: String::new() };
        picture.text(20.0, 30.0, 17.0, INK, Anchor::Start, title);
        picture.text(20.0, 49.0, 12.0, PALE, Anchor::Start, subtitle);
        picture
    }

    /// A filled rectangle.
    pub fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\" fill=\"{colour}\"/>"
        ));
    }

    /// A line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: &str) {
        self.add(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linecap=\"round\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through several points.
    pub fn curve(&mut self, points: impl IntoIterator<Item = (f64, f64)>, width: f64, colour: &str) {
        let points: Vec<String> = points.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"/>",
            points.join(" ")
        ));
    }

    /// A dot.
    pub fn dot(&mut self, x: f64, y: f64, radius: f64, colour: &str) {
        self.add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>"));
    }

    /// A text.
    pub fn text(&mut self, x: f64, y: f64, size: f64, colour: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// Names with their colours, in a row.
    pub fn legend(&mut self, mut x: f64, y: f64, entries: &[(&str, &str)]) {
        for (name, colour) in entries {
            self.bar(x, y - 9.0, 11.0, 11.0, colour);
            self.text(x + 16.0, y, 12.0, INK, Anchor::Start, name);
            x += 34.0 + 7.0 * name.len() as f64;
        }
    }

    fn add(&mut self, element: impl Display) {
        writeln!(self.body, "{element}").expect("a String takes everything");
    }

    /// The file.
    pub fn finish(self) -> String {
        let Picture { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"{FONT}\">\n<rect x=\"0.5\" y=\"0.5\" width=\"{:.1}\" height=\"{:.1}\" \
             rx=\"6\" fill=\"#ffffff\" stroke=\"{GRID}\"/>\n{body}</svg>\n",
            width - 1.0,
            height - 1.0
        )
    }
}

/// Puts values on a line so that ten times as much is always the same way further.
#[derive(Clone, Copy, Debug)]
pub struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// A scale on which all values have a place, between two coordinates.
    pub fn new(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> LogScale {
        let positive = values.into_iter().filter(|value| *value > 0.0);
        let (low, high) = positive.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        LogScale { low, high: high.max(low + 1.0), from, to }
    }

    /// Where a value is.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The powers of ten on it.
    pub fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

/// Panics unless every element is closed and every text is escaped; for tests.
pub fn check(svg: &str) {
    let mut reader = svg;
    let mut open = Vec::new();
    while let Some(start) = reader.find('<') {
        let text = &reader[..start];
        assert!(!text.contains('>'), "{text}");
        let end = start + reader[start..].find('>').expect("a tag ends");
        let tag = &reader[start + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().expect("a tag has a name")),
        }
        reader = &reader[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_well_formed() {
        let mut picture = Picture::new(100.0, 50.0, "a < b & c", "> d");
        picture.bar(0.0, 0.0, 1.0, 1.0, INK);
        picture.line((0.0, 0.0), (1.0, 1.0), 1.0, GRID);
        picture.curve([(0.0, 0.0), (1.0, 1.0)], 1.0, INK);
        picture.dot(0.0, 0.0, 1.0, INK);
        picture.legend(0.0, 0.0, &[("name", INK)]);
        let svg = picture.finish();
        check(&svg);
        assert!(svg.contains("a &lt; b &amp; c"));
    }

    #[test]
    fn a_scale_of_powers() {
        let scale = LogScale::new([20.0, 900.0], 0.0, 100.0);
        assert_eq!(scale.ticks().collect::<Vec<_>>(), [10.0, 100.0, 1000.0]);
        assert_eq!([10.0, 100.0, 1000.0, 1e9, 0.0].map(|value| scale.place(value)), [0.0, 50.0, 100.0, 100.0, 0.0]);
        assert_eq!(LogScale::new([], 0.0, 1.0).ticks().count(), 2);
    }
}
