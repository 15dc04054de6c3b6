//! Every statement that is sent to the database, each once, with the plan it must get.
//!
//! Only what PostgreSQL 15, YugabyteDB and CockroachDB all understand is used; what differs between them is in
//! [`Engine`]. `tests/plans.rs` checks the plans on PostgreSQL. Where a comment says "one row", the primary key is met
//! with equality on all three columns.
//!
//! A statement is a transaction of its own. On PostgreSQL that is READ COMMITTED, under which a statement that meets a row
//! which somebody is changing waits and then judges the row as it is now; one that relies on more than the row it writes
//! needs REPEATABLE READ ([`Engine::batch_bounds`]).
//!
//! A space is an unsigned number and `bigint` is not, so it is stored with its first bit turned over, which keeps the
//! order ([`space`]). A row without a value is a tombstone: it keeps the version that a row created again must exceed.
//!
//! Two marks are read by nearly every statement: whether the space was dropped, and the floor of versions. A row has one
//! leader in a distributed database, so each mark is kept in [`COPIES`] copies, and a statement asks one of them
//! ([`copy`]). Whoever changes a mark changes all copies in one statement: nobody sees some of them changed and some not.

use partita_store::Space;

/// The database behind the wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// PostgreSQL itself.
    Postgres,
    /// YugabyteDB, which shards by hash unless a key says `ASC`.
    Yugabyte,
    /// CockroachDB, whose transactions are always serializable.
    Cockroach,
}

impl Engine {
    /// Tells the engine from what `SELECT version()` says.
    pub fn of_version(version: &str) -> Engine {
        if version.contains("CockroachDB") {
            Engine::Cockroach
        } else if version.contains("-YB-") || version.contains("Yugabyte") {
            Engine::Yugabyte
        } else {
            Engine::Postgres
        }
    }

    /// Whether reads and inserts of several requests go in one statement. Where rows are on many machines, such a
    /// statement would wait for the slowest of them, and an insert would become a transaction across them.
    pub fn goes_together(self) -> bool {
        self == Engine::Postgres
    }

    /// What is set for every connection.
    pub fn session(self) -> String {
        let isolation = match self {
            Engine::Postgres => "read committed",
            Engine::Yugabyte => "repeatable read",
            Engine::Cockroach => "serializable",
        };
        // The planner of PostgreSQL weighs plans by statistics, which are wrong for a table that has just been made or
        // emptied. Only one plan is ever right for our statements, so the others are ruled out, and statements are planned
        // once.
        let planner = match self {
            Engine::Postgres | Engine::Yugabyte => {
                "; SET plan_cache_mode = force_generic_plan; \
                 SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; \
                 SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off"
            }
            Engine::Cockroach => "",
        };
        format!(
            "SET statement_timeout = 30000; SET idle_in_transaction_session_timeout = 60000; \
             SET default_transaction_isolation = '{isolation}'{planner}"
        )
    }

    /// What goes before and behind [`BATCH`], where a statement by itself would not see and check one moment.
    pub fn batch_bounds(self) -> Option<(&'static str, &'static str)> {
        match self {
            Engine::Postgres => Some(("BEGIN ISOLATION LEVEL REPEATABLE READ", "COMMIT")),
            Engine::Yugabyte | Engine::Cockroach => None,
        }
    }

    /// The steps that lead to the tables of this version: the first makes those of format 1 from nothing, each further one the
    /// next format from the one before. A step that was published never changes. Making one twice is harmless, since not
    /// every database takes back a table with the transaction that made it.
    pub fn steps(self) -> Vec<String> {
        let (row, dropped, floor) = match self {
            Engine::Yugabyte => ("space ASC, pk ASC, rk ASC", "copy HASH, space ASC", "copy HASH"),
            Engine::Postgres | Engine::Cockroach => ("space, pk, rk", "copy, space", "copy"),
        };
        // YugabyteDB splits a table when it is large, which those of the marks are not. CockroachDB splits where it is asked
        // often.
        let tablets = match self {
            Engine::Yugabyte => " SPLIT INTO 16 TABLETS",
            Engine::Postgres | Engine::Cockroach => "",
        };
        vec![format!(
            "CREATE TABLE IF NOT EXISTS partita_row (
    space bigint NOT NULL, pk bytea NOT NULL, rk bytea NOT NULL,
    version bigint NOT NULL, value bytea, PRIMARY KEY ({row}));
CREATE INDEX IF NOT EXISTS partita_grave ON partita_row (version ASC) WHERE value IS NULL;
CREATE TABLE IF NOT EXISTS partita_dropped (
    copy bigint NOT NULL, space bigint NOT NULL, dropped_at timestamptz NOT NULL DEFAULT now(),
    swept boolean, PRIMARY KEY ({dropped})){tablets};
CREATE INDEX IF NOT EXISTS partita_unswept ON partita_dropped (space ASC) WHERE NOT swept;
CREATE TABLE IF NOT EXISTS partita_floor (
    copy bigint NOT NULL, value bigint NOT NULL, since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY ({floor})){tablets};
CREATE TABLE IF NOT EXISTS partita_meta (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO partita_floor (copy, value)
    SELECT c.copy, 0 FROM generate_series(0, {COPIES} - 1) AS c (copy) ON CONFLICT DO NOTHING"
        )]
    }
}

/// The number under which a space is stored.
pub fn space(space: Space) -> i64 {
    (space.0 ^ (1 << 63)) as i64
}

/// How many copies there are of each mark, numbered from 0. All nodes on a database must agree on it, whatever their
/// versions: who drops a space in fewer leaves it open in the others. So it belongs to the format, and only a step may change
/// it. [`BATCH`] has it written out.
pub const COPIES: i64 = 64;

/// The copy of the marks that a statement on a partition asks; the space is as it is stored. A scan asks that of the
/// partition where it begins.
///
/// Any copy answers right. Nodes of all versions agree on one nevertheless, so that a partition has one leader to ask,
/// whichever node it is asked through; so this does not change. It is FNV-1a, whose last bits depend only on the last bits of each
/// byte and whose first hardly on the last byte; so it is multiplied once more, and bits from the middle are taken.
pub fn copy(space: i64, partition: &[u8]) -> i64 {
    let bytes = space.to_be_bytes();
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    let hash = bytes.iter().chain(partition).fold(0xCBF2_9CE4_8422_2325, step);
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as i64 % COPIES
}

/// Which database this is.
pub const VERSION: &str = "SELECT version()";

/// The format of the tables. One row of a table of one.
pub const FORMAT_FOUND: &str = "SELECT value FROM partita_meta WHERE name = 'format'";

/// The same, for whoever is about to change it: others who are wait here.
pub const FORMAT_LOCKED: &str = "SELECT value FROM partita_meta WHERE name = 'format' FOR UPDATE";

/// Notes the format of tables that are made from nothing; fails where there is one.
pub fn format_made(format: i64) -> String {
    format!("INSERT INTO partita_meta (name, value) VALUES ('format', {format})")
}

/// Notes that a step was made.
pub fn format_raised(from: i64) -> String {
    format!("UPDATE partita_meta SET value = {} WHERE name = 'format' AND value = {from}", from + 1)
}

/// Reads one row; always answers with one. $4 is the copy to ask, as the last parameter is in all that follow. One row by
/// the primary key, and one look into `partita_dropped` by its own.
pub const GET: &str = "
    SELECT EXISTS (SELECT 1 FROM partita_dropped WHERE copy = $4 AND space = $1), r.version, r.value
    FROM (VALUES (1)) AS one (x) LEFT JOIN partita_row AS r ON r.space = $1 AND r.pk = $2 AND r.rk = $3";

/// [`GET`] for several rows, which may be in any spaces and partitions; each answer with its place. One row by the primary
/// key, and one look into `partita_dropped`, for each.
pub const GET_MANY: &str = "
    SELECT u.place, d.space IS NOT NULL, r.version, r.value
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[]) AS u (space, pk, rk, place, copy)
    LEFT JOIN LATERAL (SELECT space FROM partita_dropped WHERE copy = u.copy AND space = u.space LIMIT 1) AS d ON true
    LEFT JOIN LATERAL (
        SELECT version, value FROM partita_row WHERE space = u.space AND pk = u.pk AND rk = u.rk LIMIT 1
    ) AS r ON true";

/// Creates a row where there is none or a tombstone. One row, by the unique index of the primary key, and one look for each
/// mark.
pub const INSERT_ABSENT: &str = "
    INSERT INTO partita_row AS r (space, pk, rk, version, value)
    SELECT $1::bigint, $2::bytea, $3::bytea, $4::bigint, $5::bytea
    WHERE NOT EXISTS (SELECT 1 FROM partita_dropped WHERE copy = $6 AND space = $1)
      AND $4 > (SELECT value FROM partita_floor WHERE copy = $6)
    ON CONFLICT (space, pk, rk) DO UPDATE SET version = excluded.version, value = excluded.value
    WHERE r.value IS NULL AND r.version < excluded.version";

/// [`INSERT_ABSENT`] for several rows, which may be in any spaces and partitions, no key twice; names those it wrote by
/// their versions. For each one row by the unique index of the primary key, in the order in which they are given, and one
/// look into `partita_dropped`; for all of them one look for the floor, since any copy will do and rows only go together
/// where one machine has them all.
pub const INSERT_MANY: &str = "
    INSERT INTO partita_row AS r (space, pk, rk, version, value)
    SELECT u.space, u.pk, u.rk, u.version, u.value
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bigint[])
      AS u (space, pk, rk, version, value, copy)
    LEFT JOIN LATERAL (SELECT space FROM partita_dropped WHERE copy = u.copy AND space = u.space LIMIT 1) AS d ON true
    WHERE d.space IS NULL AND u.version > (SELECT value FROM partita_floor WHERE copy = ($6::bigint[])[1])
    ON CONFLICT (space, pk, rk) DO UPDATE SET version = excluded.version, value = excluded.value
    WHERE r.value IS NULL AND r.version < excluded.version
    RETURNING r.version";

/// Writes a row whatever is there. One row, by the unique index of the primary key, and one look for each mark.
pub const PUT_ANY: &str = "
    INSERT INTO partita_row AS r (space, pk, rk, version, value)
    SELECT $1::bigint, $2::bytea, $3::bytea, $4::bigint, $5::bytea
    WHERE NOT EXISTS (SELECT 1 FROM partita_dropped WHERE copy = $6 AND space = $1)
      AND $4 > (SELECT value FROM partita_floor WHERE copy = $6)
    ON CONFLICT (space, pk, rk) DO UPDATE SET version = excluded.version, value = excluded.value
    WHERE r.version < excluded.version";

/// Replaces a row that is there, or deletes it when the value is null; of the version $6 unless that is null. One row by
/// the primary key, and one look for each mark.
pub const CHANGE: &str = "
    UPDATE partita_row SET version = $4, value = $5
    WHERE space = $1 AND pk = $2 AND rk = $3 AND value IS NOT NULL AND version < $4
      AND ($6::bigint IS NULL OR version = $6)
      AND NOT EXISTS (SELECT 1 FROM partita_dropped WHERE copy = $7 AND space = $1)
      AND $4 > (SELECT value FROM partita_floor WHERE copy = $7)";

/// What [`BATCH`] is told to expect of a row, where it is not a version.
pub mod expect {
    /// Nothing.
    pub const ANY: i64 = -1;
    /// No row.
    pub const ABSENT: i64 = -2;
    /// A row.
    pub const PRESENT: i64 = -3;
    /// A version that no row has.
    pub const NEVER: i64 = -4;
}

/// Any batch: items as arrays of rows, expectations, whether they are written, values (null deletes) and places in the
/// batch. Writes all of it or nothing, and says why in the same answer. One row by the primary key for each item: with a plain
/// join a planner that takes the partition for small reads all of it.
///
/// All parts see one snapshot, that of the transaction around it. If `met` was overtaken, the insert fails with 40001, because it meets a row that changed
/// since. That is why rows which are only checked are written too, as they are, when $10 says that the batch changes
/// anything (an absent one as a tombstone): two batches that each check what the other writes cannot both pass. There is
/// one modification for each table, which is all that CockroachDB allows in a statement.
///
/// A space is dropped in all copies at once; those who drop the same one write them in the same order. Whether it was
/// swept is noted in copy 0 and is null in the others, which keeps them out of the index of what is left to sweep.
pub const BATCH: &str = "
    WITH item AS (
        SELECT rk, expect, writes, val, place
        FROM unnest($4::bytea[], $5::bigint[], $6::boolean[], $7::bytea[], $8::bigint[])
          AS u (rk, expect, writes, val, place)
    ), met AS (
        SELECT item.rk, item.expect, item.writes, item.place, r.version AS found, r.value IS NOT NULL AS present,
            CASE WHEN item.writes THEN item.val ELSE r.value END AS val
        FROM item LEFT JOIN LATERAL (
            SELECT version, value FROM partita_row WHERE space = $1 AND pk = $2 AND rk = item.rk LIMIT 1
        ) AS r ON true
    ), state AS (
        SELECT EXISTS (SELECT 1 FROM partita_dropped WHERE copy = $11 AND space = $1) AS dropped,
            coalesce(min(place) FILTER (WHERE NOT CASE expect
                WHEN -1 THEN true WHEN -2 THEN NOT present WHEN -3 THEN present
                ELSE present AND found = expect END), -1) AS failed,
            greatest((SELECT value FROM partita_floor WHERE copy = $11),
                coalesce(max(found) FILTER (WHERE writes), 0)) AS newest
        FROM met
    ), written AS (
        INSERT INTO partita_row AS r (space, pk, rk, version, value)
        SELECT $1::bigint, $2::bytea, met.rk, CASE WHEN met.writes THEN $3::bigint ELSE coalesce(met.found, $3) END, met.val
        FROM met, state
        WHERE $10::boolean AND NOT state.dropped AND state.failed = -1 AND $3 > state.newest
        ON CONFLICT (space, pk, rk) DO UPDATE SET version = excluded.version, value = excluded.value
        RETURNING 1
    ), gone AS (
        INSERT INTO partita_dropped (copy, space, swept)
        SELECT c.copy, $9::bigint, CASE WHEN c.copy = 0 THEN false END FROM state, generate_series(0, 63) AS c (copy)
        WHERE $9 IS NOT NULL AND NOT state.dropped AND state.failed = -1 AND $3 > state.newest
        ON CONFLICT (copy, space) DO NOTHING
        RETURNING 1
    )
    SELECT dropped, failed, newest, (SELECT found FROM met WHERE place = failed AND present) FROM state";

/// Begins a scan: what it reads is of one moment. The time is set behind it.
pub const SCAN_BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = ";

/// Ends a scan.
pub const SCAN_END: &str = "COMMIT";

/// Whether a space was dropped. One row of `partita_dropped` by its primary key.
pub const IS_DROPPED: &str = "SELECT EXISTS (SELECT 1 FROM partita_dropped WHERE copy = $2 AND space = $1)";

/// A page from a place to the end of the space. A range of the primary key, in its order: no sort.
pub const SCAN_FROM: &str = "
    SELECT pk, rk, version, value FROM partita_row
    WHERE space = $1 AND (pk, rk) >= ($2, $3) AND value IS NOT NULL
    ORDER BY pk, rk LIMIT $4";

/// A page from a place up to another. A range of the primary key, in its order: no sort.
pub const SCAN_BETWEEN: &str = "
    SELECT pk, rk, version, value FROM partita_row
    WHERE space = $1 AND (pk, rk) >= ($2, $3) AND (pk, rk) < ($5, $6) AND value IS NOT NULL
    ORDER BY pk, rk LIMIT $4";

/// Spaces whose rows are still there. By the partial index `partita_unswept`.
pub const UNSWEPT: &str = "SELECT space FROM partita_dropped WHERE NOT swept ORDER BY space LIMIT 100";

/// Reclaims some rows of a dropped space. A range of the primary key, then one row for each.
pub const SWEEP_ROWS: &str = "
    DELETE FROM partita_row WHERE (space, pk, rk) IN (
        SELECT space, pk, rk FROM partita_row
        WHERE space = $1 AND EXISTS (SELECT 1 FROM partita_dropped WHERE copy = 0 AND space = $1)
        ORDER BY pk, rk LIMIT 1000)";

/// Notes that a dropped space is empty and stays so: every statement that could have written to it has ended, since
/// none lives as long as the grace of $2 seconds. One row, and one look for a row of the space.
pub const MARK_SWEPT: &str = "
    UPDATE partita_dropped SET swept = true
    WHERE copy = 0 AND space = $1 AND dropped_at < now() - $2::double precision * interval '1 second'
      AND NOT EXISTS (SELECT 1 FROM partita_row WHERE space = $1)";

/// Raises the floor, below which no version is given any more, to the clock of the database less $1 ticks, if that lets
/// tombstones go. Not more often than every $2 seconds. All copies, none of which is ever lowered, and one look into the
/// index `partita_grave`.
pub const RAISE_FLOOR: &str = "
    UPDATE partita_floor SET since = now(),
        value = greatest(value, (extract(epoch FROM now()) * 10000000)::bigint + 621355968000000000 - $1::bigint)
    WHERE since < now() - $2::double precision * interval '1 second'
      AND EXISTS (SELECT 1 FROM partita_row WHERE value IS NULL AND version > (SELECT min(value) FROM partita_floor)
          AND version <= (extract(epoch FROM now()) * 10000000)::bigint + 621355968000000000 - $1)";

/// Reclaims some tombstones that are not above the floor of any copy, once all of them have been there for $1 seconds:
/// whoever may still write with a version below has ended, whichever copy was asked. One that was replaced meanwhile, be it by
/// another tombstone, is judged anew. A range of the index `partita_grave`, then one row for each; `CASE` keeps planners from
/// looking for these in that index as well. All copies of the floor are read.
pub const SWEEP_GRAVES: &str = "
    DELETE FROM partita_row
    WHERE CASE WHEN value IS NULL THEN version <= (SELECT min(value) FROM partita_floor) ELSE false END
      AND (space, pk, rk) IN (
        SELECT space, pk, rk FROM partita_row
        WHERE value IS NULL AND version <= (
            SELECT min(value) FROM partita_floor
            HAVING max(since) < now() - $1::double precision * interval '1 second')
        ORDER BY version LIMIT 1000)";

#[cfg(test)]
mod tests;
