//! Sets of keys: which PartitionKeys, and in each of them which RowKeys.
//!
//! A set is a list of pieces, sorted and disjoint. A piece is a half-open interval of PartitionKeys with one value, the
//! RowKeys wanted in each of them, and those are again sorted disjoint pieces, with nothing to say but that they are
//! there. Bounds are ordered bytes (see `partita_model::PartitionKey`); the smallest key behind `x` is `x 00`, so every
//! comparison is a half-open interval.
//!
//! ```text
//! (PartitionKey eq 'a' and RowKey ge '5') or PartitionKey gt 'c'
//!     [a, a00)    [5, end)
//!     [c00, end)  [, end)
//! ```
//!
//! Union and intersection are one sweep over the bounds of both sides, at either level. Unions of many terms pair them
//! up, so that the sum of all sweeps is n log n. Still, intervals that overlap in both dimensions can have a union of n
//! squared pieces; a [`Budget`] bounds the work, and once it is spent the result is wider than asked for. That is
//! allowed: a set only says which rows are worth a look.

use std::sync::Arc;

/// Ordered bytes, shared by all the pieces they bound.
type Bound = Arc<[u8]>;

/// The steps that all sweeps together may still take.
pub(crate) struct Budget(usize);

impl Budget {
    /// Well above what a filter of 2,000 points takes, and some ten milliseconds of work.
    pub(crate) const FULL: Budget = Budget(1 << 17);

    #[cfg(test)]
    pub(crate) fn of(steps: usize) -> Budget {
        Budget(steps)
    }

    fn spend(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Whether sets may be wider than they should be.
    pub(crate) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// The keys from `low` up to but without `high`, or to the end, and what is known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece<V> {
    pub(crate) low: Bound,
    pub(crate) high: Option<Bound>,
    pub(crate) value: V,
}

impl<V> Piece<V> {
    pub(crate) fn below_high(&self, key: &[u8]) -> bool {
        self.high.as_ref().is_none_or(|high| *key < **high)
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.low.is_empty() && self.high.is_none()
    }

    /// Whether there is only one key, `low`.
    pub(crate) fn is_point(&self) -> bool {
        self.high.as_ref().is_some_and(|high| high.strip_prefix(&*self.low) == Some(&[0]))
    }
}

/// One interval of keys, as a comparison has it.
#[derive(Clone, Debug)]
pub(crate) enum Range {
    Empty,
    Between(Bound, Option<Bound>),
}

impl Range {
    pub(crate) fn everything() -> Range {
        Range::Between(Bound::default(), None)
    }

    pub(crate) fn from(key: &[u8]) -> Range {
        Range::Between(key.into(), None)
    }

    pub(crate) fn behind(key: &[u8]) -> Range {
        Range::Between(successor(key), None)
    }

    pub(crate) fn before(key: &[u8]) -> Range {
        if key.is_empty() { Range::Empty } else { Range::Between(Bound::default(), Some(key.into())) }
    }

    pub(crate) fn up_to(key: &[u8]) -> Range {
        Range::Between(Bound::default(), Some(successor(key)))
    }

    pub(crate) fn point(key: &[u8]) -> Range {
        Range::Between(key.into(), Some(successor(key)))
    }
}

fn successor(key: &[u8]) -> Bound {
    key.iter().copied().chain([0]).collect()
}

/// The RowKeys wanted in a partition. Shared, because every partition of a cross product has the same.
#[derive(Clone, Debug)]
pub(crate) struct Rows(Arc<[Piece<()>]>);

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Rows {
    fn everything() -> Rows {
        Rows(Arc::new([Piece { low: Bound::default(), high: None, value: () }]))
    }

    pub(crate) fn pieces(&self) -> &[Piece<()>] {
        &self.0
    }

    pub(crate) fn is_everything(&self) -> bool {
        matches!(&*self.0, [piece] if piece.is_everything())
    }

    fn union(&self, other: &Rows, budget: &mut Budget) -> Rows {
        if self.is_everything() || Arc::ptr_eq(&self.0, &other.0) {
            return self.clone();
        }
        if other.is_everything() {
            return other.clone();
        }
        if budget.is_spent() {
            return Rows(hull(&self.0, &other.0, ()).into_iter().collect());
        }
        Rows(sweep(&self.0, &other.0, budget, |a, b, _| a.or(b).copied()).into())
    }

    fn intersection(&self, other: &Rows, budget: &mut Budget) -> Option<Rows> {
        if self.is_everything() || Arc::ptr_eq(&self.0, &other.0) {
            return Some(other.clone());
        }
        if other.is_everything() {
            return Some(self.clone());
        }
        if budget.is_spent() {
            return Some(if self.0.len() <= other.0.len() { self.clone() } else { other.clone() });
        }
        let pieces = sweep(&self.0, &other.0, budget, |a, b, _| a.and(b).copied());
        (!pieces.is_empty()).then(|| Rows(pieces.into()))
    }
}

/// A set of (PartitionKey, RowKey).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeySet(Vec<Piece<Rows>>);

impl KeySet {
    pub(crate) fn empty() -> KeySet {
        KeySet(Vec::new())
    }

    pub(crate) fn everything() -> KeySet {
        KeySet::of_partitions(Range::everything())
    }

    /// All rows of these partitions.
    pub(crate) fn of_partitions(partitions: Range) -> KeySet {
        match partitions {
            Range::Empty => KeySet::empty(),
            Range::Between(low, high) => KeySet(vec![Piece { low, high, value: Rows::everything() }]),
        }
    }

    /// These rows of all partitions.
    pub(crate) fn of_rows(rows: Range) -> KeySet {
        match rows {
            Range::Empty => KeySet::empty(),
            Range::Between(low, high) => {
                let value = Rows(Arc::new([Piece { low, high, value: () }]));
                KeySet(vec![Piece { low: Bound::default(), high: None, value }])
            }
        }
    }

    /// The partitions in order; none without rows.
    pub(crate) fn pieces(&self) -> &[Piece<Rows>] {
        &self.0
    }

    fn is_everything(&self) -> bool {
        matches!(&*self.0, [piece] if piece.is_everything() && piece.value.is_everything())
    }

    /// What is in any of the sets.
    pub(crate) fn union_of(sets: Vec<KeySet>, budget: &mut Budget) -> KeySet {
        in_pairs(sets, |a, b| a.union(b, budget)).unwrap_or_else(KeySet::empty)
    }

    /// What is in all of the sets.
    pub(crate) fn intersection_of(sets: Vec<KeySet>, budget: &mut Budget) -> KeySet {
        in_pairs(sets, |a, b| a.intersection(b, budget)).unwrap_or_else(KeySet::everything)
    }

    fn union(self, other: KeySet, budget: &mut Budget) -> KeySet {
        if self.is_everything() || other.0.is_empty() {
            return self;
        }
        if other.is_everything() || self.0.is_empty() {
            return other;
        }
        if budget.is_spent() {
            return KeySet(hull(&self.0, &other.0, Rows::everything()).into_iter().collect());
        }
        KeySet(sweep(&self.0, &other.0, budget, |a, b, budget| match (a, b) {
            (Some(a), Some(b)) => Some(a.union(b, budget)),
            (a, b) => a.or(b).cloned(),
        }))
    }

    fn intersection(self, other: KeySet, budget: &mut Budget) -> KeySet {
        if self.is_everything() || other.0.is_empty() {
            return other;
        }
        if other.is_everything() || self.0.is_empty() {
            return self;
        }
        if budget.is_spent() {
            return if self.0.len() <= other.0.len() { self } else { other };
        }
        KeySet(sweep(&self.0, &other.0, budget, |a, b, budget| a?.intersection(b?, budget)))
    }
}

/// Combines neighbours until one is left, so that each takes part in about log n combinations.
fn in_pairs(mut sets: Vec<KeySet>, mut combine: impl FnMut(KeySet, KeySet) -> KeySet) -> Option<KeySet> {
    while sets.len() > 1 {
        let mut halved = Vec::with_capacity(sets.len().div_ceil(2));
        let mut rest = sets.into_iter();
        while let Some(first) = rest.next() {
            halved.push(match rest.next() {
                Some(second) => combine(first, second),
                None => first,
            });
        }
        sets = halved;
    }
    sets.pop()
}

/// Goes through the bounds of both lists in order and asks `pick` what holds between one bound and the next, given what
/// holds there on either side.
fn sweep<V: Clone + PartialEq>(
    a: &[Piece<V>],
    b: &[Piece<V>],
    budget: &mut Budget,
    pick: impl Fn(Option<&V>, Option<&V>, &mut Budget) -> Option<V>,
) -> Vec<Piece<V>> {
    let mut out: Vec<Piece<V>> = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (Side(a), Side(b));
    let mut low = Bound::default();
    while !(a.0.is_empty() && b.0.is_empty()) {
        budget.spend();
        let high = match (a.next_bound(&low), b.next_bound(&low)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
        .cloned();
        if let Some(value) = pick(a.value_at(&low), b.value_at(&low), budget) {
            match out.last_mut() {
                Some(last) if last.high.as_ref() == Some(&low) && last.value == value => last.high = high.clone(),
                _ => out.push(Piece { low, high: high.clone(), value }),
            }
        }
        let Some(high) = high else { break };
        a.drop_below(&high);
        b.drop_below(&high);
        low = high;
    }
    out
}

/// The pieces of one side that end behind the current bound.
struct Side<'a, V>(&'a [Piece<V>]);

impl<'a, V> Side<'a, V> {
    fn value_at(&self, low: &Bound) -> Option<&'a V> {
        self.0.first().filter(|piece| piece.low <= *low).map(|piece| &piece.value)
    }

    /// The first bound behind `low`; `None` if there is none.
    fn next_bound(&self, low: &Bound) -> Option<&'a Bound> {
        let piece = self.0.first()?;
        if piece.low > *low { Some(&piece.low) } else { piece.high.as_ref() }
    }

    fn drop_below(&mut self, high: &Bound) {
        while let [first, rest @ ..] = self.0
            && first.high.as_ref().is_some_and(|end| end <= high)
        {
            self.0 = rest;
        }
    }
}

/// One piece around both lists, or `None` if both are empty.
fn hull<V>(a: &[Piece<V>], b: &[Piece<V>], value: V) -> Option<Piece<V>> {
    let ends = [a.first(), b.first()].into_iter().flatten();
    let low = ends.map(|piece| &piece.low).min()?.clone();
    let highs = [a.last(), b.last()].into_iter().flatten().map(|piece| &piece.high);
    // No upper bound is the highest.
    let high = highs.max_by(|a, b| match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    })?;
    Some(Piece { low, high: high.clone(), value })
}
