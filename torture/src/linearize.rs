//! Looks for an order of steps in which every one of them is right.
//!
//! This is the search of Wing and Gong with what Lowe added to it: take any step that was invoked before the first return
//! of those that are left, do it if its guards hold, go on; step back where nothing fits. What was tried is remembered as
//! the set of steps done and the state they led to, each as the sum of random numbers, so that no combination is looked
//! at twice.
//!
//! ```text
//! a |-------|            order b a c: when c is reached, b and a are done
//! b    |--|              order c ..: never, c was invoked behind the return of b
//! c          |----|
//! ```
//!
//! Much of the choice is none. A step that changes nothing can be taken as soon as it fits. So can one that nothing which
//! could still come before it has anything to do with; and if that does not fit, it never will.

use crate::check::Entity;
use crate::history::{Key, Time};
use crate::random::mix;
use crate::steps::{Effect, Guard, Step, TableEffect, TableGuard};
use std::collections::{BTreeMap, HashSet};

/// The part of a state that the steps in hand are about: a table, and those of its entities that they name or reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) exists: bool,
    pub(crate) entities: BTreeMap<Key, Entity>,
}

/// What came of a search.
#[derive(Debug)]
pub(crate) enum Found {
    /// There is an order; this is the state behind it.
    Order(Part),
    /// There is none.
    None(Stuck),
    /// There were too many to look at.
    TooMany,
}

/// Where the search that came farthest could not go on.
#[derive(Debug)]
pub(crate) struct Stuck {
    /// Steps in the order that came farthest.
    pub(crate) order: Vec<usize>,
    /// The step that had to be next at the latest and could not be.
    pub(crate) step: usize,
    /// The state at that point.
    pub(crate) part: Part,
}

/// Most combinations that are looked at.
const TRIED_MAX: usize = 4_000_000;

/// Searches.
pub(crate) fn order(part: &Part, steps: &[&Step]) -> Found {
    Search::new(part, steps).run()
}

/// A step on the way, and what it takes to go back.
struct Taken {
    step: usize,
    /// `None` for a step that was left out.
    undo: Option<Undo>,
    /// Whether another could have been taken in its place.
    was_choice: bool,
}

/// What can be said of the steps that could be next.
enum Outlook {
    /// This one can be taken without losing anything.
    Take(usize),
    /// This one never fits.
    Dead(usize),
    Choice,
}

struct Undo {
    exists: bool,
    entities: Vec<(usize, Entity)>,
    hash: u128,
}

struct Search<'a> {
    steps: &'a [&'a Step],
    /// Entities have numbers here.
    keys: Vec<Key>,
    guards: Vec<Vec<(usize, Guard)>>,
    effects: Vec<Vec<(usize, Effect)>>,
    exists: bool,
    entities: Vec<Entity>,
    /// Of the state.
    hash: u128,
    events: Events,
    /// Steps that overlap in time and do not commute.
    rivals: Vec<Vec<usize>>,
    /// How many of the rivals of a step are left.
    rivals_left: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(part: &Part, steps: &'a [&'a Step]) -> Search<'a> {
        let entities = &part.entities;
        let keys: Vec<Key> = entities.keys().copied().collect();
        let number = |key: &Key| keys.binary_search(key).expect("every key has a number");
        let guards = steps.iter().map(|step| step.guards.iter().map(|(key, guard)| (number(key), *guard)).collect());
        let effects =
            steps.iter().map(|step| step.effects.iter().map(|(key, effect)| (number(key), *effect)).collect());
        let rivals = rivals(steps);
        Search {
            steps,
            rivals_left: rivals.iter().map(Vec::len).collect(),
            rivals,
            guards: guards.collect(),
            effects: effects.collect(),
            exists: part.exists,
            hash: 0,
            events: Events::new(steps),
            entities: entities.values().copied().collect(),
            keys,
        }
    }

    fn run(mut self) -> Found {
        let mut tried = HashSet::new();
        let mut done: u128 = 0;
        let mut way: Vec<Taken> = Vec::new();
        let mut stuck: Option<Stuck> = None;
        let mut farthest = 0;
        // Where to look for the next step; unset when the one before was just taken.
        let mut place: Option<Option<Event>> = None;
        loop {
            let event = match place {
                Some(event) => event,
                None => match self.outlook() {
                    Outlook::Choice => self.events.first(),
                    Outlook::Take(step) => {
                        let undo = Some(self.apply(step));
                        self.finish(step);
                        done ^= random(step);
                        way.push(Taken { step, undo, was_choice: false });
                        continue;
                    }
                    Outlook::Dead(step) => Some(Event::Return(step)),
                },
            };
            match event {
                None => return Found::Order(self.part()),
                Some(Event::Call(step)) => {
                    if self.fits(step) {
                        let undo = self.apply(step);
                        if tried.insert((done ^ random(step)).wrapping_add(self.hash)) {
                            done ^= random(step);
                            self.finish(step);
                            way.push(Taken { step, undo: Some(undo), was_choice: true });
                            place = None;
                            continue;
                        }
                        self.go_back(undo);
                    }
                    place = Some(self.events.behind(step));
                    continue;
                }
                Some(Event::Return(step)) if self.steps[step].optional => {
                    // Whoever looks from here on sees it undone for ever.
                    if tried.insert((done ^ random(step)).wrapping_add(self.hash)) {
                        done ^= random(step);
                        self.finish(step);
                        way.push(Taken { step, undo: None, was_choice: false });
                        place = None;
                        continue;
                    }
                }
                Some(Event::Return(step)) => {
                    if stuck.is_none() || farthest < way.len() {
                        farthest = way.len();
                        let order = way.iter().filter(|taken| taken.undo.is_some()).map(|taken| taken.step).collect();
                        stuck = Some(Stuck { order, step, part: self.part() });
                    }
                }
            }
            if tried.len() > TRIED_MAX {
                return Found::TooMany;
            }
            place = loop {
                let Some(Taken { step, undo, was_choice }) = way.pop() else {
                    return Found::None(stuck.expect("a search that ends was stuck"));
                };
                done ^= random(step);
                self.put_back(step);
                if let Some(undo) = undo {
                    self.go_back(undo);
                }
                if was_choice {
                    break Some(self.events.behind(step));
                }
            };
        }
    }

    /// Looks at all steps that could be next.
    fn outlook(&self) -> Outlook {
        let mut event = self.events.first();
        while let Some(Event::Call(index)) = event {
            let step = self.steps[index];
            if !step.optional {
                let is_free = self.rivals_left[index] == 0;
                let fits = (is_free || step.changes_nothing()) && self.fits(index);
                if fits {
                    return Outlook::Take(index);
                }
                if is_free {
                    return Outlook::Dead(index);
                }
            }
            event = self.events.behind(index);
        }
        Outlook::Choice
    }

    /// Takes a step off the list.
    fn finish(&mut self, step: usize) {
        self.events.remove(step);
        self.rivals[step].iter().for_each(|rival| self.rivals_left[*rival] -= 1);
    }

    fn put_back(&mut self, step: usize) {
        self.events.put_back(step);
        self.rivals[step].iter().for_each(|rival| self.rivals_left[*rival] += 1);
    }

    fn part(&self) -> Part {
        let entities = self.keys.iter().copied().zip(self.entities.iter().copied()).collect();
        Part { exists: self.exists, entities }
    }

    /// Whether a step would be right now.
    fn fits(&self, step: usize) -> bool {
        let Step { table_guard, version, .. } = *self.steps[step];
        let table = match table_guard {
            TableGuard::Any => true,
            TableGuard::Exists => self.exists,
            TableGuard::Absent => !self.exists,
        };
        // Versions grow, over deletes and new tables too.
        let is_newer = |(entity, effect): &(usize, Effect)| {
            *effect == Effect::Delete || version.is_none_or(|version| version > self.entities[*entity].newest)
        };
        table
            && self.guards[step].iter().all(|(entity, guard)| guard.holds(&self.entities[*entity]))
            && self.effects[step].iter().all(is_newer)
    }

    /// Does a step that fits.
    fn apply(&mut self, step: usize) -> Undo {
        let Step { table_effect, version, .. } = *self.steps[step];
        let mut undo = Undo { exists: self.exists, entities: Vec::new(), hash: self.hash };
        match table_effect {
            TableEffect::None => {}
            TableEffect::Create => self.exists = true,
            TableEffect::Drop => {
                self.exists = false;
                for number in 0..self.entities.len() {
                    if self.entities[number].v != 0 {
                        undo.entities.push((number, self.entities[number]));
                        self.set(number, Effect::Delete, 0);
                    }
                }
            }
        }
        if self.exists != undo.exists {
            self.hash ^= random(usize::MAX);
        }
        for index in 0..self.effects[step].len() {
            let (number, effect) = self.effects[step][index];
            undo.entities.push((number, self.entities[number]));
            self.set(number, effect, version.unwrap_or_default());
        }
        undo
    }

    fn set(&mut self, number: usize, effect: Effect, version: u64) {
        let before = self.entities[number];
        let newest = before.newest.max(version);
        let after = match effect {
            Effect::Put(tag) => Entity { v: tag, w: tag, version, newest },
            Effect::Merge(tag) => Entity { v: tag, w: before.w, version, newest },
            Effect::Delete => Entity { newest: before.newest, ..Entity::default() },
        };
        self.hash ^= hash(number, &before) ^ hash(number, &after);
        self.entities[number] = after;
    }

    fn go_back(&mut self, undo: Undo) {
        for (number, entity) in undo.entities.into_iter().rev() {
            self.entities[number] = entity;
        }
        (self.exists, self.hash) = (undo.exists, undo.hash);
    }
}

impl Guard {
    pub(crate) fn holds(self, entity: &Entity) -> bool {
        let present = entity.v != 0;
        match self {
            Guard::Absent => !present,
            Guard::Present => present,
            Guard::Is(version) => present && entity.version == version,
            Guard::IsNot(version) => present && entity.version != version,
            Guard::Holds { v, w } => (entity.v, entity.w) == (v, w),
        }
    }
}

/// What an absent entity adds to the sum is nothing.
fn hash(number: usize, entity: &Entity) -> u128 {
    if entity.v == 0 {
        return 0;
    }
    let content = (u64::from(entity.v) << 32) | u64::from(entity.w);
    wide(mix(content ^ mix(number as u64 + 0x1234_5678)))
}

fn random(step: usize) -> u128 {
    wide(mix((step as u64).wrapping_mul(2).wrapping_add(1)))
}

fn wide(seed: u64) -> u128 {
    (u128::from(mix(seed ^ 0xA5A5_A5A5_A5A5_A5A5)) << 64) | u128::from(mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)))
}

/// For each step those that it overlaps with and does not commute with.
fn rivals(steps: &[&Step]) -> Vec<Vec<usize>> {
    let mut rivals = vec![Vec::new(); steps.len()];
    let mut by_time: Vec<usize> = (0..steps.len()).collect();
    by_time.sort_unstable_by_key(|step| steps[*step].invoked);
    for (place, &first) in by_time.iter().enumerate() {
        let later = by_time[place + 1..].iter().take_while(|second| steps[**second].invoked <= steps[first].returned);
        for &second in later {
            if !steps[first].commutes_with(steps[second]) {
                rivals[first].push(second);
                rivals[second].push(first);
            }
        }
    }
    rivals
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Call(usize),
    Return(usize),
}

/// Calls and returns of the steps that are left, in the order of time: a list from which a step is taken out, and put back
/// in the reverse order, at no cost.
struct Events {
    next: Vec<usize>,
    previous: Vec<usize>,
}

impl Events {
    fn new(steps: &[&Step]) -> Events {
        let mut events: Vec<(Time, bool, usize)> = Vec::with_capacity(2 * steps.len());
        for (index, step) in steps.iter().enumerate() {
            events.push((step.invoked, false, index));
            events.push((step.returned, true, index));
        }
        events.sort_unstable();
        // The place of an event is twice its step, plus one for a return; the last place is before all.
        let head = 2 * steps.len();
        let mut list = Events { next: vec![head; head + 1], previous: vec![head; head + 1] };
        let mut last = head;
        for (_, is_return, step) in events {
            let place = 2 * step + usize::from(is_return);
            list.next[last] = place;
            list.previous[place] = last;
            last = place;
        }
        list.next[last] = head;
        list.previous[head] = last;
        list
    }

    fn at(&self, place: usize) -> Option<Event> {
        let head = self.next.len() - 1;
        match place {
            place if place == head => None,
            place if place % 2 == 0 => Some(Event::Call(place / 2)),
            place => Some(Event::Return(place / 2)),
        }
    }

    fn first(&self) -> Option<Event> {
        self.at(self.next[self.next.len() - 1])
    }

    /// What comes behind the call of a step.
    fn behind(&self, step: usize) -> Option<Event> {
        self.at(self.next[2 * step])
    }

    fn remove(&mut self, step: usize) {
        for place in [2 * step, 2 * step + 1] {
            let (previous, next) = (self.previous[place], self.next[place]);
            self.next[previous] = next;
            self.previous[next] = previous;
        }
    }

    fn put_back(&mut self, step: usize) {
        for place in [2 * step + 1, 2 * step] {
            let (previous, next) = (self.previous[place], self.next[place]);
            self.next[previous] = place;
            self.previous[next] = place;
        }
    }
}
