//! Partita with its data in PostgreSQL: one, two or three nodes in front of the database that also takes part by itself,
//! with the same settings. Connections take the nodes by turns.

use super::partita::start_node;
use super::postgres::{self, Postgres};
use super::{Content, Contestant, STORES, Server, Stage, TakesPart, table_service, version_line};
use crate::Result;
use crate::entity::Spread;
use crate::workloads::{Action, Work};
use std::path::{Path, PathBuf};

pub(super) struct PostgresStore {
    pub(super) binary: PathBuf,
    pub(super) nodes: usize,
}

impl Contestant for PostgresStore {
    fn name(&self) -> &'static str {
        STORES[self.nodes - 1]
    }

    fn version(&self) -> Result<String> {
        Ok(format!("{} x {} on {}", self.nodes, version_line(&self.binary, "--version")?, Postgres.version()?))
    }

    fn takes_part(&self, work: Work, rows: usize) -> TakesPart {
        match work {
            Work::POINT_READ if rows < 100_000 => TakesPart::Yes,
            Work::INSERT => TakesPart::Yes,
            Work { action: Action::Range | Action::Upsert | Action::Transaction, spread: Spread::Partitions }
                if self.nodes == 1 =>
            {
                TakesPart::Yes
            }
            _ => TakesPart::No,
        }
    }

    fn start(&self, folder: &Path, has_rows: bool) -> Result<Server> {
        let mut server = Postgres.start(folder, has_rows)?;
        let store = format!("postgres://{}@{}/postgres", postgres::USER, server.address);
        for _ in 0..self.nodes {
            server.nodes.push(start_node(&self.binary, "--store", store.as_ref())?);
        }
        server.ready_after = server.process.started.elapsed();
        Ok(server)
    }

    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
        let stage = table_service::fill(server, content)?;
        // As the table of PostgreSQL itself was after it was filled.
        postgres::run(&mut postgres::open(server.address)?, "VACUUM ANALYZE partita_row")?;
        Ok(stage)
    }

    fn folder(&self, data: &Path) -> PathBuf {
        postgres::folder(data, self.name())
    }
}
