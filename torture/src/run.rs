//! A run: rounds of load, each checked as soon as nothing is under way any more.
//!
//! ```text
//! load ── all clients ask at once, spread over the nodes; meanwhile a node, or the database behind them, may go away
//! settle ── read everything whose outcome is not known, check the round, go on from the state it led to
//! ```
//!
//! A call whose outcome is unknown must be over at some time, or every later answer could be explained by it. A node that is gone
//! does nothing more, once the statements that it had sent have ended; one that lost its database has either answered, and then the
//! connection is gone, or goes on and will answer.

use crate::check::{State, Violation, check};
use crate::client::{Client, Common, Session};
use crate::cluster::Addresses;
use crate::history::{Answer, Call, Operation, Page, Table, Time};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    /// Calls that a server in trouble did not do.
    pub busy: u64,
    /// The longest that a client got no answer to anything because the database was away.
    pub outage: Duration,
}

/// What befell the servers while clients asked.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Nodes that ended, and when: nothing that such a node had not done by then is ever done.
    pub gone: Vec<(usize, Time)>,
    /// Whether the database went away with all connections to it.
    pub database: bool,
}

impl Run {
    /// A run of so many clients whose wishes follow from a seed.
    pub fn new(seed: u64, clients: u32) -> Run {
        let clients = (0..clients).map(|id| Client::new(seed, id)).collect();
        Run { common: Common::new(), clients, state: State::default(), totals: Totals::default() }
    }

    /// Creates the tables on nodes that have none.
    pub fn begin(&mut self, addresses: &Addresses) -> Result<(), Violation> {
        let mut session = self.keeper(addresses, 0)?;
        let calls = Table::ALL.map(|table| session.ask(Operation::Create(table))).to_vec();
        check(&mut self.state, &calls)
    }

    /// Lets all clients ask until `end` returns.
    pub fn load(&mut self, addresses: &Addresses, end: impl FnOnce(&Common)) -> Vec<Call> {
        let stop = AtomicBool::new(false);
        let (common, clients) = (&self.common, &mut self.clients);
        std::thread::scope(|scope| {
            let running: Vec<_> = clients
                .iter_mut()
                .map(|client| {
                    let stop = &stop;
                    scope.spawn(move || client.run(common, addresses, stop))
                })
                .collect();
            end(common);
            stop.store(true, Ordering::Relaxed);
            running.into_iter().flat_map(|client| client.join().expect("a client does not fail")).collect()
        })
    }

    /// Reads what it takes to know the state, on nodes that run and have nothing under way, and checks the calls.
    pub fn settle(
        &mut self,
        addresses: &Addresses,
        mut calls: Vec<Call>,
        losses: &Losses,
        whole_ledger: bool,
    ) -> Result<(), Violation> {
        let now = self.common.now();
        for call in calls.iter_mut().filter(|call| call.answer.tells_of_trouble()) {
            let end = losses.end_of(call, addresses.node_of(call.client), now).ok_or_else(|| {
                let what = "a server to which nothing had happened gave up on a call".to_owned();
                Violation { what, calls: vec![call.clone()] }
            })?;
            if call.answer.leaves_open() {
                call.returned = Some(end.max(call.invoked));
            }
        }
        self.count(&calls);
        if losses.database {
            self.totals.outage = self.totals.outage.max(outage(&calls));
        }
        let in_doubt: Vec<_> = calls.iter().filter(|call| call.answer.leaves_open()).flat_map(ledger_keys).collect();
        let asked = calls.len();
        let never = AtomicBool::new(false);
        // Whatever node is asked, it knows the same.
        for (number, table) in Table::ALL.into_iter().enumerate() {
            if table != Table::Ledger || whole_ledger {
                let page = Page { table, partition: None, top: None, before: None };
                self.keeper(addresses, number)?.pages(page, &never, &mut calls);
            }
        }
        let mut session = self.keeper(addresses, asked)?;
        calls.extend(in_doubt.into_iter().map(|key| session.ask(Operation::Get(key))));
        if let Some(call) = calls[asked..].iter().find(|call| call.answer.tells_of_trouble()) {
            let what = "a server that is ready does not answer".to_owned();
            return Err(Violation { what, calls: vec![call.clone()] });
        }
        check(&mut self.state, &calls)
    }

    /// Somebody who asks when nobody else does, on any node.
    fn keeper(&self, addresses: &Addresses, number: usize) -> Result<Session<'_>, Violation> {
        let id = self.clients.len() as u32;
        let address = addresses.of(number % addresses.count()).expect("all nodes run while nobody asks");
        Session::open(&self.common, id, address).map_err(|error| Violation {
            what: format!("a server that is ready cannot be reached: {error}"),
            calls: vec![],
        })
    }

    fn count(&mut self, calls: &[Call]) {
        for call in calls {
            self.totals.calls += 1;
            self.totals.busy += u64::from(call.answer == Answer::Busy);
            match (&call.operation, &call.answer) {
                (Operation::Get(_) | Operation::Page(_), _) => {}
                (operation, Answer::Done(_)) => {
                    self.totals.acknowledged += 1;
                    let many = matches!(operation, Operation::Write(changes) if changes.len() > 1);
                    self.totals.transactions += u64::from(many);
                }
                (_, Answer::Unknown | Answer::Cut) => self.totals.unknown += 1,
                _ => {}
            }
        }
    }
}

impl Losses {
    /// When a call that was not answered as it should be can no longer be done, seen from a time when all nodes are idle. `None`
    /// if it should have been answered. A client may ask on a connection whose node has ended already, and is told only then.
    fn end_of(&self, call: &Call, node: usize, idle: Time) -> Option<Time> {
        let gone = self.gone.iter().find(|(gone, time)| *gone == node && *time >= call.connected);
        match gone {
            Some((_, time)) => Some(*time),
            // Who lost the database says so, and does not hang up.
            None => (self.database && call.answer != Answer::Cut).then_some(idle),
        }
    }
}

/// The longest time between two answers to the same client.
fn outage(calls: &[Call]) -> Duration {
    let mut answered: BTreeMap<u32, Vec<Time>> = BTreeMap::new();
    for call in calls.iter().filter(|call| !call.answer.tells_of_trouble()) {
        answered.entry(call.client).or_default().extend(call.returned);
    }
    let gaps = answered.values().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0]));
    Duration::from_nanos(gaps.max().unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_with_the_node_of_its_connection() {
        let losses = Losses { gone: vec![(0, 50)], database: false };
        let cut = |connected, invoked| Call {
            client: 0,
            operation: Operation::Create(Table::Steady),
            tag: 0,
            connected,
            invoked,
            returned: None,
            answer: Answer::Cut,
        };
        assert_eq!(losses.end_of(&cut(10, 40), 0, 90), Some(50));
        // The node ended between the answer before and this call.
        assert_eq!(losses.end_of(&cut(10, 51), 0, 90), Some(50));
        // Another node, or one that was started since.
        assert_eq!(losses.end_of(&cut(10, 40), 1, 90), None);
        assert_eq!(losses.end_of(&cut(60, 70), 0, 90), None);
    }
}
