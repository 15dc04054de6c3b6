//! Replication stats: the document of Get Service Stats.

use super::{PROLOGUE, write_element};
use partita_model::Ticks;

/// How the secondary stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeoReplication {
    /// It follows the primary, and has everything written before this moment.
    Live(Ticks),
    /// It is being filled.
    Bootstrap,
    /// It cannot be reached.
    Unavailable,
}

/// Writes the body of Get Service Stats.
pub fn print(replication: GeoReplication) -> Vec<u8> {
    let mut out = String::from(PROLOGUE);
    out.push_str("<StorageServiceStats><GeoReplication>");
    let status = match replication {
        GeoReplication::Live(_) => "live",
        GeoReplication::Bootstrap => "bootstrap",
        GeoReplication::Unavailable => "unavailable",
    };
    write_element(&mut out, "Status", status);
    match replication {
        GeoReplication::Live(time) => write_element(&mut out, "LastSyncTime", &time.rfc1123()),
        GeoReplication::Bootstrap | GeoReplication::Unavailable => out.push_str("<LastSyncTime></LastSyncTime>"),
    }
    out.push_str("</GeoReplication></StorageServiceStats>");
    out.into_bytes()
}
