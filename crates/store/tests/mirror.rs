//! The suite on a [`Mirror`] of two engines whose versions differ.

use partita_model::Ticks;
use partita_store::{Clock, Memory, Mirror, store_suite};

store_suite!(Mirror::new(Memory::new(), Memory::with_clock(Clock::new(|| Ticks(0)))));
