//! What Partita and Azurite have in common: they speak the same protocol.

use super::{Content, Server, Stage};
use crate::Result;
use crate::client::{connect, exchange, until_it_works};
use crate::load::{self, Link, Plan};
use crate::process::Process;
use crate::table::{Client, Target, table_of};
use crate::wire::Wire;
use crate::workloads::Work;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

/// Connections that fill a server.
const FILLERS: usize = 4;

/// Waits for the first answer of a server that was just started.
pub(super) fn first_answer(mut process: Process, address: SocketAddr, has_rows: bool) -> Result<Server> {
    let client = Client::new(&address.to_string(), SystemTime::now());
    let request = if has_rows { client.get_first_row() } else { client.list_tables() };
    until_it_works(|| exchange(address, &request), || process.is_alive())?;
    let ready_after = process.started.elapsed();
    Ok(Server { process, address, ready_after, nodes: Vec::new() })
}

/// Creates the tables and fills them with transactions.
pub(super) fn fill(server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
    let addresses = server.addresses();
    let first = addresses[0];
    let target = Target::new(first, content.entities.clone(), content.rows);
    for &spread in &content.tables {
        exchange(first, &target.client().create_table(table_of(spread)))?;
        if content.rows > 0 {
            let link = |wire| Ok(Link { stream: connect(first)?, wire, is_measured: true });
            let links = target.loaders(spread, FILLERS).into_iter().map(link).collect::<Result<_>>()?;
            load::drive(links, Plan { warm_up: Duration::ZERO, time: None, rate: None, threads: 1 }, || {})?;
        }
    }
    Ok(Box::new(TableService { addresses, target }))
}

struct TableService {
    /// Connections take them by turns.
    addresses: Vec<SocketAddr>,
    target: Target,
}

impl Stage for TableService {
    fn connect(&self, work: Work, connection: usize, connections: usize) -> Result<(TcpStream, Box<dyn Wire>)> {
        let address = self.addresses[connection % self.addresses.len()];
        Ok((connect(address)?, self.target.wire(work, connection, connections)))
    }
}
