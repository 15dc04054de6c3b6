//! Who waits for whom.

use super::*;
use std::task::Poll;

const LONG: Duration = Duration::from_secs(3600);

fn queues(patience: Duration) -> Queues<u32> {
    Queues { queues: Mutex::default(), under_way_max: 8, company: Some(Company { least: 4, patience }) }
}

async fn take(queues: &Queues<u32>) -> Vec<u32> {
    queues.take(|waiting| waiting.drain(..).collect()).await.0
}

/// So many come at a moment and are answered at another.
async fn round(queues: &Queues<u32>, count: u32) {
    (0..count).for_each(|number| assert_eq!(queues.push(number), number == 0, "the first is told to send"));
    assert_eq!(take(queues).await.len(), count as usize);
    assert!(!queues.answered(count as usize));
}

#[tokio::test]
async fn the_first_waits_for_as_many_as_there_were() {
    let queues = queues(LONG);
    round(&queues, 4).await;
    assert!(queues.push(10));
    let mut group = std::pin::pin!(take(&queues));
    for number in [11, 12, 13] {
        // Whoever is about to send may be told to go on at any time.
        for _ in 0..3 {
            let poll = std::future::poll_fn(|context| Poll::Ready(group.as_mut().poll(context))).await;
            assert!(poll.is_pending());
            tokio::task::yield_now().await;
        }
        assert!(!queues.push(number));
    }
    assert_eq!(group.await, [10, 11, 12, 13]);
}

#[tokio::test]
async fn nobody_waits_for_few() {
    let queues = queues(LONG);
    round(&queues, 3).await;
    assert!(queues.push(10));
    assert_eq!(take(&queues).await, [10]);
}

#[tokio::test]
async fn who_has_gone_is_waited_for_once() {
    let queues = queues(Duration::ZERO);
    round(&queues, 6).await;
    (10..14).for_each(|number| _ = queues.push(number));
    assert!(queues.with(|queue| queue.lacks(4)));
    assert_eq!(take(&queues).await, [10, 11, 12, 13]);
    assert!(!queues.answered(4));
    (20..24).for_each(|number| _ = queues.push(number));
    assert!(!queues.with(|queue| queue.lacks(4)));
}

/// Those who were asked for while others were under way belong to them the next time.
#[tokio::test]
async fn those_who_are_late_catch_up() {
    let queues = queues(Duration::ZERO);
    (0..4).for_each(|number| _ = queues.push(number));
    assert_eq!(take(&queues).await.len(), 4);
    assert!(queues.push(4), "another statement may be sent");
    assert_eq!(take(&queues).await, [4]);
    assert!(!queues.answered(4));
    (0..4).for_each(|number| _ = queues.push(number));
    assert!(queues.with(|queue| queue.lacks(4)), "the one under way is waited for");
    assert!(!queues.answered(1));
    assert!(!queues.push(4));
    assert!(!queues.with(|queue| queue.lacks(4)));
}

/// A statement has bounds.
#[tokio::test]
async fn whoever_finds_no_room_goes_in_the_next_statement() {
    let queues = queues(LONG);
    (0..6).for_each(|number| _ = queues.push(number));
    let (group, rows) = queues.take(|waiting| waiting.drain(..2).collect::<Vec<_>>()).await;
    assert_eq!((group, rows), (vec![0, 1], 2));
    assert!(queues.may_send());
    assert!(!queues.may_send(), "one at a time");
    assert_eq!(take(&queues).await, [2, 3, 4, 5]);
}
