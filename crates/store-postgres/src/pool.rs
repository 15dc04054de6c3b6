//! Connections that are alive.
//!
//! A permit is taken first, so that there are never more connections than the options say; whoever gets none in time is
//! told that the database is busy. A connection is a task on the runtime that opened it, and requests take one of their
//! own runtime where they can: then a statement goes out and its answer comes in on one thread.
//!
//! A connection goes back to the others only when whoever had it says that its statements were answered. One that is
//! let go in the middle, because a client hung up or time ran out, is closed, and the database is asked to stop what it
//! does for it.

use crate::failure::{Failure, words};
use crate::options::Options;
use crate::readiness::LastAnswer;
use crate::schema;
use crate::sql::{self, Engine};
use partita_store::{Error, Result};
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Id};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as PgError, NoTls, Statement};
use tracing::{debug, warn};

/// How long a request waits for others to give a connection back.
const PERMIT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a request tries to reach a database that is down. A standby may be promoted in this time.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The first pause between two tries, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

#[derive(Debug)]
pub(crate) struct Pool {
    options: Options,
    engine: OnceLock<Engine>,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
    pub(crate) opened: AtomicU64,
    pub(crate) last_answer: LastAnswer,
}

/// A connection with its statements.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
    pub(crate) engine: Engine,
    home: Id,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

/// What is prepared on every connection, see [`sql`].
pub(crate) struct Statements {
    pub(crate) get: Statement,
    pub(crate) get_many: Statement,
    pub(crate) insert_absent: Statement,
    pub(crate) insert_many: Statement,
    pub(crate) put_any: Statement,
    pub(crate) change: Statement,
    pub(crate) batch: Statement,
    pub(crate) is_dropped: Statement,
    pub(crate) scan_from: Statement,
    pub(crate) scan_between: Statement,
}

impl Statements {
    /// Prepares all of them in one round trip.
    async fn prepare(client: &Client) -> std::result::Result<Statements, PgError> {
        const INT: Type = Type::INT8;
        const BYTES: Type = Type::BYTEA;
        const INT_ARRAY: Type = Type::INT8_ARRAY;
        const BYTES_ARRAY: Type = Type::BYTEA_ARRAY;
        let row = [INT, BYTES, BYTES, INT, BYTES, INT];
        let change = [INT, BYTES, BYTES, INT, BYTES, INT, INT];
        let batch =
            [INT, BYTES, INT, BYTES_ARRAY, INT_ARRAY, Type::BOOL_ARRAY, BYTES_ARRAY, INT_ARRAY, INT, Type::BOOL, INT];
        let get_many = [INT_ARRAY, BYTES_ARRAY, BYTES_ARRAY, INT_ARRAY, INT_ARRAY];
        let insert_many = [INT_ARRAY, BYTES_ARRAY, BYTES_ARRAY, INT_ARRAY, BYTES_ARRAY, INT_ARRAY];
        let (get, get_many, insert_many) = tokio::try_join!(
            client.prepare_typed(sql::GET, &[INT, BYTES, BYTES, INT]),
            client.prepare_typed(sql::GET_MANY, &get_many),
            client.prepare_typed(sql::INSERT_MANY, &insert_many),
        )?;
        let (insert_absent, put_any, change, batch, is_dropped, scan_from, scan_between) = tokio::try_join!(
            client.prepare_typed(sql::INSERT_ABSENT, &row),
            client.prepare_typed(sql::PUT_ANY, &row),
            client.prepare_typed(sql::CHANGE, &change),
            client.prepare_typed(sql::BATCH, &batch),
            client.prepare_typed(sql::IS_DROPPED, &[INT, INT]),
            client.prepare_typed(sql::SCAN_FROM, &[INT, BYTES, BYTES, INT]),
            client.prepare_typed(sql::SCAN_BETWEEN, &[INT, BYTES, BYTES, INT, BYTES, BYTES]),
        )?;
        Ok(Statements {
            get,
            get_many,
            insert_absent,
            insert_many,
            put_any,
            change,
            batch,
            is_dropped,
            scan_from,
            scan_between,
        })
    }
}

impl Pool {
    /// Connects for the first time, and makes the tables if there are none. An error is a sentence for the user.
    pub(crate) async fn open(options: Options) -> std::result::Result<Pool, String> {
        let pool = Pool::new(options);
        let client = pool.reach().await.map_err(|why| pool.unusable(why))?;
        schema::ensure(&client, &pool.steps()).await.map_err(|why| pool.unusable(why))?;
        Ok(pool)
    }

    /// A pool that has not connected yet.
    pub(crate) fn new(options: Options) -> Pool {
        let permits = Semaphore::new(options.connections);
        let (opened, last_answer) = (AtomicU64::new(0), LastAnswer::new());
        Pool { options, engine: OnceLock::new(), permits, idle: Mutex::default(), opened, last_answer }
    }

    /// The sentence for a reason.
    pub(crate) fn unusable(&self, why: String) -> String {
        format!("The store {} cannot be used: {why}.", self.options)
    }

    /// The steps that lead to the tables, in the words of the database that was reached.
    pub(crate) fn steps(&self) -> Vec<String> {
        (self.options.steps)(self.engine())
    }

    pub(crate) fn engine(&self) -> Engine {
        *self.engine.get().expect("the engine is known since the first connection")
    }

    /// Connections there are, and how many of them nobody uses.
    pub(crate) fn figures(&self) -> (usize, usize) {
        let idle = self.idle().len();
        (self.leased() + idle, idle)
    }

    fn leased(&self) -> usize {
        self.options.connections - self.permits.available_permits()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for the caller alone.
    pub(crate) async fn lease(&self) -> Result<Lease<'_>> {
        let permit = match tokio::time::timeout(PERMIT_PATIENCE, self.permits.acquire()).await {
            Ok(permit) => permit.expect("the semaphore is never closed"),
            Err(_) => {
                let count = self.options.connections;
                return Err(Error::Unavailable(format!("all {count} connections to the database are busy")));
            }
        };
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => self.connect().await.map_err(Error::Unavailable)?,
        };
        Ok(Lease { pool: self, connection: Some(connection), _permit: permit })
    }

    /// An idle connection, if there is one of this runtime, or none may be added.
    fn take_idle(&self) -> Option<Connection> {
        let home = Handle::current().id();
        let mut idle = self.idle();
        idle.retain(|connection| !connection.client.is_closed());
        match idle.iter().rposition(|connection| connection.home == home) {
            Some(index) => Some(idle.swap_remove(index)),
            None if idle.len() + self.leased() > self.options.connections => idle.pop(),
            None => None,
        }
    }

    /// Closes what nobody uses: the database it leads to is not the one to write to any more.
    pub(crate) fn forget_idle(&self) {
        self.idle().clear();
    }

    /// A connection that is ready to be used.
    async fn connect(&self) -> std::result::Result<Connection, String> {
        let client = self.reach().await?;
        let statements = Statements::prepare(&client).await.map_err(|error| words(&error))?;
        Ok(Connection { client, statements, engine: self.engine(), home: Handle::current().id() })
    }

    /// Tries to connect until it works or takes too long.
    pub(crate) async fn reach(&self) -> std::result::Result<Client, String> {
        let begun = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            let error = match self.connect_bare().await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let why = words(&error);
            // What the user must mend does not mend itself.
            let is_hopeless = error.code().is_some_and(|code| code.code().starts_with("28") || code.code() == "3D000");
            if is_hopeless || begun.elapsed() + pause > CONNECT_PATIENCE {
                warn!(%why, "no connection to the database");
                return Err(format!("no connection to the database: {why}"));
            }
            debug!(%why, "the database cannot be reached, trying again");
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Connects without preparing anything.
    pub(crate) async fn connect_bare(&self) -> std::result::Result<Client, PgError> {
        let config = &self.options.config;
        let client = match self.options.tls.clone() {
            None => run(config.connect(NoTls).await?),
            Some(tls) => run(config.connect(tls).await?),
        };
        let engine = match self.engine.get() {
            Some(engine) => *engine,
            None => {
                let version: String = client.query_one(sql::VERSION, &[]).await?.get(0);
                *self.engine.get_or_init(|| Engine::of_version(&version))
            }
        };
        client.batch_execute(&engine.session()).await?;
        self.opened.fetch_add(1, Relaxed);
        Ok(client)
    }
}

/// Lets a connection work by itself, as long as somebody has its client.
fn run<S, T>((client, connection): (Client, tokio_postgres::Connection<S, T>)) -> Client
where
    tokio_postgres::Connection<S, T>: Future<Output = std::result::Result<(), PgError>> + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            debug!(why = words(&error), "a connection to the database ended");
        }
    });
    client
}

/// Between half of a pause and all of it, so that those who failed together do not try again together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) as u32;
    pause / 2 + pause.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

/// A connection that is somebody's until it goes out of scope.
#[derive(Debug)]
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    connection: Option<Connection>,
    _permit: SemaphorePermit<'p>,
}

impl Lease<'_> {
    /// Gives the connection back: everything it was asked was answered, or will be without anybody waiting.
    pub(crate) fn give_back(mut self) {
        if let Some(connection) = self.connection.take().filter(|connection| !connection.client.is_closed()) {
            self.pool.last_answer.note();
            self.pool.idle().push(connection);
        }
    }

    /// Gives the connection back if a failure left it sound.
    pub(crate) fn give_back_after(self, failure: &Failure) {
        if matches!(failure, Failure::ReadOnly) {
            self.pool.forget_idle();
        }
        if failure.leaves_connection_sound() {
            self.give_back();
        }
    }
}

impl Deref for Lease<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until it is given back")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take().filter(|connection| !connection.client.is_closed())
            && let Ok(runtime) = Handle::try_current()
        {
            let token = connection.client.cancel_token();
            let tls = self.pool.options.tls.clone();
            runtime.spawn(async move {
                match tls {
                    None => token.cancel_query(NoTls).await,
                    Some(tls) => token.cancel_query(tls).await,
                }
            });
        }
    }
}
