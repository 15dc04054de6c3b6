//! What the simulator writes for readers: the plot, and tables between marks in docs/scale.md. A test checks that both are
//! what it says today.

use crate::report::{Outcomes, outcomes, reading, writing};
use crate::{capacity, plot};
use std::path::Path;

/// The tables by the names in the marks `<!-- sim: name -->` and `<!-- end -->`.
fn named(outcomes: &Outcomes) -> [(&'static str, String); 3] {
    [("writing", writing(outcomes)), ("reading", reading(outcomes)), ("capacity", capacity::table())]
}

/// All tables.
pub fn tables() -> String {
    named(&outcomes()).map(|(name, table)| format!("{name}\n\n{table}\n")).concat()
}

/// A text with the tables between its marks, and the plot.
pub fn filled(text: &str) -> Result<(String, String), String> {
    let outcomes = outcomes();
    let mut text = text.to_owned();
    for (name, table) in named(&outcomes) {
        let mark = format!("<!-- sim: {name} -->\n");
        let missing = || format!("there is no table {name}");
        let start = text.find(&mark).ok_or_else(missing)? + mark.len();
        let end = start + text[start..].find("<!-- end -->").ok_or_else(missing)?;
        text.replace_range(start..end, &table);
    }
    Ok((text, plot::draw(&outcomes)))
}

/// Writes scale.md and scale/keys.svg below a folder.
pub fn write(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let document = folder.join("scale.md");
    let (text, picture) = filled(&std::fs::read_to_string(&document)?)?;
    std::fs::create_dir_all(folder.join("scale"))?;
    std::fs::write(folder.join("scale/keys.svg"), picture)?;
    Ok(std::fs::write(document, text)?)
}
