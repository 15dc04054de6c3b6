//! The suite that every engine passes.

mod support;

use partita_store::store_suite;
use partita_store::suite::{self, ClockHand};

store_suite!(match support::database() {
    Some(url) => support::open(&url).await,
    None => return,
});

#[tokio::test(flavor = "multi_thread")]
async fn versions_grow_whatever_the_clock_says() {
    let Some(url) = support::database() else { return };
    let hand = ClockHand::default();
    let store = support::open_with_clock(&url, hand.clock()).await;
    suite::versions_grow_whatever_the_clock_says(&store, &hand).await;
}
