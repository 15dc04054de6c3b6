//! The suite on [`Memory`].

use partita_store::{Memory, store_suite};

store_suite!(Memory::new(), clock: Memory::with_clock);
