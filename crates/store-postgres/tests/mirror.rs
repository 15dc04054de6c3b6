//! The suite on a mirror: whatever it does, the database answers as the engine in memory does.

mod support;

use partita_store::{Memory, Mirror, store_suite};

store_suite!(match support::database() {
    Some(url) => Mirror::new(support::open(&url).await, Memory::new()),
    None => return,
});
