//! Results as tables in Markdown.

use crate::key::Design;
use crate::run::{DESIGNS, Outcome, RULES, run};

/// All designs under all rules, in the order of [`DESIGNS`] and [`RULES`].
pub type Outcomes = Vec<(Design, [Outcome; 3])>;

/// Runs everything.
pub fn outcomes() -> Outcomes {
    DESIGNS.into_iter().map(|design| (design, RULES.map(|rule| run(design, rule)))).collect()
}

/// What writing comes to.
pub fn writing(outcomes: &Outcomes) -> String {
    let mut text = String::from(
        "| key design | split between partitions | by size | by size and load | busiest node | ranges | moves |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    for (design, rules) in outcomes {
        let [between, size, load] = rules.each_ref().map(|outcome| {
            let shares = [outcome.last(|step| step.achieved), outcome.largest_tenant];
            shares.map(percent).join(", ")
        });
        let best = &rules[2];
        let hottest = percent(best.last(|step| step.hottest));
        let ranges = best.steps.last().map_or(0, |step| step.ranges);
        let moves = best.counts.moves + best.counts.transfers;
        text += &format!("| {} | {between} | {size} | {load} | {hottest} | {ranges} | {moves} |\n", design.name());
    }
    text
}

/// What reading comes to.
pub fn reading(outcomes: &Outcomes) -> String {
    let mut text = String::from(
        "| key design | everything: queries | ranges | rows read for one | one tenant: queries | ranges | rows read for one |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
    );
    for (design, rules) in outcomes {
        let asked = [rules[2].everything, rules[2].tenant];
        let cells = asked.map(|asked| format!("{} | {} | {:.1}", asked.queries, asked.ranges, asked.reads));
        text += &format!("| {} | {} |\n", design.name(), cells.join(" | "));
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
