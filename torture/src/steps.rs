//! Calls as steps of a plain machine: what must hold at one moment, and what that moment changes.
//!
//! A call whose answer came happened at one moment between its invocation and its return, with guards that follow from the
//! answer. A call whose outcome is unknown happened at one moment behind its invocation, or never.

use crate::check::{State, Violation};
use crate::history::{Answer, Before, Call, Change, Condition, Key, Operation, Page, Seen, Tag, Time, Verb, Version};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// What a step asks of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    Absent,
    Present,
    Is(Version),
    /// It is there, and its version is another.
    IsNot(Version),
    Holds {
        v: Tag,
        w: Tag,
    },
}

/// What a step does to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Put(Tag),
    Merge(Tag),
    Delete,
}

/// What a step asks of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableGuard {
    Any,
    Exists,
    Absent,
}

/// What a step does to its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableEffect {
    None,
    Create,
    Drop,
}

/// One moment of a history.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The index of its call.
    pub(crate) call: usize,
    pub(crate) invoked: Time,
    pub(crate) returned: Time,
    /// Whether it may also never have happened.
    pub(crate) optional: bool,
    pub(crate) table_guard: TableGuard,
    pub(crate) table_effect: TableEffect,
    /// In the order of keys, as are the effects.
    pub(crate) guards: Vec<(Key, Guard)>,
    pub(crate) effects: Vec<(Key, Effect)>,
    /// The version that its effects give, if anybody ever saw it.
    pub(crate) version: Option<Version>,
}

impl Step {
    /// The entities it is about; some of them twice.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.guards.iter().map(|(key, _)| *key).chain(self.effects.iter().map(|(key, _)| *key))
    }
}

impl Step {
    /// Whether it only looks.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.effects.is_empty() && self.table_effect == TableEffect::None
    }

    /// Whether it does not matter which of the two is first.
    pub(crate) fn commutes_with(&self, other: &Step) -> bool {
        let tables = [self, other].iter().all(|step| step.table_effect == TableEffect::None);
        let both_look = self.changes_nothing() && other.changes_nothing();
        both_look || tables && !reaches(&self.effects, other) && !reaches(&other.effects, self)
    }
}

/// Whether one of the effects is on an entity that a step is about.
fn reaches(effects: &[(Key, Effect)], step: &Step) -> bool {
    let has = |key: &Key| {
        step.guards.binary_search_by_key(key, |(key, _)| *key).is_ok()
            || step.effects.binary_search_by_key(key, |(key, _)| *key).is_ok()
    };
    effects.iter().any(|(key, _)| has(key))
}

/// The steps of a history that goes on from a state; an error is what can be seen to be wrong without a search.
pub(crate) fn steps(state: &State, calls: &[Call]) -> Result<Vec<Step>, Violation> {
    let known = known_keys(state, calls);
    let versions = versions(state, &known, calls)?;
    let mut steps = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        translate(index, call, &known, &mut steps)?;
    }
    for step in &mut steps {
        step.version = versions.get(&calls[step.call].tag).copied();
        step.guards.sort_by_key(|(key, _)| *key);
        step.effects.sort_by_key(|(key, _)| *key);
    }
    Ok(steps)
}

/// Every entity that anybody asked for. In tables of which there is a page, also what was there at first.
fn known_keys(state: &State, calls: &[Call]) -> BTreeSet<Key> {
    let mut known = BTreeSet::new();
    let mut tables = BTreeSet::new();
    for call in calls {
        match &call.operation {
            Operation::Write(changes) => known.extend(changes.iter().map(|change| change.key)),
            Operation::Get(key) => _ = known.insert(*key),
            Operation::Page(page) => _ = tables.insert(page.table),
            Operation::Create(_) | Operation::Drop(_) => {}
        }
    }
    for table in tables {
        known.extend(state.entities.range(Key::all_of(table)).map(|(key, _)| *key));
    }
    known
}

/// The version of each write, by its tag. All rows of a transaction have the same, whoever looks at whichever of them.
fn versions(state: &State, known: &BTreeSet<Key>, calls: &[Call]) -> Result<HashMap<Tag, Version>, Violation> {
    let mut versions: HashMap<Tag, (Version, usize)> = HashMap::new();
    let before = known.iter().filter_map(|key| state.entities.get(key));
    let before = before.filter(|entity| entity.v != 0 && entity.version != 0);
    versions.extend(before.map(|entity| (entity.v, (entity.version, usize::MAX))));
    let mut learn = |tag: Tag, version: Version, call: usize| {
        let (known, by) = *versions.entry(tag).or_insert((version, call));
        if known == version {
            return Ok(());
        }
        let what = format!("what was written as {tag} has two ETags");
        let both = [by, call].into_iter().filter(|call| *call != usize::MAX);
        Err(Violation::of(what, both, calls))
    };
    for (index, call) in calls.iter().enumerate() {
        match &call.answer {
            Answer::Done(Some(version)) => learn(call.tag, *version, index)?,
            Answer::Row(seen) => learn(seen.v, seen.version, index)?,
            Answer::Rows(rows, _) => rows.iter().try_for_each(|(_, seen)| learn(seen.v, seen.version, index))?,
            Answer::Done(None) | Answer::Refused { .. } => {}
            Answer::Busy | Answer::Unknown | Answer::Cut | Answer::Odd(_) => {}
        }
    }
    Ok(versions.into_iter().map(|(tag, (version, _))| (tag, version)).collect())
}

fn translate(index: usize, call: &Call, known: &BTreeSet<Key>, steps: &mut Vec<Step>) -> Result<(), Violation> {
    let unexpected = |what: &str| Err(Violation::alone(format!("{what}: {}", call.answer), call));
    let mut step = Step {
        call: index,
        invoked: call.invoked,
        returned: call.returned.unwrap_or(Time::MAX),
        optional: call.answer.leaves_open(),
        table_guard: TableGuard::Exists,
        table_effect: TableEffect::None,
        guards: Vec::new(),
        effects: Vec::new(),
        version: None,
    };
    if let Answer::Odd(what) = &call.answer {
        return Err(Violation::alone(what.clone(), call));
    }
    // Not done, and nothing is said of what is there.
    if call.answer == Answer::Busy {
        return Ok(());
    }
    if let Answer::Refused { code, .. } = &call.answer
        && code == "TableNotFound"
    {
        step.table_guard = TableGuard::Absent;
        steps.push(step);
        return Ok(());
    }
    match (&call.operation, &call.answer) {
        (Operation::Create(_), Answer::Done(_) | Answer::Unknown | Answer::Cut) => {
            step.table_guard = TableGuard::Absent;
            step.table_effect = TableEffect::Create;
        }
        (Operation::Create(_), Answer::Refused { code, .. }) if code == "TableAlreadyExists" => {}
        (Operation::Drop(_), Answer::Done(_) | Answer::Unknown | Answer::Cut) => step.table_effect = TableEffect::Drop,
        (Operation::Drop(_), Answer::Refused { code, .. }) if code == "ResourceNotFound" => {
            step.table_guard = TableGuard::Absent;
        }
        // Refused for what it is, whatever is stored. That says nothing of the table: while one is being dropped, those who
        // would have reached its rows are told that it is gone a moment before those whose request is wrong in itself.
        (Operation::Write(changes), answer) if has_duplicates(changes) => match answer {
            Answer::Refused { code, .. } if code == "InvalidDuplicateRow" => return Ok(()),
            Answer::Unknown | Answer::Cut => return Ok(()),
            _ => return unexpected("a row twice in a transaction"),
        },
        (Operation::Write(changes), Answer::Done(_) | Answer::Unknown | Answer::Cut) => {
            for change in changes {
                step.guards.extend(holds(change).map(|guard| (change.key, guard)));
                step.effects.push((change.key, effect(change, call.tag)));
            }
        }
        (Operation::Write(changes), Answer::Refused { index, code }) => {
            // A change is named only if all before it could be made.
            let Some((refused, before)) = changes.get(..=*index).and_then(|changes| changes.split_last()) else {
                return unexpected("an index that no change has");
            };
            step.guards.extend(before.iter().filter_map(|change| Some((change.key, holds(change)?))));
            let guard = match (code.as_str(), refused.verb, refused.condition) {
                ("EntityAlreadyExists", Verb::Insert, _) => Guard::Present,
                (
                    "ResourceNotFound",
                    Verb::Replace | Verb::Merge | Verb::Delete,
                    Condition::Exists | Condition::Is(_),
                ) => Guard::Absent,
                ("UpdateConditionNotSatisfied", _, Condition::Is(version)) => Guard::IsNot(version),
                _ => return unexpected("an error that does not fit"),
            };
            step.guards.push((refused.key, guard));
        }
        (Operation::Get(key), Answer::Row(seen)) => step.guards.push((*key, holding(seen))),
        (Operation::Get(key), Answer::Refused { code, .. }) if code == "ResourceNotFound" => {
            step.guards.push((*key, Guard::Absent));
        }
        (Operation::Page(page), Answer::Rows(rows, more)) => return shown(call, page, rows, *more, known, step, steps),
        // A read that was not answered says nothing.
        (Operation::Get(_) | Operation::Page(_), Answer::Unknown | Answer::Cut) => return Ok(()),
        _ => return unexpected("an answer that does not fit"),
    }
    steps.push(step);
    Ok(())
}

fn has_duplicates(changes: &[Change]) -> bool {
    let keys: BTreeSet<Key> = changes.iter().map(|change| change.key).collect();
    keys.len() < changes.len()
}

/// What holds if a change could be made.
fn holds(change: &Change) -> Option<Guard> {
    match (change.verb, change.condition) {
        (Verb::Insert, _) => Some(Guard::Absent),
        (_, Condition::None) => None,
        (_, Condition::Exists) => Some(Guard::Present),
        (_, Condition::Is(version)) => Some(Guard::Is(version)),
    }
}

fn effect(change: &Change, tag: Tag) -> Effect {
    match change.verb {
        Verb::Insert | Verb::Replace => Effect::Put(tag),
        Verb::Merge => Effect::Merge(tag),
        Verb::Delete => Effect::Delete,
    }
}

fn holding(seen: &Seen) -> Guard {
    Guard::Holds { v: seen.v, w: seen.w }
}

/// A page shows one moment of the rows from its first to its last, or to the end if there is no further page; the first
/// page also of those before. A row that lies between two pages was absent at some moment since the page before was asked for.
fn shown(
    call: &Call,
    page: &Page,
    rows: &[(Key, Seen)],
    more: bool,
    known: &BTreeSet<Key>,
    step: Step,
    steps: &mut Vec<Step>,
) -> Result<(), Violation> {
    let violation = |what: String| Err(Violation::alone(what, call));
    let in_query =
        |key: &Key| key.table == page.table && page.partition.is_none_or(|partition| key.partition == partition);
    let mut last = page.before.and_then(|before| before.last);
    for (key, _) in rows {
        if !known.contains(key) || !in_query(key) {
            return violation(format!("{key} is shown, which nobody wrote or asked for"));
        }
        if last.is_some_and(|last| last >= *key) {
            return violation(format!("{key} is shown twice or out of order"));
        }
        last = Some(*key);
    }
    if page.top.is_some_and(|top| rows.len() > top as usize) {
        return violation("more rows than were asked for".to_owned());
    }

    let between = |from: Bound<Key>, to: Bound<Key>| known.range((from, to)).copied().filter(in_query);
    let first = rows.first().map(|(key, _)| *key);
    let end = match (more, rows.last()) {
        (true, Some((key, _))) => Bound::Included(*key),
        (true, None) => return Ok(()),
        (false, _) => Bound::Unbounded,
    };
    let start = match (page.before, first) {
        (None, _) => Some(Bound::Unbounded),
        (Some(_), first) => first.map(Bound::Included),
    };
    if let Some(Before { last, since }) = page.before {
        let behind = last.map_or(Bound::Unbounded, Bound::Excluded);
        for key in between(behind, first.map_or(end, Bound::Excluded)) {
            let (table_guard, guards) = (TableGuard::Any, vec![(key, Guard::Absent)]);
            steps.push(Step { invoked: since, table_guard, guards, ..step.clone() });
        }
    }
    if let Some(start) = start {
        let mut shown = rows.iter().peekable();
        let guards = between(start, end).map(|key| match shown.next_if(|(next, _)| *next == key) {
            Some((_, seen)) => (key, holding(seen)),
            None => (key, Guard::Absent),
        });
        let guards = guards.collect();
        steps.push(Step { guards, ..step });
    }
    Ok(())
}
