//! A run: rounds of load, each checked as soon as nothing is under way any more.
//!
//! ```text
//! load ── all clients ask at once ── the round ends: quietly, or the server is stopped or killed, and started again
//! settle ── read everything whose outcome is not known, check the round, go on from the state it led to
//! ```

use crate::check::{State, Violation, check};
use crate::client::{Client, Common, Session};
use crate::history::{Answer, Call, Operation, Page, Table, Time};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clients, and what a server must hold by what they saw.
#[derive(Debug)]
pub struct Run {
    common: Common,
    clients: Vec<Client>,
    state: State,
    /// What was done so far.
    pub totals: Totals,
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Calls of clients.
    pub calls: u64,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Transactions of several rows among them.
    pub transactions: u64,
    /// Writes whose outcome was not known to the client.
    pub unknown: u64,
}

impl Run {
    /// A run of so many clients whose wishes follow from a seed.
    pub fn new(seed: u64, clients: u32) -> Run {
        let clients = (0..clients).map(|id| Client::new(seed, id)).collect();
        Run { common: Common::new(), clients, state: State::default(), totals: Totals::default() }
    }

    /// Creates the tables on a server that has none.
    pub fn begin(&mut self, address: SocketAddr) -> Result<(), Violation> {
        let mut session = self.keeper(address)?;
        let calls = Table::ALL.map(|table| session.ask(Operation::Create(table))).to_vec();
        check(&mut self.state, &calls)
    }

    /// Lets all clients ask until `end` returns or the server is gone.
    pub fn load(&mut self, address: SocketAddr, end: impl FnOnce(&Common)) -> Vec<Call> {
        let stop = AtomicBool::new(false);
        let (common, clients) = (&self.common, &mut self.clients);
        std::thread::scope(|scope| {
            let running: Vec<_> = clients
                .iter_mut()
                .map(|client| {
                    let stop = &stop;
                    scope.spawn(move || client.run(common, address, stop))
                })
                .collect();
            end(common);
            stop.store(true, Ordering::Relaxed);
            running.into_iter().flat_map(|client| client.join().expect("a client does not fail")).collect()
        })
    }

    /// The time, to be told to [`Run::settle`] when the process is gone.
    pub fn now(&self) -> Time {
        self.common.now()
    }

    /// Reads what it takes to know the state, on a server on which nothing is under way, and checks the calls. If the server was
    /// ended meanwhile, `gone` is when it was; nothing that it had not done by then is ever done.
    pub fn settle(
        &mut self,
        address: SocketAddr,
        mut calls: Vec<Call>,
        gone: Option<Time>,
        whole_ledger: bool,
    ) -> Result<(), Violation> {
        for call in calls.iter_mut().filter(|call| call.answer == Answer::Unknown) {
            call.returned = gone.map(|gone| gone.max(call.invoked));
            if gone.is_none() {
                let what = "a server that was neither stopped nor killed did not say what came of a call".to_owned();
                return Err(Violation { what, calls: vec![call.clone()] });
            }
        }
        self.count(&calls);
        let in_doubt: Vec<_> =
            calls.iter().filter(|call| call.answer == Answer::Unknown).flat_map(ledger_keys).collect();
        let mut session = self.keeper(address)?;
        let never = AtomicBool::new(false);
        for table in Table::ALL {
            if table != Table::Ledger || whole_ledger {
                session.pages(Page { table, partition: None, top: None, before: None }, &never, &mut calls);
            }
        }
        calls.extend(in_doubt.into_iter().map(|key| session.ask(Operation::Get(key))));
        check(&mut self.state, &calls)
    }

    fn keeper(&self, address: SocketAddr) -> Result<Session<'_>, Violation> {
        let id = self.clients.len() as u32;
        Session::open(&self.common, id, address).map_err(|error| Violation {
            what: format!("a server that is ready cannot be reached: {error}"),
            calls: vec![],
        })
    }

    fn count(&mut self, calls: &[Call]) {
        for call in calls {
            self.totals.calls += 1;
            match (&call.operation, &call.answer) {
                (Operation::Get(_) | Operation::Page(_), _) => {}
                (operation, Answer::Done(_)) => {
                    self.totals.acknowledged += 1;
                    let many = matches!(operation, Operation::Write(changes) if changes.len() > 1);
                    self.totals.transactions += u64::from(many);
                }
                (_, Answer::Unknown) => self.totals.unknown += 1,
                _ => {}
            }
        }
    }
}

/// The rows of the ledger that a call writes.
fn ledger_keys(call: &Call) -> Vec<crate::history::Key> {
    match &call.operation {
        Operation::Write(changes) if call.operation.table() == Table::Ledger => {
            changes.iter().map(|change| change.key).collect()
        }
        _ => Vec::new(),
    }
}
