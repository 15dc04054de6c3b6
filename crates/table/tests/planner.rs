//! Whatever a plan skips, a query returns what reading every row would have returned.
//!
//! Random rows, random filters, and pages of random size within random bounds: put together, the pages of
//! [`TableService::query`] are the rows for which the filter holds, in order, each once. Whether it holds is decided here
//! anew, as plainly as can be and on the values that were inserted, so that the service's own comparison is tested too.

mod support;

use partita_model::{Guid, Position, Property, Ticks, Value};
use partita_odata::{Filter, Op};
use partita_store::Memory;
use partita_table::{ChangeKind, Table, TableService};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use support::*;

/// Names of properties that rows may have, one that none has, and a key in the wrong case.
const NAMES: [&str; 5] = ["A", "B", "C", "Missing", "rowkey"];

/// So few characters that rows and bounds often meet. The last two stand in the other order in UTF-8 than in UTF-16.
fn key() -> impl Strategy<Value = String> {
    vec(select(vec!['a', 'b', '\u{E001}', '\u{1F600}']), 0..3).prop_map(String::from_iter)
}

/// Values that are often equal, and often nearly so.
fn value() -> impl Strategy<Value = Value> {
    let double = select(vec![0.0, -0.0, 1.0, 1.5, -1e300, 9007199254740992.0, 9.3e18, f64::INFINITY, f64::NAN]);
    let long = select(vec![0, 1, 2, -1, 9007199254740992, 9007199254740993, i64::MAX, i64::MIN]);
    prop_oneof![
        vec(select(vec![0_u8, 1, 255]), 0..3).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        select(vec![Ticks::MIN_DATE_TIME, Ticks(638_000_000_000_000_000), Ticks::MAX]).prop_map(Value::DateTime),
        double.prop_map(Value::Double),
        select(vec![[0; 16], [1; 16], [255; 16]]).prop_map(|bytes| Value::Guid(Guid(bytes))),
        select(vec![0, 1, 2, -1, i32::MAX]).prop_map(Value::Int32),
        long.prop_map(Value::Int64),
        key().prop_map(Value::String),
    ]
}

/// Rows by their keys. A map of texts is not in the order of the service, which is as well: order is asked of the service.
fn rows() -> impl Strategy<Value = BTreeMap<(String, String), Vec<Property>>> {
    btree_map((key(), key()), properties(), 0..40)
}

fn properties() -> impl Strategy<Value = Vec<Property>> {
    let properties = btree_map(select(&["A", "B", "C"][..]), value(), 0..3);
    properties.prop_map(|named| named.into_iter().map(Property::from).collect())
}

/// Mostly about keys, so that plans have something to do.
fn filter() -> impl Strategy<Value = Filter> {
    let compare = |property: &str, op, literal| Filter::Compare { property: property.to_owned(), op, literal };
    let op = || select(&Op::ALL[..]);
    let keys = || select(&["PartitionKey", "RowKey"][..]);
    let leaf = prop_oneof![
        10 => (keys(), op(), key()).prop_map(move |(name, op, key)| compare(name, op, Value::String(key))),
        1 => (keys(), op(), value()).prop_map(move |(name, op, value)| compare(name, op, value)),
        6 => (select(&NAMES[..]), op(), value()).prop_map(move |(name, op, value)| compare(name, op, value)),
        1 => op().prop_map(move |op| compare("Timestamp", op, Value::DateTime(Ticks(638_000_000_000_000_000)))),
        1 => any::<bool>().prop_map(Filter::Boolean),
        1 => select(vec!["A", "B", "RowKey", "Missing"]).prop_map(|name| Filter::Property(name.to_owned())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 2..5).prop_map(Filter::And),
            3 => vec(inner.clone(), 2..5).prop_map(Filter::Or),
            1 => inner.prop_map(|term| Filter::Not(Box::new(term))),
        ]
    })
}

/// A place at, behind or between rows.
fn place() -> impl Strategy<Value = Position> {
    (key(), key(), 0..3).prop_map(|(partition, row, kind)| {
        let place = position(&partition, &row);
        match kind {
            0 => place,
            1 => Position::after_row(place.partition, place.row),
            _ => Position::after_partition(place.partition),
        }
    })
}

/// A query and how it is cut into pages.
#[derive(Clone, Debug)]
struct Question {
    filter: Option<Filter>,
    /// The filter travels as text, as it does from a client.
    as_text: bool,
    from: Option<Position>,
    low: Option<Position>,
    high: Option<Position>,
    rows_max: usize,
    bytes_max: usize,
    /// There is no time at all, so that each page ends as soon as the engine looks at the clock.
    late: bool,
}

fn question() -> impl Strategy<Value = Question> {
    let sizes = (prop_oneof![1..6_usize, Just(1000)], prop_oneof![1..60_usize, Just(usize::MAX)]);
    let bounds = (option::weighted(0.2, place()), option::weighted(0.3, place()), option::weighted(0.3, place()));
    (option::weighted(0.95, filter()), any::<bool>(), bounds, sizes, prop::bool::weighted(0.2)).prop_map(
        |(filter, as_text, (from, low, high), (rows_max, bytes_max), late)| Question {
            filter,
            as_text,
            from,
            low,
            high,
            rows_max,
            bytes_max,
            late,
        },
    )
}

/// The entity a brute force looks at.
struct Entity<'a> {
    partition_key: &'a str,
    row_key: &'a str,
    timestamp: Ticks,
    properties: &'a [Property],
}

impl Entity<'_> {
    fn property(&self, name: &str) -> Option<Value> {
        match name {
            "PartitionKey" => Some(Value::String(self.partition_key.to_owned())),
            "RowKey" => Some(Value::String(self.row_key.to_owned())),
            "Timestamp" => Some(Value::DateTime(self.timestamp)),
            name => self.properties.iter().find(|property| property.name == name).map(|found| found.value.clone()),
        }
    }

    fn satisfies(&self, filter: &Filter) -> bool {
        match filter {
            Filter::And(terms) => terms.iter().all(|term| self.satisfies(term)),
            Filter::Or(terms) => terms.iter().any(|term| self.satisfies(term)),
            Filter::Not(term) => !self.satisfies(term),
            Filter::Boolean(value) => *value,
            Filter::Property(name) => self.property(name) == Some(Value::Boolean(true)),
            Filter::Compare { property, op, literal } => match self.property(property) {
                None => false,
                Some(value) => holds(&value, *op, literal),
            },
        }
    }
}

fn holds(value: &Value, op: Op, literal: &Value) -> bool {
    let is_nan = |value: &Value| matches!(value, Value::Double(number) if number.is_nan());
    let are_numbers = is_number(value) && is_number(literal);
    if are_numbers && (is_nan(value) || is_nan(literal)) {
        return op == Op::Ne;
    }
    let order = match (value, literal) {
        _ if are_numbers => number_order(value, literal),
        (Value::Binary(a), Value::Binary(b)) => a.cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.0.cmp(&b.0),
        (Value::Guid(a), Value::Guid(b)) => a.to_string().cmp(&b.to_string()),
        (Value::String(a), Value::String(b)) => a.encode_utf16().cmp(b.encode_utf16()),
        // Types that do not compare: the property is the lesser.
        _ => Ordering::Less,
    };
    match op {
        Op::Eq => order.is_eq(),
        Op::Ne => order.is_ne(),
        Op::Gt => order.is_gt(),
        Op::Ge => order.is_ge(),
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Double(_) | Value::Int32(_) | Value::Int64(_))
}

/// The order of two numbers, neither of which is NaN: by their halves, so that a fraction counts, as wide integers, which
/// hold every Int64 and every double of the tests but those that are greater than all of them.
fn number_order(a: &Value, b: &Value) -> Ordering {
    let halves = |value: &Value| match value {
        Value::Int32(number) => i128::from(*number) * 2,
        Value::Int64(number) => i128::from(*number) * 2,
        // Doubling is exact, and so is the conversion of whole numbers; it stops at the ends of the range.
        Value::Double(number) => (*number * 2.0) as i128,
        other => panic!("{other:?} is no number"),
    };
    halves(a).cmp(&halves(b))
}

/// Inserts the rows, partition by partition, and returns the timestamps.
async fn fill(
    service: &TableService,
    table: &Table,
    rows: &BTreeMap<(String, String), Vec<Property>>,
) -> BTreeMap<(String, String), Ticks> {
    let mut timestamps = BTreeMap::new();
    let mut partitions: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for ((partition, row), properties) in rows {
        let insert = change(partition, row, ChangeKind::Insert(properties.clone().into()));
        partitions.entry(partition).or_default().push((row, insert));
    }
    for (partition, inserts) in partitions {
        let changes: Vec<_> = inserts.iter().map(|(_, insert)| insert.clone()).collect();
        let timestamp = apply(service, table, &changes).await.expect("new rows");
        timestamps.extend(inserts.iter().map(|(row, _)| ((partition.to_owned(), row.to_string()), timestamp)));
    }
    timestamps
}

async fn check(
    service: &TableService,
    table: &Table,
    rows: &BTreeMap<(String, String), Vec<Property>>,
    timestamps: &BTreeMap<(String, String), Ticks>,
    question: &Question,
) -> Result<(), TestCaseError> {
    let filter = match &question.filter {
        Some(filter) if question.as_text => Filter::parse(&filter.to_string()).expect("the text of a filter"),
        filter => filter.clone(),
    };

    // In the order of the service, by UTF-16 unit.
    let mut expected: Vec<_> = rows
        .iter()
        .filter(|((partition_key, row_key), properties)| {
            let timestamp = timestamps[&(partition_key.clone(), row_key.clone())];
            let place = position(partition_key, row_key);
            let entity = Entity { partition_key, row_key, timestamp, properties };
            question.from.as_ref().is_none_or(|from| place >= *from)
                && question.low.as_ref().is_none_or(|low| place >= *low)
                && question.high.as_ref().is_none_or(|high| place < *high)
                && question.filter.as_ref().is_none_or(|filter| entity.satisfies(filter))
        })
        .map(|((partition_key, row_key), properties)| Found {
            partition_key: partition_key.clone(),
            row_key: row_key.clone(),
            timestamp: timestamps[&(partition_key.clone(), row_key.clone())],
            properties: properties.clone(),
        })
        .collect();
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    expected.sort_by_key(|found| (units(&found.partition_key), units(&found.row_key)));

    let mut found = Vec::new();
    let mut from = question.from.clone();
    loop {
        let paging = Paging {
            from: from.clone(),
            low: question.low.clone(),
            high: question.high.clone(),
            rows_max: question.rows_max,
            bytes_max: question.bytes_max,
            deadline: if question.late { Instant::now() } else { no_deadline() },
        };
        let page = query(service, table, filter.as_ref(), &paging).await.expect("a page");
        prop_assert!(page.rows.len() <= question.rows_max, "a page of {} rows", page.rows.len());
        let full_before_last = page.rows.len().saturating_sub(1) * ROW_BYTES >= question.bytes_max;
        prop_assert!(!full_before_last, "a page of {} rows goes on behind its size", page.rows.len());
        prop_assert!(page.rows_read >= page.rows.len() as u64, "more was returned than read");
        prop_assert!(page.rows_read <= rows.len() as u64, "more was read than there is");
        found.extend(page.rows);
        let Some((partition, row)) = page.next else { break };
        let next = position(&partition, &row);
        prop_assert!(from.as_ref().is_none_or(|from| next > *from), "the page ends where it began");
        prop_assert!(rows.contains_key(&(partition, row)), "a token names a row");
        from = Some(next);
    }
    // The debug form, because NaN is not equal to itself.
    prop_assert_eq!(format!("{found:#?}"), format!("{expected:#?}"));
    Ok(())
}

/// Runs a test with random inputs, and fails with the least that it fails with.
fn for_all<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let persistence = FileFailurePersistence::WithSource("regressions");
    let config = ProptestConfig {
        cases,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(persistence)),
        ..ProptestConfig::default()
    };
    if let Err(failure) = TestRunner::new(config).run(&strategy, test) {
        panic!("{failure}");
    }
}

/// Asks questions of random rows, each case in a new table of the same service.
fn run(service: &TableService, runtime: &tokio::runtime::Runtime, cases: u32) {
    for_all(cases, (rows(), vec(question(), 1..8)), |(rows, questions)| {
        runtime.block_on(async {
            let table = create(service, "Rows").await;
            let timestamps = fill(service, &table, &rows).await;
            let mut outcome = Ok(());
            for question in &questions {
                outcome = outcome.and(check(service, &table, &rows, &timestamps, question).await);
            }
            service.delete_table(ACCOUNT, &table.name).await.expect("the table is there");
            outcome
        })
    });
}

#[test]
fn a_plan_changes_nothing_but_the_cost_in_memory() {
    let runtime = runtime();
    let service = runtime.block_on(TableService::open(Arc::new(Memory::new()))).expect("an empty store opens");
    run(&service, &runtime, 4000);
}

#[test]
fn a_plan_changes_nothing_but_the_cost_in_rocksdb() {
    let runtime = runtime();
    let folder = folder();
    let store = Arc::new(rocks(folder.path()));
    let service = runtime.block_on(TableService::open(store)).expect("an empty store opens");
    run(&service, &runtime, 400);
}

/// So many rows that the engine remembers numbers of them.
const MANY_ROWS: usize = 1200;

/// The key of one of many rows.
fn many(number: usize) -> (String, String) {
    (["a", "b"][number * 2 / MANY_ROWS].to_owned(), format!("{number:05}"))
}

/// Nearly all rows have the same properties, and some are given others between the questions. What was asked is asked again, and
/// whoever was changed is asked for.
#[test]
fn what_is_remembered_of_rows_changes_nothing_but_the_cost() {
    let runtime = runtime();
    let folder = folder();
    let store = Arc::new(rocks(folder.path()));
    let service = runtime.block_on(TableService::open(store)).expect("an empty store opens");
    let rounds = vec(((0..MANY_ROWS, properties()), question()), 1..12);
    for_all(20, (properties(), rounds), |(usual, rounds)| {
        runtime.block_on(async {
            let table = create(&service, "Rows").await;
            let mut rows: BTreeMap<_, _> = (0..MANY_ROWS).map(|number| (many(number), usual.clone())).collect();
            let mut timestamps = fill(&service, &table, &rows).await;
            let mut outcome = Ok(());
            for ((number, properties), question) in &rounds {
                let equal = |Property { name, value }: &Property| Filter::Compare {
                    property: name.clone(),
                    op: Op::Eq,
                    literal: value.clone(),
                };
                let wanted = properties.iter().map(|property| Question {
                    filter: Some(equal(property)),
                    rows_max: 1000,
                    bytes_max: usize::MAX,
                    ..question.clone()
                });
                let questions: Vec<Question> = wanted.chain([question.clone()]).collect();
                for question in &questions {
                    outcome = outcome.and(check(&service, &table, &rows, &timestamps, question).await);
                }
                let (partition, row) = many(*number);
                let replace = change(&partition, &row, ChangeKind::Replace(properties.clone().into(), None));
                let timestamp = apply_one(&service, &table, replace).await.expect("a row that is there");
                timestamps.insert(many(*number), timestamp);
                rows.insert(many(*number), properties.clone());
                for question in &questions {
                    outcome = outcome.and(check(&service, &table, &rows, &timestamps, question).await);
                }
            }
            service.delete_table(ACCOUNT, &table.name).await.expect("the table is there");
            outcome
        })
    });
}
