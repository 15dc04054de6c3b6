//! Golden scripts: what the service answers, command by command, in text that can be reviewed without knowing Rust.
//!
//! Each file in `tests/scripts` starts with no tables and runs on both engines at once. `UPDATE_GOLDENFILES=1` writes the
//! answers anew; read the difference before it is committed.
//!
//! ```text
//! create T                       drop T                        tables [prefix=a] [filter=".."] [top=2] [from=name|next]
//! insert T p r Name=Ann Age=39   get T p r                     query T [".."] [top=2] [from=p/r|next]
//! replace T p r [if=v1] A=1      delete T p r [if=v1]                  [low=p/r] [high=p/r] [through=p|p/r] [bytes=30]
//! merge T p r [if="*"] A=1       begin T, changes, commit      policies T, set_policies T "id permission start expiry"
//!                                                              properties, set_properties key=value ..
//! ```
//!
//! A value is a literal as in a filter (`39`, `39L`, `1.5`, `true`, `datetime'..'`, `guid'..'`, `X'0a'`, `'text'`), or else a
//! text. `null` stands for a property that is not given: no null comes as far as the service. `"x*3"` is `xxx`, `"X*3"`
//! three bytes, and a name `"p*3"` stands for `p1`, `p2` and `p3`; so does a RowKey in a transaction.
//!
//! Timestamps, and so the ETags, are called `v1`, `v2` and so on in the order in which they appear; `if=never` is a tag that
//! no entity has, and `if=foreign` one that was never ours. `{v1}` in a filter stands for the timestamp. A delete without
//! `if` means `*`. An entity is shown as `p/r`, its version and its properties, an empty key in quotes.

mod support;

use goldenscript::{ArgumentConsumer, Command, Context};
use partita_model::{
    CorsRule, ETag, IfMatch, Metrics, Position, Property, ServiceError, ServiceProperties, StoredAccessPolicy,
    TableName, TableNameError, Ticks, Value,
};
use partita_odata::Filter;
use partita_table::{Change, ChangeError, ChangeKind, Table, TableQuery, TableService};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use support::{Found, Paging, runtime};
use tempfile::TempDir;
use tokio::runtime::Runtime;

test_each_file::test_each_path! { in "crates/table/tests/scripts" as script => run }

fn run(path: &Path) {
    goldenscript::run(&mut Runner::new(), path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// More properties than this are shown as a number.
const PROPERTIES_SHOWN_MAX: usize = 8;
/// Longer values are shown by their length.
const VALUE_CHARS_SHOWN_MAX: usize = 80;

type Output = Result<String, Box<dyn Error>>;

struct Runner {
    runtime: Runtime,
    service: TableService,
    /// In the order in which they appeared.
    versions: Vec<Ticks>,
    /// The changes since `begin`.
    transaction: Option<(Arc<Table>, Vec<Change>)>,
    /// Where the last query ended.
    next_row: Option<(String, String)>,
    next_table: Option<String>,
    _folder: TempDir,
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, context: &Context) -> Output {
        let account = context.prefix.as_deref().unwrap_or(support::ACCOUNT);
        let mut args = command.consume_args();
        let output = match command.name.as_str() {
            "create" => self.create(account, &mut args)?,
            "drop" => self.drop(account, &mut args)?,
            "tables" => self.tables(account, &mut args)?,
            "policies" => self.policies(account, &mut args)?,
            "set_policies" => self.set_policies(account, &mut args)?,
            "properties" => show_service_properties(&self.service.service_properties(account)),
            "set_properties" => self.set_properties(account, &mut args)?,
            "insert" | "replace" | "merge" | "delete" => self.change(account, &command.name, &mut args)?,
            "begin" => self.begin(account, &mut args)?,
            "commit" => self.commit()?,
            "get" => self.get(account, &mut args)?,
            "query" => self.query(account, &mut args)?,
            name => return Err(format!("there is no command {name}").into()),
        };
        args.reject_next()?;
        Ok(output)
    }

    fn end_script(&mut self) -> Result<(), Box<dyn Error>> {
        if self.transaction.is_some() { Err("a transaction without commit".into()) } else { Ok(()) }
    }
}

impl Runner {
    fn new() -> Runner {
        let runtime = runtime();
        let folder = support::folder();
        let store = Arc::new(support::mirror(folder.path()));
        let service = runtime.block_on(TableService::open(store)).expect("an empty store opens");
        Runner {
            runtime,
            service,
            versions: Vec::new(),
            transaction: None,
            next_row: None,
            next_table: None,
            _folder: folder,
        }
    }

    fn create(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let name = match TableName::parse(next(args, "table")?) {
            Ok(name) => name,
            Err(error) => return Ok(name_error(error).code().to_owned()),
        };
        Ok(match self.runtime.block_on(self.service.create_table(account, name)) {
            Ok(table) => format!("created {}", table.name),
            Err(error) => error.code().to_owned(),
        })
    }

    fn drop(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let name = table_name(args)?;
        Ok(match self.runtime.block_on(self.service.delete_table(account, &name)) {
            Ok(()) => "dropped".to_owned(),
            Err(error) => error.code().to_owned(),
        })
    }

    fn tables(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let prefix = args.take_key("prefix").map(|p| format!("TableName ge '{p}' and TableName lt '{p}{{'"));
        let text = args.take_key("filter").map(str::to_owned).or(prefix).unwrap_or_default();
        let filter = match Filter::parse(&text) {
            Ok(filter) => filter,
            Err(error) => return Ok(error.code().to_owned()),
        };
        let rows_max = args.take_key("top").map_or(Ok(1000), str::parse)?;
        let from = match args.take_key("from") {
            Some("next") => self.next_table.clone(),
            from => from.map(str::to_owned),
        };
        let query = TableQuery { filter: filter.as_ref(), from: from.as_deref(), rows_max };
        let page = self.service.query_tables(account, query);
        let mut out = page.tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(" ");
        if out.is_empty() {
            out.push_str("none");
        }
        self.next_table = page.next.map(|table| table.name.lower());
        if let Some(next) = &self.next_table {
            write!(out, ", next {next}")?;
        }
        Ok(out)
    }

    fn policies(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let table = match self.service.table(account, &table_name(args)?) {
            Ok(table) => table,
            Err(error) => return Ok(error.code().to_owned()),
        };
        let date = |date: Option<Ticks>| date.map_or("-".to_owned(), |date| date.to_string());
        let lines = table.access_policies.iter().map(|policy| {
            let permission = policy.permission.as_deref().unwrap_or("-");
            format!("{} {permission} {} {}", policy.id, date(policy.start), date(policy.expiry))
        });
        Ok(or_none(lines.collect()))
    }

    fn set_policies(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let name = table_name(args)?;
        let mut policies = Vec::new();
        while let Some(text) = args.next_pos() {
            let parts: Vec<_> = text.split(' ').collect();
            let [id, permission, start, expiry] = parts[..] else { return Err("id permission start expiry".into()) };
            let date = |text: &str| (text != "-").then(|| Ticks::parse_iso(text).expect("a date"));
            policies.push(StoredAccessPolicy {
                id: id.to_owned(),
                start: date(start),
                expiry: date(expiry),
                permission: (permission != "-").then(|| permission.to_owned()),
            });
        }
        Ok(match self.runtime.block_on(self.service.set_access_policies(account, &name, policies)) {
            Ok(()) => "set".to_owned(),
            Err(error) => error.code().to_owned(),
        })
    }

    fn set_properties(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let mut settings = Vec::new();
        while let Some(setting) = args.next_key() {
            settings.push(setting);
        }
        let update = |properties: &mut ServiceProperties| {
            if settings.iter().any(|(key, _)| *key == "cors") {
                properties.cors.clear();
            }
            for (key, value) in &settings {
                set_property(properties, key, value);
            }
        };
        Ok(match self.runtime.block_on(self.service.update_service_properties(account, update)) {
            Ok(()) => "set".to_owned(),
            Err(error) => error.code().to_owned(),
        })
    }

    fn begin(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let table = self.service.table(account, &table_name(args)?).map_err(|error| error.code())?;
        self.transaction = Some((table, Vec::new()));
        Ok(String::new())
    }

    fn change(&mut self, account: &str, name: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let table_name = if self.transaction.is_none() { Some(table_name(args)?) } else { None };
        let (partition, row) = (next(args, "PartitionKey")?.to_owned(), next(args, "RowKey")?.to_owned());
        let if_match = args.take_key("if").map(|tag| self.if_match(tag)).transpose()?;
        let record = properties(args)?.into();
        let kind = match name {
            "insert" => ChangeKind::Insert(record),
            "replace" => ChangeKind::Replace(record, if_match),
            "merge" => ChangeKind::Merge(record, if_match),
            _ => ChangeKind::Delete(if_match.unwrap_or(IfMatch::Any)),
        };
        let change = |row: &str| support::change(&partition, row, kind.clone());
        match (&mut self.transaction, table_name) {
            (Some((_, changes)), _) => {
                changes.extend(numbered(&row)?.iter().map(|row| change(row)));
                Ok(String::new())
            }
            (None, table_name) => {
                let table_name = table_name.expect("it was read, as there is no transaction");
                let table = match self.service.table(account, &table_name) {
                    Ok(table) => table,
                    Err(error) => return Ok(error.code().to_owned()),
                };
                match self.runtime.block_on(support::apply(&self.service, &table, &[change(&row)])) {
                    Ok(_) if matches!(kind, ChangeKind::Delete(_)) => Ok("deleted".to_owned()),
                    Ok(timestamp) => Ok(self.version(timestamp)),
                    Err(ChangeError { index: 0, error }) => Ok(error.code().to_owned()),
                    Err(error) => Err(format!("there is only one change: {error:?}").into()),
                }
            }
        }
    }

    fn commit(&mut self) -> Output {
        let (table, changes) = self.transaction.take().ok_or("there is no transaction")?;
        Ok(match self.runtime.block_on(support::apply(&self.service, &table, &changes)) {
            Ok(timestamp) => format!("committed {}", self.version(timestamp)),
            Err(ChangeError { index, error }) => format!("{index}: {}", error.code()),
        })
    }

    fn get(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let name = table_name(args)?;
        let (partition, row) = (next(args, "PartitionKey")?, next(args, "RowKey")?);
        let table = match self.service.table(account, &name) {
            Ok(table) => table,
            Err(error) => return Ok(error.code().to_owned()),
        };
        Ok(match self.runtime.block_on(support::get(&self.service, &table, partition, row)) {
            Ok(found) => self.entity(&found),
            Err(error) => error.code().to_owned(),
        })
    }

    fn query(&mut self, account: &str, args: &mut ArgumentConsumer<'_>) -> Output {
        let name = table_name(args)?;
        let text = self.with_timestamps(args.next_pos().unwrap_or_default());
        let mut paging = Paging {
            from: match args.take_key("from") {
                Some("next") => self.next_row.as_ref().map(|(partition, row)| support::position(partition, row)),
                from => from.map(place),
            },
            low: args.take_key("low").map(place),
            high: args.take_key("high").map(place),
            ..Paging::default()
        };
        if let Some(through) = args.take_key("through") {
            let place = place(through);
            paging.high = Some(match through.contains('/') {
                true => Position::after_row(place.partition, place.row),
                false => Position::after_partition(place.partition),
            });
        }
        paging.rows_max = args.take_key("top").map_or(Ok(paging.rows_max), str::parse)?;
        paging.bytes_max = args.take_key("bytes").map_or(Ok(paging.bytes_max), str::parse)?;
        let table = match self.service.table(account, &name) {
            Ok(table) => table,
            Err(error) => return Ok(error.code().to_owned()),
        };
        let filter = match Filter::parse(&text) {
            Ok(filter) => filter,
            Err(error) => return Ok(error.code().to_owned()),
        };
        let page = match self.runtime.block_on(support::query(&self.service, &table, filter.as_ref(), &paging)) {
            Ok(page) => page,
            Err(error) => return Ok(error.code().to_owned()),
        };
        let mut lines: Vec<_> = page.rows.iter().map(|row| self.entity(row)).collect();
        let mut summary = page.class.name().to_owned();
        if page.class != page.azure_class {
            write!(summary, " (Azure: {})", page.azure_class.name())?;
        }
        write!(summary, ", read {}, returned {}", page.rows_read, page.rows.len())?;
        if let Some((partition, row)) = &page.next {
            write!(summary, ", next {}/{}", show_key(partition), show_key(row))?;
        }
        self.next_row = page.next;
        lines.push(summary);
        Ok(lines.join("\n"))
    }

    /// The name of a version.
    fn version(&mut self, timestamp: Ticks) -> String {
        let at = self.versions.iter().position(|version| *version == timestamp).unwrap_or_else(|| {
            let earlier = self.versions.last().copied().unwrap_or_default();
            assert!(timestamp > earlier, "versions grow");
            self.versions.push(timestamp);
            self.versions.len() - 1
        });
        format!("v{}", at + 1)
    }

    fn named_version(&self, name: &str) -> Option<Ticks> {
        let number: usize = name.strip_prefix('v')?.parse().ok()?;
        self.versions.get(number.checked_sub(1)?).copied()
    }

    fn if_match(&self, tag: &str) -> Result<IfMatch, Box<dyn Error>> {
        Ok(match tag {
            "*" => IfMatch::Any,
            "foreign" => IfMatch::Foreign,
            "never" => IfMatch::Tag(ETag(Ticks(1))),
            name => IfMatch::Tag(ETag(self.named_version(name).ok_or_else(|| format!("{name} has not appeared"))?)),
        })
    }

    fn with_timestamps(&self, filter: &str) -> String {
        let mut text = filter.to_owned();
        for (at, timestamp) in self.versions.iter().enumerate() {
            text = text.replace(&format!("{{v{}}}", at + 1), &format!("datetime'{timestamp}'"));
        }
        text
    }

    fn entity(&mut self, found: &Found) -> String {
        let Found { partition_key, row_key, timestamp, properties } = found;
        let version = self.version(*timestamp);
        let mut out = format!("{}/{} {version}", show_key(partition_key), show_key(row_key));
        if properties.len() > PROPERTIES_SHOWN_MAX {
            write!(out, " {} properties", properties.len()).expect("a string takes everything");
        } else {
            for Property { name, value } in properties {
                write!(out, " {name}={}", show_value(value)).expect("a string takes everything");
            }
        }
        out
    }
}

fn next<'a>(args: &mut ArgumentConsumer<'a>, what: &str) -> Result<&'a str, Box<dyn Error>> {
    args.next_pos().ok_or_else(|| format!("{what} is missing").into())
}

fn table_name(args: &mut ArgumentConsumer<'_>) -> Result<TableName, Box<dyn Error>> {
    let name = next(args, "table")?;
    TableName::parse(name).map_err(|error| format!("{name}: {error:?}").into())
}

fn name_error(error: TableNameError) -> ServiceError {
    match error {
        TableNameError::Length => ServiceError::NewTableNameLength,
        TableNameError::Characters => ServiceError::NewTableNameCharacters,
        TableNameError::Reserved => ServiceError::NewTableNameReserved,
    }
}

/// Reads `p/r`, or `p` for the start of a partition. No key holds a slash.
fn place(text: &str) -> Position {
    let (partition, row) = text.split_once('/').unwrap_or((text, ""));
    support::position(partition, row)
}

fn properties(args: &mut ArgumentConsumer<'_>) -> Result<Vec<Property>, Box<dyn Error>> {
    let mut properties = Vec::new();
    while let Some((name, text)) = args.next_key() {
        if text == "null" {
            continue;
        }
        let value = value(text)?;
        properties.extend(numbered(name)?.into_iter().map(|name| Property { name, value: value.clone() }));
    }
    Ok(properties)
}

/// `p1`, `p2` and so on for `p*3`; any other name is itself.
fn numbered(name: &str) -> Result<Vec<String>, Box<dyn Error>> {
    Ok(match name.split_once('*') {
        Some((name, times)) => (1..=times.parse()?).map(|number: usize| format!("{name}{number}")).collect(),
        None => vec![name.to_owned()],
    })
}

fn value(text: &str) -> Result<Value, Box<dyn Error>> {
    if let Some((part, times)) = text.split_once('*') {
        let times: usize = times.parse()?;
        return Ok(match part {
            "X" => Value::Binary(vec![0; times]),
            part => Value::String(part.repeat(times)),
        });
    }
    Ok(match Filter::parse(&format!("P eq {text}")) {
        Ok(Some(Filter::Compare { literal, .. })) => literal,
        _ => Value::String(text.to_owned()),
    })
}

fn show_value(value: &Value) -> String {
    let filter = Filter::Compare { property: "P".to_owned(), op: partita_odata::Op::Eq, literal: value.clone() };
    let literal = filter.to_string();
    let literal = literal.strip_prefix("P eq ").expect("a comparison");
    match value {
        Value::String(text) if literal.len() > VALUE_CHARS_SHOWN_MAX => {
            format!("({} characters)", text.encode_utf16().count())
        }
        Value::Binary(bytes) if literal.len() > VALUE_CHARS_SHOWN_MAX => format!("({} bytes)", bytes.len()),
        _ => literal.escape_debug().to_string().replace("\\'", "'"),
    }
}

fn show_key(key: &str) -> String {
    match key {
        key if key.is_empty() || key.contains(' ') => format!("'{key}'"),
        key if key.len() > VALUE_CHARS_SHOWN_MAX => format!("({} characters)", key.encode_utf16().count()),
        key => key.chars().map(|c| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() }).collect(),
    }
}

fn or_none(lines: Vec<String>) -> String {
    if lines.is_empty() { "none".to_owned() } else { lines.join("\n") }
}

/// `read,write,delete`, days, `on,apis,days` or `off`, and `origins|methods|headers|exposed|seconds`.
fn set_property(properties: &mut ServiceProperties, key: &str, value: &str) {
    let words: Vec<_> = value.split(',').collect();
    let days = words.iter().find_map(|word| word.parse().ok());
    let metrics = || Metrics {
        enabled: words.contains(&"on"),
        include_apis: words.contains(&"on").then(|| words.contains(&"apis")),
        retention_days: days,
    };
    match key {
        "logging" => {
            properties.logging.read = words.contains(&"read");
            properties.logging.write = words.contains(&"write");
            properties.logging.delete = words.contains(&"delete");
            properties.logging.retention_days = days;
        }
        "hour" => properties.hour_metrics = metrics(),
        "minute" => properties.minute_metrics = metrics(),
        "cors" => {
            let list = |text: &str| text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
            let parts: Vec<_> = value.split('|').collect();
            properties.cors.extend((!value.is_empty()).then(|| CorsRule {
                allowed_origins: list(parts[0]),
                allowed_methods: list(parts[1]),
                allowed_headers: list(parts[2]),
                exposed_headers: list(parts[3]),
                max_age_seconds: parts[4].parse().expect("seconds"),
            }));
        }
        key => panic!("there is no setting {key}"),
    }
}

fn show_service_properties(properties: &ServiceProperties) -> String {
    let logging = &properties.logging;
    let mut lines = vec![format!(
        "logging read={} write={} delete={} days={:?}",
        logging.read, logging.write, logging.delete, logging.retention_days
    )];
    for (name, metrics) in [("hour", properties.hour_metrics), ("minute", properties.minute_metrics)] {
        let Metrics { enabled, include_apis, retention_days } = metrics;
        lines.push(format!("{name} enabled={enabled} apis={include_apis:?} days={retention_days:?}"));
    }
    for rule in &properties.cors {
        let CorsRule { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age_seconds } = rule;
        let lists = [allowed_origins, allowed_methods, allowed_headers, exposed_headers];
        let lists = lists.map(|list| list.join(","));
        lines.push(format!("cors {}|{max_age_seconds}", lists.join("|")));
    }
    lines.join("\n")
}
