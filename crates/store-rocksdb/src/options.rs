//! What the one who opens a store decides.

use partita_store::Clock;
use std::time::Duration;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a commit is on the disk.
    pub durability: Durability,
    /// Memory for rows and blocks that were read, filled as they are read.
    pub cache_bytes: usize,
    /// How much is written before it becomes a table file. Up to three times as much is in memory, and in the log.
    pub write_buffer_bytes: usize,
    /// Open a folder although files are damaged, without what was written behind the damage.
    pub accept_damage: bool,
    /// Where versions come from.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::Sync,
            cache_bytes: 160 << 20,
            write_buffer_bytes: 32 << 20,
            accept_damage: false,
            clock: Clock::system(),
        }
    }
}

/// What an acknowledged commit survives. In each case commits are lost from the end only, and a batch as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Everything, a power cut included: each group of commits is synced before it is acknowledged or seen.
    Sync,
    /// The end of the process; a power cut takes at most the commits of about this long.
    Interval(Duration),
    /// The end of the process; a power cut takes what the operating system had not written yet. For throw-away data.
    None,
}
