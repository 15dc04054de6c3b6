//! A table as a source, over HTTP.

use crate::client::{Client, Continuation};
use crate::{Error, Page, Result, Source};

/// The rows of a table that match a filter.
#[derive(Debug)]
pub struct TableQuery {
    client: Client,
    table: String,
    filter: Option<String>,
    select: Vec<String>,
    /// Where to go on; `None` at the end.
    next: Option<Option<Continuation>>,
}

impl TableQuery {
    /// A query from its beginning, or from where an earlier one said that it goes on. The keys are always among what is
    /// selected, as a row without them cannot be stored anywhere.
    pub fn new(
        client: Client,
        table: String,
        filter: Option<String>,
        mut select: Vec<String>,
        from: Option<&str>,
    ) -> Result<TableQuery> {
        let from = from.map(serde_json::from_str::<Continuation>).transpose();
        let from = from.map_err(|error| Error::Option(format!("Where to go on is not understood: {error}.")))?;
        for key in ["RowKey", "PartitionKey"] {
            if !select.is_empty() && !select.iter().any(|name| name == key) {
                select.insert(0, key.to_owned());
            }
        }
        Ok(TableQuery { client, table, filter, select, next: Some(from) })
    }
}

impl Source for TableQuery {
    async fn next_page(&mut self) -> Result<Option<Page>> {
        let Some(from) = &self.next else { return Ok(None) };
        let answered = self.client.query(&self.table, self.filter.as_deref(), &self.select, from.as_ref()).await?;
        let next = answered.next.as_ref().map(|next| serde_json::to_string(next).expect("texts are JSON"));
        self.next = answered.next.map(Some);
        Ok(Some(Page { entities: answered.entities, next, read_bytes: 0 }))
    }
}
