//! Handlers: one file per family of operations. Each gets a message that has passed the gate, makes one call of the
//! service, and returns a reply.

pub(crate) mod access_policies;
pub(crate) mod batch;
pub(crate) mod changes;
pub(crate) mod entities;
pub(crate) mod service;
pub(crate) mod tables;

use crate::address::Address;
use crate::authorize::Access;
use crate::bounds::Memory;
use crate::metrics::Metrics;
use crate::request_id::Ids;
use partita_model::{ServiceError, TableName, TableNameError, Ticks};
use partita_table::{Table, TableService};
use std::sync::Arc;
use std::time::Instant;

/// What a handler works with besides the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) service: &'a TableService,
    pub(crate) metrics: &'a Metrics,
    pub(crate) ids: &'a Ids,
    pub(crate) responses: &'a Arc<Memory>,
    pub(crate) address: &'a Address,
    pub(crate) access: &'a Access,
    pub(crate) request_id: &'a str,
    pub(crate) now: Ticks,
    /// When the client ceases to wait.
    pub(crate) deadline: Instant,
    /// Whether every query answers with its plan.
    pub(crate) plan_header: bool,
}

impl Context<'_> {
    /// The table a URL names: a valid name first, then one that exists.
    fn table(&self, name: &str) -> Result<Arc<Table>, ServiceError> {
        self.service.table(&self.address.account, &table_name(name)?)
    }
}

/// A table name in a URL.
fn table_name(name: &str) -> Result<TableName, ServiceError> {
    TableName::parse(name).map_err(|error| match error {
        TableNameError::Length => ServiceError::TableNameLength,
        TableNameError::Characters => ServiceError::TableNameCharacters,
        TableNameError::Reserved => ServiceError::RequestInputInvalid,
    })
}
