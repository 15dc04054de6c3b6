//! What an operation needs of a signature: the table of permissions per operation.
//!
//! Named by operation, not by verb and path, so that a part of a batch asks the same question as a plain request.

use crate::Letters;

/// What an operation does, as far as permissions tell operations apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Get service properties or stats.
    ServiceRead,
    /// Set service properties.
    ServiceWrite,
    /// Query tables, or get one.
    TableList,
    /// Create a table.
    TableCreate,
    /// Delete a table.
    TableDelete,
    /// Get or set the access policies of a table.
    TableAcl,
    /// Query entities, or get one.
    EntityRead,
    /// Insert an entity.
    EntityInsert,
    /// Update or merge an entity that exists.
    EntityUpdate,
    /// Insert or replace, insert or merge.
    EntityUpsert,
    /// Delete an entity.
    EntityDelete,
}

/// What one kind of signature must hold for one need.
pub(crate) struct Rule {
    /// Resource types of an account signature; any one of them will do.
    pub(crate) resource_types: Letters,
    /// Sets of permissions; all letters of any one of them will do.
    pub(crate) permissions: &'static [Letters],
}

macro_rules! rule {
    ($resource_types:literal, $($permissions:literal)|+) => {{
        const PERMISSIONS: &[Letters] = &[$(Letters::of($permissions)),+];
        Some(Rule { resource_types: const { Letters::of($resource_types) }, permissions: PERMISSIONS })
    }};
}

impl Need {
    /// Every need there is.
    pub const ALL: [Need; 11] = [
        Need::ServiceRead,
        Need::ServiceWrite,
        Need::TableList,
        Need::TableCreate,
        Need::TableDelete,
        Need::TableAcl,
        Need::EntityRead,
        Need::EntityInsert,
        Need::EntityUpdate,
        Need::EntityUpsert,
        Need::EntityDelete,
    ];

    /// What an account signature must hold; `None` if only the account key will do.
    pub(crate) fn of_account(self) -> Option<Rule> {
        match self {
            Need::ServiceRead => rule!("s", "r"),
            Need::ServiceWrite => rule!("s", "w"),
            Need::TableList => rule!("c", "l"),
            Need::TableCreate => rule!("c", "c" | "w"),
            Need::TableDelete => rule!("c", "d"),
            Need::TableAcl => None,
            // The service is content with `o` for a query too; emulators want `c` there, so tokens made for them
            // carry only that. Whoever may query a table can ask for one entity with a filter, so one rule serves both.
            Need::EntityRead => rule!("oc", "r"),
            Need::EntityInsert => rule!("o", "a"),
            Need::EntityUpdate => rule!("o", "u"),
            Need::EntityUpsert => rule!("o", "au"),
            Need::EntityDelete => rule!("o", "d"),
        }
    }

    /// The permissions a table signature must hold; `None` if it reaches no such thing.
    pub(crate) fn of_table(self) -> Option<&'static [Letters]> {
        match self {
            Need::EntityRead | Need::EntityInsert | Need::EntityUpdate | Need::EntityUpsert | Need::EntityDelete => {
                self.of_account().map(|rule| rule.permissions)
            }
            Need::ServiceRead
            | Need::ServiceWrite
            | Need::TableList
            | Need::TableCreate
            | Need::TableDelete
            | Need::TableAcl => None,
        }
    }
}
