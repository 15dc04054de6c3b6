//! An account behind HTTP, as one end of a copy or the place of an import.

use crate::client::{Client, Mode};
use crate::connection::{Connection, Credential};
use crate::copy::Account;
use crate::query::TableQuery;
use crate::table_sink::Writer;
use crate::{Entity, Error, Result};
use partita_model::{ServiceProperties, StoredAccessPolicy};
use std::fmt;
use std::sync::Arc;

/// An account of a service that speaks the Table protocol.
#[derive(Clone, Debug)]
pub struct Remote(pub Arc<Connection>);

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Remote {
    fn client(&self) -> Result<Client> {
        Client::new(self.0.clone())
    }

    /// Whether policies can be read and set at all: signatures never may, and not every service does.
    fn known<T>(&self, done: Result<T>) -> Result<Option<T>> {
        match done {
            Err(Error::Refused { .. }) if matches!(self.0.credential, Credential::Sas(_)) => Ok(None),
            Err(Error::Refused { status: 501, .. }) => Ok(None),
            done => done.map(Some),
        }
    }
}

impl Account for Remote {
    type Rows = TableQuery;
    type Writer = RemoteWriter;

    async fn tables(&self) -> Result<Vec<String>> {
        self.client()?.tables().await
    }

    async fn create_table(&self, table: &str) -> Result<()> {
        self.client()?.create_table(table).await
    }

    fn rows(&self, table: &str) -> Result<TableQuery> {
        TableQuery::new(self.client()?, table.to_owned(), None, Vec::new(), None)
    }

    fn writer(&self, table: &str, mode: Mode) -> Result<RemoteWriter> {
        RemoteWriter::new(&self.0, table, mode, false)
    }

    async fn access_policies(&self, table: &str) -> Result<Option<Vec<StoredAccessPolicy>>> {
        self.known(self.client()?.access_policies(table).await)
    }

    async fn set_access_policies(&self, table: &str, policies: &[StoredAccessPolicy]) -> Result<bool> {
        let done = self.client()?.set_access_policies(table, policies).await;
        self.known(done).map(|done| done.is_some())
    }

    async fn service_properties(&self) -> Result<ServiceProperties> {
        self.client()?.service_properties().await
    }

    async fn set_service_properties(&self, properties: &ServiceProperties) -> Result<()> {
        self.client()?.set_service_properties(properties).await
    }
}

/// Writes over one connection.
#[derive(Debug)]
pub struct RemoteWriter {
    client: Client,
    table: String,
    mode: Mode,
    /// Whether rows may have been written by an earlier run.
    is_resumed: bool,
}

impl RemoteWriter {
    /// Connects when there is something to write.
    pub fn new(connection: &Arc<Connection>, table: &str, mode: Mode, is_resumed: bool) -> Result<RemoteWriter> {
        Ok(RemoteWriter { client: Client::new(connection.clone())?, table: table.to_owned(), mode, is_resumed })
    }
}

impl Writer for RemoteWriter {
    /// An insert that meets its own row, written by an attempt of which no answer came or by an earlier run, has done what it
    /// should, and so has the deletion of a row that is gone.
    async fn write(&mut self, entities: &[Entity]) -> Result<()> {
        let RemoteWriter { client, table, mode, is_resumed } = self;
        let error = match client.write(table, *mode, entities).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let is_its_own = match &error {
            Error::Refused { code, .. } if *mode == Mode::Insert => code == "EntityAlreadyExists",
            Error::Refused { code, .. } if *mode == Mode::Delete => code == "ResourceNotFound",
            _ => false,
        };
        if !is_its_own || !(*is_resumed || client.was_in_doubt()) {
            return Err(error);
        }
        for entity in entities {
            match (client.get(table, &entity.partition_key, &entity.row_key).await?, *mode) {
                (None, Mode::Delete) => {}
                (Some(found), Mode::Insert) if found.content() == entity.content() => {}
                (Some(_), Mode::Insert) => return Err(error),
                _ => client.write(table, *mode, std::slice::from_ref(entity)).await?,
            }
        }
        Ok(())
    }
}
