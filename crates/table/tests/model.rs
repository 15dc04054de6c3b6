//! The service does what a small model of it says, step by step.
//!
//! Random steps are taken on a service over both engines side by side, and on a map in memory that states the rules in the
//! plainest way. Every answer must agree: success, code and index of the error, entities, tables. A failure is shrunk to
//! the shortest list of steps that shows it.

mod support;

use partita_model::{ETag, IfMatch, Position, Property, ServiceError, Ticks, Value};
use partita_odata::Filter;
use partita_table::{Change, ChangeError, ChangeKind, Encoded, Table, TableQuery, TableService};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::*;

/// Two tables, one of them under two spellings.
const TABLES: [&str; 3] = ["Left", "LEFT", "Right"];
const PARTITIONS: [&str; 2] = ["", "p"];
const ROWS: [&str; 4] = ["", "a", "\u{1F600}", "\u{E001}"];

/// What may be asked of the entity that is changed.
#[derive(Clone, Copy, Debug)]
enum Condition {
    Any,
    /// The tag it has; if it is absent, the tag it last had.
    Current,
    /// A tag that it had before, or else one that never was.
    Stale,
    Foreign,
}

/// What is written.
#[derive(Clone, Debug)]
enum Content {
    Few(Vec<Property>),
    /// So many that two of another letter are too many together.
    Many(char),
    TooLong,
}

#[derive(Clone, Debug)]
enum Kind {
    Insert(Content),
    Replace(Content, Option<Condition>),
    Merge(Content, Option<Condition>),
    Delete(Condition),
}

#[derive(Clone, Debug)]
enum Step {
    CreateTable(&'static str),
    DropTable(&'static str),
    SetPolicies(&'static str, Vec<&'static str>),
    ListTables {
        top: usize,
    },
    Apply {
        table: &'static str,
        partition: &'static str,
        changes: BTreeMap<&'static str, Kind>,
        reversed: bool,
    },
    Get(&'static str, &'static str, &'static str),
    Query {
        table: &'static str,
        which: Which,
        top: usize,
    },
    /// Reads and writes through what was known of the table that was dropped last.
    UseDropped(Kind),
}

/// Which entities a query asks for.
#[derive(Clone, Copy, Debug)]
enum Which {
    All,
    Partition(&'static str),
    Point(&'static str, &'static str),
    RowsFrom(&'static str),
    WithA(i32),
}

fn properties() -> impl Strategy<Value = Vec<Property>> {
    let value = prop_oneof![
        4 => (0..3).prop_map(Value::Int32),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => select(vec!["", "text"]).prop_map(|text| Value::String(text.to_owned())),
        1 => Just(Value::Int64(1)),
    ];
    btree_map(select(&["A", "B", "C"][..]), value, 0..3)
        .prop_map(|named| named.into_iter().map(Property::from).collect())
}

fn kind() -> impl Strategy<Value = Kind> {
    let content = || {
        prop_oneof![
            20 => properties().prop_map(Content::Few),
            2 => select(vec!['x', 'y']).prop_map(Content::Many),
            1 => Just(Content::TooLong),
        ]
    };
    let condition = || {
        prop_oneof![Just(Condition::Any), Just(Condition::Current), Just(Condition::Stale), Just(Condition::Foreign)]
    };
    prop_oneof![
        3 => content().prop_map(Kind::Insert),
        3 => (content(), prop::option::of(condition())).prop_map(|(content, condition)| Kind::Replace(content, condition)),
        3 => (content(), prop::option::of(condition())).prop_map(|(content, condition)| Kind::Merge(content, condition)),
        2 => condition().prop_map(Kind::Delete),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let table = || select(&TABLES[..]);
    let partition = || select(&PARTITIONS[..]);
    let row = || select(&ROWS[..]);
    let which = prop_oneof![
        Just(Which::All),
        partition().prop_map(Which::Partition),
        (partition(), row()).prop_map(|(partition, row)| Which::Point(partition, row)),
        row().prop_map(Which::RowsFrom),
        (0..3).prop_map(Which::WithA),
    ];
    prop_oneof![
        3 => table().prop_map(Step::CreateTable),
        1 => table().prop_map(Step::DropTable),
        1 => (table(), vec(select(vec!["one", "two"]), 0..2)).prop_map(|(table, ids)| Step::SetPolicies(table, ids)),
        1 => (1..4_usize).prop_map(|top| Step::ListTables { top }),
        20 => (table(), partition(), btree_map(row(), kind(), 1..4), any::<bool>())
            .prop_map(|(table, partition, changes, reversed)| Step::Apply { table, partition, changes, reversed }),
        3 => (table(), partition(), row()).prop_map(|(table, partition, row)| Step::Get(table, partition, row)),
        3 => (table(), which, 1..5_usize).prop_map(|(table, which, top)| Step::Query { table, which, top }),
        1 => kind().prop_map(Step::UseDropped),
    ]
}

impl Content {
    fn properties(&self) -> Vec<Property> {
        match self {
            Content::Few(properties) => properties.clone(),
            Content::Many(letter) => {
                let numbered = |number| Property { name: format!("{letter}{number}"), value: Value::Boolean(true) };
                (0..200).map(numbered).collect()
            }
            Content::TooLong => named(&[("A", Value::String("x".repeat(32_769)))]),
        }
    }
}

impl Which {
    fn text(self) -> String {
        match self {
            Which::All => String::new(),
            Which::Partition(partition) => format!("PartitionKey eq '{partition}'"),
            Which::Point(partition, row) => format!("PartitionKey eq '{partition}' and RowKey eq '{row}'"),
            Which::RowsFrom(row) => format!("RowKey ge '{row}'"),
            Which::WithA(number) => format!("A eq {number}"),
        }
    }

    fn holds(self, entity: &Found) -> bool {
        match self {
            Which::All => true,
            Which::Partition(partition) => entity.partition_key == partition,
            Which::Point(partition, row) => entity.partition_key == partition && entity.row_key == row,
            Which::RowsFrom(row) => units(&entity.row_key) >= units(row),
            // Int32 and Int64 compare by value.
            Which::WithA(number) => {
                entity.value("A") == Some(&Value::Int32(number))
                    || entity.value("A") == Some(&Value::Int64(number.into()))
            }
        }
    }
}

/// Keys are ordered by UTF-16 unit.
fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

type Key = (Vec<u16>, Vec<u16>);

#[derive(Clone, Debug, Default)]
struct ModelTable {
    name: String,
    policies: Vec<String>,
    entities: BTreeMap<Key, Found>,
}

/// The rules of the service for one account.
#[derive(Debug, Default)]
struct Model {
    /// By lower-case name.
    tables: BTreeMap<String, ModelTable>,
    /// Every version an entity with these keys ever had, whatever its table.
    history: BTreeMap<Key, Vec<Ticks>>,
    last_version: Ticks,
    dropped: Option<Arc<Table>>,
}

/// A code, with the index of the change if there are changes.
type Refusal = (usize, &'static str);

impl Model {
    fn table(&mut self, name: &str) -> Result<&mut ModelTable, &'static str> {
        self.tables.get_mut(&name.to_lowercase()).ok_or("TableNotFound")
    }

    /// What the client sends for a condition.
    fn if_match(&self, table: &str, key: &Key, condition: Condition) -> IfMatch {
        let none = Vec::new();
        let history = self.history.get(key).unwrap_or(&none);
        let present = self.tables.get(&table.to_lowercase()).and_then(|table| table.entities.get(key));
        let current = present.map(|entity| entity.timestamp).or(history.last().copied());
        let tag = match condition {
            Condition::Any => return IfMatch::Any,
            Condition::Foreign => return IfMatch::Foreign,
            Condition::Current => current,
            Condition::Stale => history.iter().rev().copied().find(|version| Some(*version) != current),
        };
        IfMatch::Tag(ETag(tag.unwrap_or(Ticks(1))))
    }

    /// The entities of the partition after the changes, or the first change that cannot be made. All changes look at the
    /// entities as they were before.
    fn apply(&mut self, table: &str, changes: &[Change]) -> Result<BTreeMap<Key, Option<Vec<Property>>>, Refusal> {
        let entities = &self.table(table).map_err(|code| (0, code))?.entities;
        let mut after = BTreeMap::new();
        for (index, change) in changes.iter().enumerate() {
            let key = (units(change.partition_key.as_str()), units(change.row_key.as_str()));
            let present = entities.get(&key);
            let outcome = match &change.kind {
                ChangeKind::Insert(record) => {
                    let properties = properties_of(record);
                    limits(&properties).and(match present {
                        Some(_) => Err("EntityAlreadyExists"),
                        None => Ok(Some(properties)),
                    })
                }
                ChangeKind::Replace(record, if_match) => {
                    let properties = properties_of(record);
                    limits(&properties).and_then(|()| condition(present, *if_match)).map(|()| Some(properties))
                }
                ChangeKind::Merge(record, if_match) => condition(present, *if_match).and_then(|()| {
                    let before = present.map_or(Vec::new(), |entity| entity.properties.clone());
                    let merged = merged(before, &properties_of(record));
                    limits(&merged).map(|()| Some(merged))
                }),
                ChangeKind::Delete(if_match) => condition(present, Some(*if_match)).map(|()| None),
            };
            after.insert(key, outcome.map_err(|code| (index, code))?);
        }
        Ok(after)
    }
}

fn properties_of(record: &Encoded) -> Vec<Property> {
    record.as_record().to_properties().expect("a whole record")
}

/// The conditional matrix.
fn condition(present: Option<&Found>, if_match: Option<IfMatch>) -> Result<(), &'static str> {
    match (if_match, present) {
        (None, _) | (Some(IfMatch::Any), Some(_)) => Ok(()),
        (Some(_), None) => Err("ResourceNotFound"),
        (Some(IfMatch::Tag(tag)), Some(entity)) if tag.0 == entity.timestamp => Ok(()),
        (Some(_), Some(_)) => Err("UpdateConditionNotSatisfied"),
    }
}

fn limits(properties: &[Property]) -> Result<(), &'static str> {
    let is_long = |property: &Property| matches!(&property.value, Value::String(text) if text.len() > 32_768);
    if properties.len() > 252 {
        Err("TooManyProperties")
    } else if properties.iter().any(is_long) {
        Err("PropertyValueTooLarge")
    } else {
        Ok(())
    }
}

fn merged(mut properties: Vec<Property>, changes: &[Property]) -> Vec<Property> {
    for change in changes {
        match properties.iter().position(|property| property.name == change.name) {
            Some(at) => properties[at] = change.clone(),
            None => properties.push(change.clone()),
        }
    }
    properties
}

fn code<T>(result: Result<T, ServiceError>) -> Result<T, &'static str> {
    result.map_err(|error| error.code())
}

/// The model and the service, walking side by side.
struct Walk<'a> {
    service: &'a TableService,
    account: String,
    model: Model,
}

impl Walk<'_> {
    async fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::CreateTable(name) => self.create_table(name).await,
            Step::DropTable(name) => self.drop_table(name).await,
            Step::SetPolicies(name, ids) => self.set_policies(name, ids).await,
            Step::ListTables { top } => self.list_tables(*top),
            Step::Apply { table, partition, changes, reversed } => {
                let mut changes: Vec<_> =
                    changes.iter().map(|(row, kind)| self.change(table, partition, row, kind)).collect();
                if *reversed {
                    changes.reverse();
                }
                self.apply(table, &changes).await
            }
            Step::Get(table, partition, row) => self.get(table, partition, row).await,
            Step::Query { table, which, top } => self.query(table, *which, *top).await,
            Step::UseDropped(kind) => self.use_dropped(kind).await,
        }
    }

    fn table(&self, name: &str) -> Result<Arc<Table>, &'static str> {
        code(self.service.table(&self.account, &table_name(name)))
    }

    async fn create_table(&mut self, name: &str) -> Result<(), TestCaseError> {
        let created = code(self.service.create_table(&self.account, table_name(name)).await);
        let expected = match self.model.tables.contains_key(&name.to_lowercase()) {
            true => Err("TableAlreadyExists"),
            false => Ok(name.to_owned()),
        };
        prop_assert_eq!(created.map(|table| table.name.as_str().to_owned()), expected.clone());
        if expected.is_ok() {
            let table = ModelTable { name: name.to_owned(), ..ModelTable::default() };
            self.model.tables.insert(name.to_lowercase(), table);
        }
        Ok(())
    }

    async fn drop_table(&mut self, name: &str) -> Result<(), TestCaseError> {
        let before = self.table(name);
        let dropped = code(self.service.delete_table(&self.account, &table_name(name)).await);
        let expected = match self.model.tables.remove(&name.to_lowercase()) {
            Some(_) => Ok(()),
            None => Err("ResourceNotFound"),
        };
        prop_assert_eq!(dropped, expected);
        self.model.dropped = before.ok().or(self.model.dropped.take());
        Ok(())
    }

    async fn set_policies(&mut self, name: &str, ids: &[&str]) -> Result<(), TestCaseError> {
        let policies = ids.iter().map(|id| policy(id, "r")).collect();
        let set = code(self.service.set_access_policies(&self.account, &table_name(name), policies).await);
        let expected =
            self.model.table(name).map(|table| table.policies = ids.iter().map(ToString::to_string).collect());
        prop_assert_eq!(set, expected);
        Ok(())
    }

    fn list_tables(&self, top: usize) -> Result<(), TestCaseError> {
        let mut listed = Vec::new();
        let mut from: Option<String> = None;
        loop {
            let query = TableQuery { filter: None, from: from.as_deref(), rows_max: top };
            let page = self.service.query_tables(&self.account, query);
            prop_assert!(page.tables.len() <= top);
            listed.extend(page.tables.iter().map(|table| {
                let ids = table.access_policies.iter().map(|policy| policy.id.clone()).collect::<Vec<_>>();
                (table.name.as_str().to_owned(), ids)
            }));
            let Some(next) = page.next else { break };
            from = Some(next.name.lower());
        }
        let expected: Vec<_> =
            self.model.tables.values().map(|table| (table.name.clone(), table.policies.clone())).collect();
        prop_assert_eq!(listed, expected);
        Ok(())
    }

    fn change(&self, table: &str, partition: &str, row: &str, kind: &Kind) -> Change {
        let key = (units(partition), units(row));
        let if_match = |condition| self.model.if_match(table, &key, condition);
        let kind = match kind {
            Kind::Insert(content) => ChangeKind::Insert(content.properties().into()),
            Kind::Replace(content, condition) => {
                ChangeKind::Replace(content.properties().into(), condition.map(if_match))
            }
            Kind::Merge(content, condition) => ChangeKind::Merge(content.properties().into(), condition.map(if_match)),
            Kind::Delete(condition) => ChangeKind::Delete(if_match(*condition)),
        };
        change(partition, row, kind)
    }

    async fn apply(&mut self, table: &str, changes: &[Change]) -> Result<(), TestCaseError> {
        let expected = self.model.apply(table, changes);
        let applied = match self.table(table) {
            Ok(found) => self.service.apply(&found, changes, no_deadline()).await,
            Err(_) => Err(ChangeError { index: 0, error: ServiceError::TableNotFound }),
        };
        let applied = applied.map_err(|ChangeError { index, error }| (index, error.code()));
        let (applied, expected) = match (applied, expected) {
            (Ok(applied), Ok(expected)) => (applied, expected),
            (applied, expected) => {
                prop_assert_eq!(applied.map(|_| ()), expected.map(|_| ()));
                return Ok(());
            }
        };
        prop_assert!(applied.timestamp > self.model.last_version, "versions grow");
        self.model.last_version = applied.timestamp;
        prop_assert_eq!(applied.records.len(), changes.len());
        for (change, record) in changes.iter().zip(&applied.records) {
            let key = (units(change.partition_key.as_str()), units(change.row_key.as_str()));
            let written = expected[&key].as_ref().map(|properties| partita_model::Record::encode(properties));
            prop_assert_eq!(record.as_deref(), written.as_deref(), "what was written is told");
        }
        for change in changes {
            let key = (units(change.partition_key.as_str()), units(change.row_key.as_str()));
            match &expected[&key] {
                Some(properties) => {
                    self.model.history.entry(key.clone()).or_default().push(applied.timestamp);
                    let entity = Found {
                        partition_key: change.partition_key.as_str().to_owned(),
                        row_key: change.row_key.as_str().to_owned(),
                        timestamp: applied.timestamp,
                        properties: properties.clone(),
                    };
                    self.model.table(table).expect("it was there").entities.insert(key, entity);
                }
                None => {
                    self.model.table(table).expect("it was there").entities.remove(&key);
                }
            }
        }
        Ok(())
    }

    async fn get(&mut self, table: &str, partition: &str, row: &str) -> Result<(), TestCaseError> {
        let got = match self.table(table) {
            Ok(table) => code(get(self.service, &table, partition, row).await),
            Err(code) => Err(code),
        };
        let expected = self
            .model
            .table(table)
            .and_then(|table| table.entities.get(&(units(partition), units(row))).cloned().ok_or("ResourceNotFound"));
        prop_assert_eq!(got, expected);
        Ok(())
    }

    async fn query(&mut self, table: &str, which: Which, top: usize) -> Result<(), TestCaseError> {
        let expected = self
            .model
            .table(table)
            .map(|table| table.entities.values().filter(|entity| which.holds(entity)).cloned().collect::<Vec<_>>());
        let found = match self.table(table) {
            Ok(table) => Ok(self.pages(&table, which, top).await),
            Err(code) => Err(code),
        };
        prop_assert_eq!(found, expected);
        Ok(())
    }

    async fn pages(&self, table: &Table, which: Which, top: usize) -> Vec<Found> {
        let filter = Filter::parse(&which.text()).expect("a filter");
        let mut rows = Vec::new();
        let mut from: Option<Position> = None;
        loop {
            let paging = Paging { from: from.clone(), rows_max: top, ..Paging::default() };
            let page = query(self.service, table, filter.as_ref(), &paging).await.expect("the table is there");
            rows.extend(page.rows);
            let Some((partition, row)) = page.next else { return rows };
            from = Some(position(&partition, &row));
        }
    }

    /// Whoever looked a table up before it was dropped is told, and writes nothing, even if there is another of its name.
    async fn use_dropped(&self, kind: &Kind) -> Result<(), TestCaseError> {
        let Some(table) = self.model.dropped.clone() else { return Ok(()) };
        let change = self.change(table.name.as_str(), "p", "a", kind);
        let applied = code(apply_one(self.service, &table, change).await);
        prop_assert_eq!(applied, Err("TableNotFound"));
        prop_assert_eq!(code(get(self.service, &table, "p", "a").await), Err("TableNotFound"));
        prop_assert_eq!(code(everything(self.service, &table).await), Err("TableNotFound"));
        Ok(())
    }
}

#[test]
fn the_service_does_what_the_model_says() {
    let runtime = runtime();
    let folder = folder();
    let store = Arc::new(mirror(folder.path()));
    let service = runtime.block_on(TableService::open(store)).expect("an empty store opens");
    let config = ProptestConfig {
        cases: 1000,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    };
    // Each case has an account of its own, which starts with one table.
    let cases = Cell::new(0);
    let outcome = TestRunner::new(config).run(&vec(step(), 1..60), |steps| {
        cases.set(cases.get() + 1);
        let account = format!("account{}", cases.get());
        let mut walk = Walk { service: &service, account, model: Model::default() };
        runtime.block_on(async {
            walk.create_table("Left").await?;
            for step in &steps {
                walk.take(step).await?;
            }
            walk.list_tables(1)?;
            for table in ["Left", "Right"] {
                walk.query(table, Which::All, 1000).await?;
            }
            Ok(())
        })
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
