//! Says whether a history is one that a correct server could have produced.
//!
//! Three times the same question is asked, is there an order of all calls, within their times, in which every answer is
//! right: of each entity by itself, of each partition, of each table. The first says that entities are linearizable, the second
//! that transactions are atomic and isolated and that a page is a snapshot, the third that a table is dropped and created as a
//! whole. A later question covers the earlier ones; they are asked because their answer is easier to read.

use crate::history::{Call, Key, Table, Tag, Version};
use crate::linearize::{Found, Part, Stuck, order};
use crate::steps::{Guard, Step, TableEffect, TableGuard, steps};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

#[cfg(test)]
mod tests;

/// An entity of a [`State`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// The tag of its last write; 0 if it is absent.
    pub v: Tag,
    /// The tag of its last write that was no merge, or 0.
    pub w: Tag,
    /// Its version; 0 if nobody ever saw it.
    pub version: Version,
    /// The greatest version that it ever had.
    pub newest: Version,
}

/// What a server holds while nothing is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The tables.
    pub tables: BTreeSet<Table>,
    /// Entities by key; also those that are absent but were there.
    pub entities: BTreeMap<Key, Entity>,
}

/// A history that no correct server produces.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What is wrong.
    pub what: String,
    /// The calls that show it, by time.
    pub calls: Vec<Call>,
}

/// Calls that are shown at most.
const SHOWN_MAX: usize = 24;

impl Violation {
    pub(crate) fn of(what: String, indexes: impl IntoIterator<Item = usize>, calls: &[Call]) -> Violation {
        let indexes: BTreeSet<usize> = indexes.into_iter().collect();
        let mut calls: Vec<Call> = indexes.into_iter().map(|index| calls[index].clone()).collect();
        calls.sort_by_key(|call| call.invoked);
        Violation { what, calls }
    }

    pub(crate) fn alone(what: String, call: &Call) -> Violation {
        Violation { what, calls: vec![call.clone()] }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        self.calls.iter().try_for_each(|call| write!(f, "\n  {call}"))
    }
}

/// Checks a history that begins in a state and ends with nothing under way, and takes the state to its end. That is the only
/// one possible if everything whose outcome is unknown was read again.
pub fn check(state: &mut State, calls: &[Call]) -> Result<(), Violation> {
    let steps = steps(state, calls)?;
    for table in Table::ALL {
        let of_table: Vec<&Step> = steps.iter().filter(|step| calls[step.call].operation.table() == table).collect();
        for (key, steps) in &group(&of_table, |key| key) {
            explain(state, *key..=*key, steps, calls, &format!("{key} is not linearizable"))?;
        }
        for (partition, steps) in &group(&of_table, |key| key.partition) {
            let what = format!("a transaction or a page of {} in p{partition:03} is torn", table.name());
            explain(state, Key::all_in(table, *partition), steps, calls, &what)?;
        }
        let what = format!("a page, a drop or a creation of {} is torn", table.name());
        let part = explain(state, Key::all_of(table), &of_table, calls, &what)?;
        state.entities.extend(part.entities);
        match part.exists {
            true => state.tables.insert(table),
            false => state.tables.remove(&table),
        };
    }
    Ok(())
}

/// Steps by what their keys have in common. Those which are about the table itself belong to all.
fn group<'s, G: Ord + Copy>(steps: &[&'s Step], of: impl Fn(Key) -> G) -> BTreeMap<G, Vec<&'s Step>> {
    let mut groups: BTreeMap<G, Vec<&Step>> = BTreeMap::new();
    let mut of_table = Vec::new();
    for &step in steps {
        for group in step.keys().map(&of).collect::<BTreeSet<G>>() {
            groups.entry(group).or_default().push(step);
        }
        if step.table_effect != TableEffect::None || step.table_guard == TableGuard::Absent {
            of_table.push(step);
        }
    }
    groups.values_mut().for_each(|group| group.extend(&of_table));
    groups
}

/// Looks for an order of what the steps say of some keys of a table.
fn explain(
    state: &State,
    scope: RangeInclusive<Key>,
    steps: &[&Step],
    calls: &[Call],
    what: &str,
) -> Result<Part, Violation> {
    let steps: Vec<Step> = steps.iter().map(|step| narrowed(step, &scope)).collect();
    let steps: Vec<&Step> = steps.iter().collect();
    let exists = state.tables.contains(&scope.start().table);
    // Only a drop reaches entities that no step names.
    let drops = steps.iter().any(|step| step.table_effect == TableEffect::Drop);
    let mut keys: BTreeSet<Key> = steps.iter().flat_map(|step| step.keys()).collect();
    keys.extend(state.entities.range(scope).map(|(key, _)| *key).take_while(|_| drops));
    let entities = keys.into_iter().map(|key| (key, state.entities.get(&key).copied().unwrap_or_default())).collect();
    match order(&Part { exists, entities }, &steps) {
        Found::Order(part) => Ok(part),
        Found::None(stuck) => Err(stuck.violation(what, &steps, calls)),
        Found::TooMany => Err(Violation { what: format!("{what}, or it cannot be decided"), calls: Vec::new() }),
    }
}

fn narrowed(step: &Step, scope: &RangeInclusive<Key>) -> Step {
    Step { guards: within(&step.guards, scope), effects: within(&step.effects, scope), ..*step }
}

/// What a list in the order of keys says of these keys.
fn within<T: Copy>(all: &[(Key, T)], scope: &RangeInclusive<Key>) -> Vec<(Key, T)> {
    let start = all.partition_point(|(key, _)| key < scope.start());
    let end = all.partition_point(|(key, _)| key <= scope.end());
    all[start..end].to_vec()
}

impl Stuck {
    /// Tells what does not fit, with the writes that led to it and what went on at the same time.
    fn violation(self, what: &str, steps: &[&Step], calls: &[Call]) -> Violation {
        let step = steps[self.step];
        let entity = |key: &Key| self.part.entities.get(key).copied().unwrap_or_default();
        let unmet = step.guards.iter().filter(|(key, guard)| !guard.holds(&entity(key)));
        let unmet: Vec<String> = unmet.map(|(key, guard)| describe(*key, *guard, &entity(key))).collect();
        let table = calls[step.call].operation.table().name();
        let why = match (step.table_guard, self.part.exists) {
            (TableGuard::Exists, false) => format!("the answer says that {table} is there, where it should not be"),
            (TableGuard::Absent, true) => format!("the answer says that {table} is not there, where it should be"),
            _ if unmet.is_empty() => "its ETag is not newer than what was there before".to_owned(),
            _ => unmet.into_iter().take(4).collect::<Vec<_>>().join("; "),
        };
        let what = format!("{what}. No order of calls explains the answers; where the search came farthest: {why}");

        let keys: BTreeSet<Key> = step.keys().collect();
        let touches = |other: &Step| {
            other.table_effect != TableEffect::None || other.effects.iter().any(|(key, _)| keys.contains(key))
        };
        let mut shown = BTreeSet::from([step.call]);
        let order: Vec<&Step> = self.order.iter().map(|index| steps[*index]).collect();
        shown.extend(order.iter().rev().filter(|step| touches(step)).take(8).map(|step| step.call));
        // The last drop or creation, and who saw it first.
        let table = order.iter().rposition(|step| step.table_effect != TableEffect::None).unwrap_or_default();
        let saw = order[table.min(order.len())..].iter().filter(|step| step.table_guard != TableGuard::Any);
        shown.extend(saw.take(6).map(|step| step.call));
        let overlaps = |other: &&&Step| other.invoked < step.returned && other.returned > step.invoked;
        let sees = |other: &&&Step| other.guards.iter().any(|(key, _)| keys.contains(key)) || touches(other);
        for other in steps.iter().filter(overlaps).filter(sees) {
            if shown.len() < SHOWN_MAX {
                shown.insert(other.call);
            }
        }
        Violation::of(what, shown, calls)
    }
}

fn describe(key: Key, guard: Guard, found: &Entity) -> String {
    let wanted = match guard {
        Guard::Absent => "is absent".to_owned(),
        Guard::Present => "is there".to_owned(),
        Guard::Is(_) => "has the version asked for".to_owned(),
        Guard::IsNot(_) => "is there with another version than asked for".to_owned(),
        Guard::Holds { v, w } => format!("holds V={v} W={w}"),
    };
    let found = match found.v {
        0 => "absent".to_owned(),
        v => format!("V={v} W={}", found.w),
    };
    format!("the answer says that {key} {wanted}, where it should be {found}")
}
