//! The loops that load a server and take the time.
//!
//! One thread moves the bytes of all its connections and waits for none of them. It shares the machine with the server,
//! so it does little: one read, one write and one look at the clock for an answer, and no allocation.
//!
//! - Closed loop: a connection sends its next request when it has the answer to the last. It finds the highest rate.
//! - Open loop: requests are due at fixed times, whether the server keeps up or not, and latency counts from when a
//!   request was due. A server that stalls for a second is charged with all the requests that had to wait meanwhile.

mod connection;
mod timer;

use crate::Result;
use crate::histogram::Histogram;
use crate::wire::Wire;
use connection::{Connection, Event};
use mio::{Events, Poll, Token};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use timer::Timer;

/// How long a server may say nothing at all.
const PATIENCE: Duration = Duration::from_secs(60);
/// However long they take, so many operations are measured.
const OPERATIONS_MIN: u64 = 3;
/// How long to wait for answers when the time is over.
const DRAIN: Duration = Duration::from_secs(20);

/// A connection that is ready for requests, and what to say on it.
pub struct Link {
    /// The socket, past whatever handshake there is.
    pub stream: TcpStream,
    /// The conversation.
    pub wire: Box<dyn Wire>,
    /// Whether its requests are measured; the others are there to disturb.
    pub is_measured: bool,
}

/// When requests are sent, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Time before the measurement.
    pub warm_up: Duration,
    /// Time of the measurement, or longer if hardly anything was answered; `None` for as long as there is something to
    /// ask.
    pub time: Option<Duration>,
    /// Requests per second; `None` for as many as there are answers.
    pub rate: Option<f64>,
    /// How many threads share the connections.
    pub threads: usize,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Operations that ended in time on the measured connections.
    pub operations: u64,
    /// Rows that they read or wrote.
    pub rows: u64,
    /// Operations of the other connections.
    pub disturbances: u64,
    /// How long it took.
    pub time: Duration,
    /// Latencies of the measured connections.
    pub latencies: Histogram,
    /// Answers that were not the expected ones.
    pub failures: u64,
    /// The first of them.
    pub failure: Option<String>,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.operations += other.operations;
        self.rows += other.rows;
        self.disturbances += other.disturbances;
        self.time = self.time.max(other.time);
        self.latencies.merge(&other.latencies);
        self.failures += other.failures;
        self.failure = self.failure.take().or(other.failure);
    }
}

/// Loads a server. An unexpected answer is an error, since a figure with errors in it says nothing.
/// `observe` is called when the measurement begins and when it ends.
pub fn drive(links: Vec<Link>, plan: Plan, mut observe: impl FnMut()) -> Result<Outcome> {
    let threads = plan.threads.clamp(1, links.len().max(1));
    let mut shares: Vec<Vec<Link>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, link) in links.into_iter().enumerate() {
        shares[number % threads].push(link);
    }
    let plan = Plan { rate: plan.rate.map(|rate| rate / threads as f64), ..plan };
    let outcome = std::thread::scope(|scope| {
        let run = |share| scope.spawn(move || Loop::new(share, plan)?.run(&mut || {}));
        let own = shares.pop().expect("there is at least one share");
        let others: Vec<_> = shares.into_iter().map(run).collect();
        let mut outcome = Loop::new(own, plan)?.run(&mut observe)?;
        for other in others {
            outcome.merge(other.join().expect("a loop does not panic")?);
        }
        Ok::<_, crate::Error>(outcome)
    })?;
    match &outcome.failure {
        Some(text) => Err(format!("{} unexpected answers, the first was: {text}", outcome.failures).into()),
        None => Ok(outcome),
    }
}

/// The connections of one thread.
struct Loop {
    poll: Poll,
    timer: Timer,
    connections: Vec<Connection>,
    plan: Plan,
    /// Connections that wait until a request is due.
    idle: VecDeque<usize>,
    /// When the next request is due.
    due: Instant,
    /// How many requests are out.
    waiting: usize,
    /// How many were answered.
    answered: usize,
    phase: Phase,
    outcome: Outcome,
}

/// What a loop is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmingUp {
        until: Instant,
    },
    Measuring {
        since: Instant,
    },
    /// Nothing new is begun; answers that are still out are waited for.
    Ending,
}

impl Loop {
    fn new(links: Vec<Link>, plan: Plan) -> Result<Loop> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), Token(links.len()))?;
        let mut connections = Vec::with_capacity(links.len());
        for link in links {
            connections.push(Connection::new(link, poll.registry(), Token(connections.len()))?);
        }
        let (idle, outcome) = (VecDeque::with_capacity(connections.len()), Outcome::default());
        let now = Instant::now();
        let phase = Phase::WarmingUp { until: now + plan.warm_up };
        Ok(Loop { poll, timer, connections, plan, idle, due: now, waiting: 0, answered: 0, phase, outcome })
    }

    fn run(mut self, observe: &mut dyn FnMut()) -> Result<Outcome> {
        let mut last_heard = Instant::now();
        for connection in 0..self.connections.len() {
            match self.plan.rate {
                Some(_) => self.idle.push_back(connection),
                None => self.start(connection, last_heard)?,
            }
        }
        let mut events = Events::with_capacity(256);
        loop {
            let now = Instant::now();
            self.turn(now, observe);
            self.send_due(now)?;
            let is_idle = self.phase != Phase::Ending && self.plan.rate.is_some() && !self.idle.is_empty();
            if self.waiting == 0 && !is_idle {
                break;
            }
            let patience = if self.phase == Phase::Ending { DRAIN } else { PATIENCE };
            if now > last_heard + patience {
                return Err(format!("no answer for {} seconds", patience.as_secs()).into());
            }
            self.wait(&mut events, now)?;
            for event in &events {
                if event.token().0 < self.connections.len() {
                    last_heard = self.heard(event.token().0)?;
                }
            }
        }
        if let Phase::Measuring { since } = self.phase {
            self.outcome.time = since.elapsed();
            observe();
        }
        Ok(self.outcome)
    }

    /// Whether everything is measured from the first request on.
    fn is_cold(&self) -> bool {
        self.plan.warm_up.is_zero()
    }

    /// Goes on to the next phase when it is time.
    fn turn(&mut self, now: Instant, observe: &mut dyn FnMut()) {
        match self.phase {
            _ if self.outcome.failures > 0 => self.phase = Phase::Ending,
            // The first answers, which may take long, are none of those measured.
            Phase::WarmingUp { until }
                if now >= until && (self.answered >= self.connections.len() || self.is_cold()) =>
            {
                observe();
                self.outcome = Outcome::default();
                self.phase = Phase::Measuring { since: Instant::now() };
            }
            Phase::Measuring { since } => {
                let is_over = self.plan.time.is_some_and(|time| now >= since + time);
                if is_over && self.outcome.operations >= OPERATIONS_MIN {
                    self.outcome.time = now - since;
                    self.phase = Phase::Ending;
                    observe();
                }
            }
            _ => {}
        }
    }

    /// Waits for answers, or until a request is due that some connection can send.
    fn wait(&mut self, events: &mut Events, now: Instant) -> Result<()> {
        let mut limit = Duration::from_millis(100);
        if self.plan.rate.is_some() && !self.idle.is_empty() && self.phase != Phase::Ending {
            limit = self.timer.wake_after(self.due.saturating_duration_since(now), limit)?;
        }
        match self.poll.poll(events, Some(limit)) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            polled => Ok(polled?),
        }
    }

    /// In an open loop, sends what is due.
    fn send_due(&mut self, now: Instant) -> Result<()> {
        let Some(rate) = self.plan.rate else { return Ok(()) };
        let interval = Duration::from_secs_f64(1.0 / rate);
        while self.due <= now && self.phase != Phase::Ending {
            let Some(connection) = self.idle.pop_front() else { break };
            let due = self.due;
            self.due += interval;
            self.start(connection, due)?;
        }
        Ok(())
    }

    /// Begins an operation whose latency counts from `from`.
    fn start(&mut self, connection: usize, from: Instant) -> Result<()> {
        if self.connections[connection].start(from)? {
            self.waiting += 1;
        }
        Ok(())
    }

    /// Reads what came on a connection and sends what follows; returns when.
    fn heard(&mut self, number: usize) -> Result<Instant> {
        let connection = &mut self.connections[number];
        let event = connection.hear()?;
        let now = Instant::now();
        let rows = match event {
            Event::Nothing => return Ok(now),
            Event::Failed(text) => {
                self.waiting -= 1;
                self.outcome.failures += 1;
                self.outcome.failure.get_or_insert(text);
                return Ok(now);
            }
            Event::Done(rows) => rows,
        };
        self.waiting -= 1;
        self.answered += 1;
        if matches!(self.phase, Phase::Measuring { .. }) {
            if connection.is_measured {
                self.outcome.operations += 1;
                self.outcome.rows += u64::from(rows);
                self.outcome.latencies.record((now - connection.from).as_nanos() as u64);
            } else {
                self.outcome.disturbances += 1;
            }
        }
        if self.phase == Phase::Ending {
            return Ok(now);
        }
        match self.plan.rate {
            Some(_) => self.idle.push_back(number),
            None => self.start(number, now)?,
        }
        Ok(now)
    }
}

#[cfg(test)]
mod tests;
