//! Operations: what a request asks for.
//!
//! Every request, plain or one part of a `$batch`, is read by [`Operation::parse`]. An operation's name labels metrics and
//! logs, what it needs drives the check of signatures, its form decides between JSON and XML.

use crate::resource::{Keys, Resource};
use partita_auth::Need;
use partita_model::ServiceError;

/// What a request asks for. Names and keys are as the caller wrote them, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    QueryTables,
    GetTable { table: String },
    CreateTable,
    DeleteTable { table: String },
    GetTableAcl { table: String },
    SetTableAcl { table: String },
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    QueryEntities { table: String },
    GetEntity { table: String, keys: Keys },
    Change { table: String, keys: Keys, verb: ChangeVerb },
    Batch,
}

/// How an entity is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeVerb {
    Insert,
    Replace,
    Merge,
    InsertOrReplace,
    InsertOrMerge,
    Delete,
}

/// What of a request decides which operation it is.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    /// The verb, after `X-HTTP-Method`.
    pub(crate) verb: &'a str,
    pub(crate) resource: Resource,
    pub(crate) comp: Option<&'a str>,
    pub(crate) restype: Option<&'a str>,
    /// Whether there is an `If-Match`: it alone tells an update from an upsert.
    pub(crate) conditional: bool,
    /// Whether the request came to where statistics are given: the secondary endpoint, as a rule.
    pub(crate) has_stats: bool,
}

impl Operation {
    pub(crate) fn parse(asked: Asked<'_>) -> Result<Operation, ServiceError> {
        if !matches!(asked.verb, "GET" | "PUT" | "POST" | "PATCH" | "MERGE" | "DELETE") {
            return Err(ServiceError::UnsupportedHttpVerb);
        }
        match (asked.restype, asked.comp) {
            (None, None) => Operation::on_resource(asked),
            (None, Some("acl")) => Operation::on_acl(asked),
            (Some("service"), Some("properties")) if asked.resource == Resource::Service => match asked.verb {
                "GET" => Ok(Operation::GetServiceProperties),
                "PUT" => Ok(Operation::SetServiceProperties),
                _ => Err(ServiceError::UnsupportedHttpVerb),
            },
            (Some("service"), Some("stats")) if asked.resource == Resource::Service && asked.has_stats => {
                match asked.verb {
                    "GET" => Ok(Operation::GetServiceStats),
                    _ => Err(ServiceError::UnsupportedHttpVerb),
                }
            }
            (_, Some(comp)) => Err(invalid_parameter("comp", comp)),
            (Some(restype), None) => Err(invalid_parameter("restype", restype)),
        }
    }

    fn on_acl(asked: Asked<'_>) -> Result<Operation, ServiceError> {
        let Resource::Entities(table, Keys::None) = asked.resource else {
            return Err(invalid_parameter("comp", "acl"));
        };
        match asked.verb {
            "GET" => Ok(Operation::GetTableAcl { table }),
            "PUT" => Ok(Operation::SetTableAcl { table }),
            _ => Err(ServiceError::UnsupportedHttpVerb),
        }
    }

    fn on_resource(asked: Asked<'_>) -> Result<Operation, ServiceError> {
        match asked.resource {
            Resource::Service => Err(ServiceError::InvalidUri),
            Resource::Batch => match asked.verb {
                "POST" => Ok(Operation::Batch),
                _ => Err(ServiceError::MethodNotAllowed),
            },
            Resource::Tables(None) => match asked.verb {
                "GET" => Ok(Operation::QueryTables),
                "POST" => Ok(Operation::CreateTable),
                _ => Err(ServiceError::MethodNotAllowed),
            },
            Resource::Tables(Some(table)) => match asked.verb {
                "GET" => Ok(Operation::GetTable { table }),
                "DELETE" => Ok(Operation::DeleteTable { table }),
                _ => Err(ServiceError::MethodNotAllowed),
            },
            Resource::Entities(table, keys) => {
                let verb = match (asked.verb, &keys) {
                    ("GET", Keys::None) => return Ok(Operation::QueryEntities { table }),
                    ("GET", _) => return Ok(Operation::GetEntity { table, keys }),
                    ("POST", Keys::None | Keys::WrongNumber | Keys::Malformed) => ChangeVerb::Insert,
                    ("PUT", _) if asked.conditional => ChangeVerb::Replace,
                    ("PUT", _) => ChangeVerb::InsertOrReplace,
                    ("PATCH" | "MERGE", _) if asked.conditional => ChangeVerb::Merge,
                    ("PATCH" | "MERGE", _) => ChangeVerb::InsertOrMerge,
                    ("DELETE", _) => ChangeVerb::Delete,
                    _ => return Err(ServiceError::MethodNotAllowed),
                };
                Ok(Operation::Change { table, keys, verb })
            }
        }
    }

    /// The name in metrics and logs.
    pub(crate) fn name(&self) -> OperationName {
        match self {
            Operation::QueryTables => OperationName::QueryTables,
            Operation::GetTable { .. } => OperationName::GetTable,
            Operation::CreateTable => OperationName::CreateTable,
            Operation::DeleteTable { .. } => OperationName::DeleteTable,
            Operation::GetTableAcl { .. } => OperationName::GetTableAcl,
            Operation::SetTableAcl { .. } => OperationName::SetTableAcl,
            Operation::GetServiceProperties => OperationName::GetTableServiceProperties,
            Operation::SetServiceProperties => OperationName::SetTableServiceProperties,
            Operation::GetServiceStats => OperationName::GetTableServiceStats,
            Operation::QueryEntities { .. } => OperationName::QueryEntities,
            Operation::GetEntity { .. } => OperationName::QueryEntity,
            Operation::Change { verb, .. } => verb.name(),
            Operation::Batch => OperationName::EntityGroupTransaction,
        }
    }

    /// What a signature must allow. `None` for a batch: each of its parts is checked by itself.
    pub(crate) fn need(&self) -> Option<Need> {
        Some(match self {
            Operation::QueryTables | Operation::GetTable { .. } => Need::TableList,
            Operation::CreateTable => Need::TableCreate,
            Operation::DeleteTable { .. } => Need::TableDelete,
            Operation::GetTableAcl { .. } | Operation::SetTableAcl { .. } => Need::TableAcl,
            Operation::GetServiceProperties | Operation::GetServiceStats => Need::ServiceRead,
            Operation::SetServiceProperties => Need::ServiceWrite,
            Operation::QueryEntities { .. } | Operation::GetEntity { .. } => Need::EntityRead,
            Operation::Change { verb, .. } => match verb {
                ChangeVerb::Insert => Need::EntityInsert,
                ChangeVerb::Replace | ChangeVerb::Merge => Need::EntityUpdate,
                ChangeVerb::InsertOrReplace | ChangeVerb::InsertOrMerge => Need::EntityUpsert,
                ChangeVerb::Delete => Need::EntityDelete,
            },
            Operation::Batch => return None,
        })
    }

    /// Whether it changes anything, which the secondary endpoint refuses. Of a batch its parts decide.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Operation::QueryTables
            | Operation::GetTable { .. }
            | Operation::GetTableAcl { .. }
            | Operation::GetServiceProperties
            | Operation::GetServiceStats
            | Operation::QueryEntities { .. }
            | Operation::GetEntity { .. }
            | Operation::Batch => false,
            Operation::CreateTable
            | Operation::DeleteTable { .. }
            | Operation::SetTableAcl { .. }
            | Operation::SetServiceProperties
            | Operation::Change { .. } => true,
        }
    }

    /// Whether it speaks XML.
    pub(crate) fn is_xml(&self) -> bool {
        matches!(
            self,
            Operation::GetTableAcl { .. }
                | Operation::SetTableAcl { .. }
                | Operation::GetServiceProperties
                | Operation::SetServiceProperties
                | Operation::GetServiceStats
        )
    }

    /// The table it works on, if it works on one's entities or policies: what a table's signature must name.
    pub(crate) fn table(&self) -> Option<&str> {
        match self {
            Operation::GetTableAcl { table }
            | Operation::SetTableAcl { table }
            | Operation::QueryEntities { table }
            | Operation::GetEntity { table, .. }
            | Operation::Change { table, .. } => Some(table),
            _ => None,
        }
    }
}

impl ChangeVerb {
    fn name(self) -> OperationName {
        match self {
            ChangeVerb::Insert => OperationName::InsertEntity,
            ChangeVerb::Replace => OperationName::UpdateEntity,
            ChangeVerb::Merge => OperationName::MergeEntity,
            ChangeVerb::InsertOrReplace => OperationName::InsertOrReplaceEntity,
            ChangeVerb::InsertOrMerge => OperationName::InsertOrMergeEntity,
            ChangeVerb::Delete => OperationName::DeleteEntity,
        }
    }
}

macro_rules! operation_names {
    ($($name:ident)*) => {
        /// The service's own names of operations, in metrics and logs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum OperationName {
            $($name,)*
        }

        impl OperationName {
            /// All of them; each stands at the place of its number.
            pub(crate) const ALL: &[OperationName] = &[$(OperationName::$name),*];

            pub(crate) fn text(self) -> &'static str {
                match self {
                    $(OperationName::$name => stringify!($name),)*
                }
            }
        }
    };
}

operation_names! {
    QueryTables GetTable CreateTable DeleteTable GetTableAcl SetTableAcl
    GetTableServiceProperties SetTableServiceProperties GetTableServiceStats
    QueryEntities QueryEntity EntityGroupTransaction
    InsertEntity UpdateEntity MergeEntity InsertOrReplaceEntity InsertOrMergeEntity DeleteEntity
    PreflightTableRequest Unknown
}

fn invalid_parameter(name: &str, value: &str) -> ServiceError {
    ServiceError::InvalidQueryParameterValue { name: name.into(), value: value.into() }
}
