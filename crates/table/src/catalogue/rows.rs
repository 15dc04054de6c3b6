//! The rows of the catalogue as records.
//!
//! Lists are numbered members: `Policy0.Id`, `Cors2.AllowedOrigins`. A member that is absent is `None` or the default,
//! so that rows written before a member existed stay readable.

use super::{CATALOGUE, Table};
use partita_model::{
    CorruptRecord, CorsRule, Logging, Metrics, Property, Record, ServiceProperties, StoredAccessPolicy, TableName,
    Ticks, Value, ValueRef,
};
use partita_store::Space;

/// No count comes near it. One that does is damaged, and would not be written again once it has grown.
const COUNT_MAX: i64 = 1 << 62;

/// Reads and writes named members of a record.
struct Members<'a>(Record<'a>);

impl Members<'_> {
    fn text(&self, name: &str) -> Result<Option<String>, CorruptRecord> {
        Ok(match self.0.get(name)? {
            Some(ValueRef::String(text)) => Some(text.to_owned()),
            None => None,
            Some(_) => return Err(CorruptRecord),
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, CorruptRecord> {
        Ok(match self.0.get(name)? {
            Some(ValueRef::Int64(number)) if (0..COUNT_MAX).contains(&number) => Some(number.unsigned_abs()),
            None => None,
            Some(_) => return Err(CorruptRecord),
        })
    }

    fn small<T: TryFrom<u64>>(&self, name: &str) -> Result<Option<T>, CorruptRecord> {
        self.number(name)?.map(|number| T::try_from(number).map_err(|_| CorruptRecord)).transpose()
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, CorruptRecord> {
        Ok(match self.0.get(name)? {
            Some(ValueRef::Boolean(flag)) => Some(flag),
            None => None,
            Some(_) => return Err(CorruptRecord),
        })
    }

    fn moment(&self, name: &str) -> Result<Option<Ticks>, CorruptRecord> {
        Ok(match self.0.get(name)? {
            Some(ValueRef::DateTime(moment)) => Some(moment),
            None => None,
            Some(_) => return Err(CorruptRecord),
        })
    }

    /// A list of texts, none of which holds a comma.
    fn list(&self, name: &str) -> Result<Vec<String>, CorruptRecord> {
        let text = self.text(name)?.unwrap_or_default();
        Ok(text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect())
    }
}

fn member(name: impl Into<String>, value: Value) -> Property {
    Property { name: name.into(), value }
}

fn number(name: impl Into<String>, number: u64) -> Property {
    member(name, Value::Int64(i64::try_from(number).expect("counts stay far below 2^63")))
}

fn text(name: impl Into<String>, text: &str) -> Property {
    member(name, Value::String(text.to_owned()))
}

pub(super) fn encode_next(space: u64) -> Vec<Property> {
    vec![number("Next", space)]
}

pub(super) fn decode_next(record: Record<'_>) -> Result<u64, CorruptRecord> {
    Members(record).number("Next")?.ok_or(CorruptRecord)
}

pub(super) fn encode_table(table: &Table) -> Vec<Property> {
    let mut out = vec![text("Name", table.name.as_str()), number("Space", table.space.0)];
    for (index, policy) in table.access_policies.iter().enumerate() {
        out.push(text(format!("Policy{index}.Id"), &policy.id));
        out.extend(policy.start.map(|start| member(format!("Policy{index}.Start"), Value::DateTime(start))));
        out.extend(policy.expiry.map(|expiry| member(format!("Policy{index}.Expiry"), Value::DateTime(expiry))));
        out.extend(policy.permission.as_ref().map(|letters| text(format!("Policy{index}.Permission"), letters)));
    }
    out
}

pub(super) fn decode_table(account: String, record: Record<'_>) -> Result<Table, CorruptRecord> {
    let members = Members(record);
    let name = members.text("Name")?.ok_or(CorruptRecord)?;
    let mut access_policies = Vec::new();
    while let Some(id) = members.text(&format!("Policy{}.Id", access_policies.len()))? {
        let index = access_policies.len();
        access_policies.push(StoredAccessPolicy {
            id,
            start: members.moment(&format!("Policy{index}.Start"))?,
            expiry: members.moment(&format!("Policy{index}.Expiry"))?,
            permission: members.text(&format!("Policy{index}.Permission"))?,
        });
    }
    Ok(Table {
        account,
        name: TableName::parse(&name).map_err(|_| CorruptRecord)?,
        space: Space(members.number("Space")?.filter(|&space| space != CATALOGUE.0).ok_or(CorruptRecord)?),
        access_policies,
    })
}

pub(super) fn encode_properties(properties: &ServiceProperties) -> Vec<Property> {
    let logging = &properties.logging;
    let mut out = vec![
        member("Logging.Delete", Value::Boolean(logging.delete)),
        member("Logging.Read", Value::Boolean(logging.read)),
        member("Logging.Write", Value::Boolean(logging.write)),
    ];
    out.extend(logging.retention_days.map(|days| number("Logging.RetentionDays", days.into())));
    for (name, metrics) in [("HourMetrics", &properties.hour_metrics), ("MinuteMetrics", &properties.minute_metrics)] {
        out.push(member(format!("{name}.Enabled"), Value::Boolean(metrics.enabled)));
        out.extend(metrics.include_apis.map(|flag| member(format!("{name}.IncludeAPIs"), Value::Boolean(flag))));
        out.extend(metrics.retention_days.map(|days| number(format!("{name}.RetentionDays"), days.into())));
    }
    for (index, rule) in properties.cors.iter().enumerate() {
        out.push(number(format!("Cors{index}.MaxAgeInSeconds"), rule.max_age_seconds.into()));
        out.push(text(format!("Cors{index}.AllowedOrigins"), &rule.allowed_origins.join(",")));
        out.push(text(format!("Cors{index}.AllowedMethods"), &rule.allowed_methods.join(",")));
        out.push(text(format!("Cors{index}.AllowedHeaders"), &rule.allowed_headers.join(",")));
        out.push(text(format!("Cors{index}.ExposedHeaders"), &rule.exposed_headers.join(",")));
    }
    out
}

pub(super) fn decode_properties(record: Record<'_>) -> Result<ServiceProperties, CorruptRecord> {
    let members = Members(record);
    let metrics = |name: &str| {
        Ok(Metrics {
            enabled: members.flag(&format!("{name}.Enabled"))?.ok_or(CorruptRecord)?,
            include_apis: members.flag(&format!("{name}.IncludeAPIs"))?,
            retention_days: members.small(&format!("{name}.RetentionDays"))?,
        })
    };
    let mut cors = Vec::new();
    while let Some(max_age_seconds) = members.small(&format!("Cors{}.MaxAgeInSeconds", cors.len()))? {
        let index = cors.len();
        cors.push(CorsRule {
            allowed_origins: members.list(&format!("Cors{index}.AllowedOrigins"))?,
            allowed_methods: members.list(&format!("Cors{index}.AllowedMethods"))?,
            allowed_headers: members.list(&format!("Cors{index}.AllowedHeaders"))?,
            exposed_headers: members.list(&format!("Cors{index}.ExposedHeaders"))?,
            max_age_seconds,
        });
    }
    Ok(ServiceProperties {
        logging: Logging {
            delete: members.flag("Logging.Delete")?.ok_or(CorruptRecord)?,
            read: members.flag("Logging.Read")?.ok_or(CorruptRecord)?,
            write: members.flag("Logging.Write")?.ok_or(CorruptRecord)?,
            retention_days: members.small("Logging.RetentionDays")?,
        },
        hour_metrics: metrics("HourMetrics")?,
        minute_metrics: metrics("MinuteMetrics")?,
        cors,
    })
}
