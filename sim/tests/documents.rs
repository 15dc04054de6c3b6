//! The tables of docs/scale.md and the plot are what the simulator says; `make sim` writes them.

use partita_sim::documents::filled;

#[test]
fn documents_are_what_the_simulator_says() {
    let document = include_str!("../../docs/scale.md");
    let (text, picture) = filled(document).unwrap();
    assert!(text == document, "docs/scale.md is old: make sim");
    assert!(picture == include_str!("../../docs/scale/keys.svg"), "docs/scale/keys.svg is old: make sim");
    partita_svg::check(&picture);
}
