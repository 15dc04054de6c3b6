//! Histories written by hand, right and wrong ones, and long ones made by a machine that is right.

use super::*;
use crate::history::{Answer, Before, Change, Condition, Operation, Page, Seen, Time, Verb};
use crate::random::Random;
use Answer::*;

const A: Key = Key { table: Table::Steady, partition: 0, row: 1 };
const B: Key = Key { table: Table::Steady, partition: 0, row: 2 };
const C: Key = Key { table: Table::Steady, partition: 0, row: 3 };

fn call(time: (Time, Time), operation: Operation, tag: Tag, answer: Answer) -> Call {
    Call { client: 0, operation, tag, connected: time.0, invoked: time.0, returned: Some(time.1), answer }
}

fn change(verb: Verb, condition: Condition) -> impl Fn(Key) -> Change {
    move |key| Change { key, verb, condition }
}

fn write(time: (Time, Time), keys: &[Key], verb: Verb, condition: Condition, tag: Tag, answer: Answer) -> Call {
    call(time, Operation::Write(keys.iter().copied().map(change(verb, condition)).collect()), tag, answer)
}

/// An upsert. Its version is its tag times ten.
fn put(time: (Time, Time), keys: &[Key], tag: Tag) -> Call {
    write(time, keys, Verb::Replace, Condition::None, tag, Done(Some(version(tag))))
}

fn insert(time: (Time, Time), key: Key, tag: Tag, answer: Answer) -> Call {
    write(time, &[key], Verb::Insert, Condition::None, tag, answer)
}

fn delete(time: (Time, Time), key: Key, condition: Condition, answer: Answer) -> Call {
    write(time, &[key], Verb::Delete, condition, 0, answer)
}

fn get(time: (Time, Time), key: Key, tag: Option<Tag>) -> Call {
    call(time, Operation::Get(key), 0, tag.map_or_else(|| refused("ResourceNotFound"), |tag| Row(seen(tag))))
}

fn refused(code: &str) -> Answer {
    Refused { index: 0, code: code.to_owned() }
}

fn version(tag: Tag) -> Version {
    Version::from(tag) * 10
}

fn seen(tag: Tag) -> Seen {
    Seen { v: tag, w: tag, version: version(tag) }
}

/// A page of the partition of the keys.
fn page(time: (Time, Time), before: Option<Before>, rows: &[(Key, Tag)], more: bool) -> Call {
    let rows = rows.iter().map(|(key, tag)| (*key, seen(*tag))).collect();
    call(
        time,
        Operation::Page(Page { table: Table::Steady, partition: Some(0), top: None, before }),
        0,
        Rows(rows, more),
    )
}

fn behind(last: Key, since: Time) -> Option<Before> {
    Some(Before { last: Some(last), since })
}

/// One that died with its connection. The process was gone at `gone`.
fn unknown(mut call: Call, gone: Option<Time>) -> Call {
    call.returned = gone;
    call.answer = Unknown;
    call
}

fn start() -> State {
    State { tables: BTreeSet::from(Table::ALL), entities: BTreeMap::new() }
}

#[track_caller]
fn right(calls: &[Call]) -> State {
    let mut state = start();
    check(&mut state, calls).unwrap_or_else(|violation| panic!("{violation}"));
    state
}

#[track_caller]
fn wrong(calls: &[Call], what: &str) {
    match check(&mut start(), calls) {
        Ok(()) => panic!("nothing was found"),
        Err(violation) => assert!(violation.what.contains(what), "found something else: {violation}"),
    }
}

#[test]
fn one_after_the_other() {
    let after = right(&[
        get((1, 2), A, None),
        insert((3, 4), A, 1, Done(Some(10))),
        insert((5, 6), A, 2, refused("EntityAlreadyExists")),
        write((7, 8), &[A], Verb::Replace, Condition::Is(10), 3, Done(Some(30))),
        write((9, 10), &[A], Verb::Replace, Condition::Is(10), 4, refused("UpdateConditionNotSatisfied")),
        get((11, 12), A, Some(3)),
        delete((13, 14), A, Condition::Exists, Done(None)),
        delete((15, 16), A, Condition::Exists, refused("ResourceNotFound")),
    ]);
    assert_eq!(after.entities[&A], Entity { newest: 30, ..Entity::default() });
}

#[test]
fn a_merge_keeps_what_it_does_not_write() {
    let merge = |time, tag| write(time, &[A], Verb::Merge, Condition::None, tag, Done(Some(version(tag))));
    let sees = |time, v, w| call(time, Operation::Get(A), 0, Row(Seen { v, w, version: version(v) }));
    right(&[merge((1, 2), 1), sees((3, 4), 1, 0), put((5, 6), &[A], 2), merge((7, 8), 3), sees((9, 10), 3, 2)]);
    wrong(&[put((5, 6), &[A], 2), merge((7, 8), 3), sees((9, 10), 3, 3)], "linearizable");
    wrong(&[put((5, 6), &[A], 2), merge((7, 8), 3), sees((9, 10), 3, 0)], "linearizable");
}

#[test]
fn at_the_same_time_either_order_will_do() {
    for first in [None, Some(1)] {
        right(&[put((1, 10), &[A], 1), get((2, 9), A, first), get((11, 12), A, Some(1))]);
    }
    let loser = |answer| [insert((1, 10), A, 1, Done(Some(10))), insert((2, 9), A, 2, answer)];
    right(&loser(refused("EntityAlreadyExists")));
    wrong(&loser(Done(Some(20))), "linearizable");
}

#[test]
fn a_read_is_not_stale() {
    wrong(&[put((1, 2), &[A], 1), put((3, 4), &[A], 2), get((5, 6), A, Some(1))], "linearizable");
    wrong(&[put((1, 2), &[A], 1), get((3, 4), A, None)], "linearizable");
    // Nor does it go back behind what another has seen.
    wrong(&[put((1, 20), &[A], 1), get((2, 3), A, Some(1)), get((4, 5), A, None)], "linearizable");
}

#[test]
fn an_unknown_write_may_have_been_made_or_not() {
    let lost = unknown(put((1, 2), &[A], 1), None);
    right(&[lost.clone(), get((3, 4), A, None)]);
    right(&[lost.clone(), get((3, 4), A, Some(1))]);
    // Late, as long as the process lives.
    right(&[lost.clone(), get((3, 4), A, None), get((5, 6), A, Some(1))]);
    wrong(&[lost.clone(), get((3, 4), A, Some(1)), get((5, 6), A, None)], "linearizable");
    wrong(&[get((0, 1), A, Some(1)), unknown(put((2, 3), &[A], 1), None)], "linearizable");
}

#[test]
fn what_a_dead_process_had_not_done_is_never_done() {
    let lost = unknown(put((1, 2), &[A], 1), Some(3));
    right(&[lost.clone(), get((4, 5), A, Some(1))]);
    right(&[lost.clone(), get((4, 5), A, None)]);
    wrong(&[lost.clone(), get((4, 5), A, None), get((6, 7), A, Some(1))], "linearizable");
}

#[test]
fn what_a_busy_server_refused_was_not_done() {
    let refused = Call { answer: Busy, ..put((1, 2), &[A], 1) };
    right(&[refused.clone(), get((3, 4), A, None)]);
    wrong(&[refused, get((3, 4), A, Some(1))], "linearizable");
}

#[test]
fn an_unknown_condition_must_have_held() {
    let lost = |condition| unknown(write((3, 4), &[A], Verb::Replace, condition, 2, Unknown), None);
    right(&[put((1, 2), &[A], 1), lost(Condition::Is(10)), get((5, 6), A, Some(2))]);
    wrong(&[put((1, 2), &[A], 1), lost(Condition::Is(99)), get((5, 6), A, Some(2))], "linearizable");
}

#[test]
fn a_refusal_is_true() {
    let refuse = |verb, condition, code| write((3, 4), &[A], verb, condition, 2, refused(code));
    let present = put((1, 2), &[A], 1);
    wrong(&[refuse(Verb::Insert, Condition::None, "EntityAlreadyExists")], "linearizable");
    wrong(&[present.clone(), refuse(Verb::Merge, Condition::Is(10), "UpdateConditionNotSatisfied")], "linearizable");
    wrong(&[present.clone(), refuse(Verb::Delete, Condition::Exists, "ResourceNotFound")], "linearizable");
    wrong(&[present.clone(), refuse(Verb::Replace, Condition::None, "UpdateConditionNotSatisfied")], "does not fit");
    wrong(&[present.clone(), refuse(Verb::Replace, Condition::None, "InternalError")], "does not fit");
    // What was refused left nothing behind.
    wrong(
        &[present, refuse(Verb::Insert, Condition::None, "EntityAlreadyExists"), get((5, 6), A, Some(2))],
        "linearizable",
    );
}

#[test]
fn a_transaction_is_refused_by_the_first_change_that_fails() {
    let keys = [A, B];
    let at = |index| Refused { index, code: "EntityAlreadyExists".to_owned() };
    let twice = |answer| [put((1, 2), &[B], 1), write((3, 4), &keys, Verb::Insert, Condition::None, 2, answer)];
    right(&twice(at(1)));
    wrong(&twice(at(0)), "linearizable");
    wrong(&twice(at(2)), "an index that no change has");
    wrong(&[put((1, 2), &keys, 1), write((3, 4), &keys, Verb::Insert, Condition::None, 2, at(1))], "linearizable");
    let duplicate = |answer| write((3, 4), &[A, A], Verb::Replace, Condition::None, 2, answer);
    right(&[duplicate(refused("InvalidDuplicateRow")), get((5, 6), A, None)]);
    wrong(&[duplicate(refused("EntityAlreadyExists"))], "a row twice");
    wrong(&[duplicate(Done(Some(20)))], "a row twice");
}

#[test]
fn a_page_shows_all_of_a_transaction_or_nothing() {
    let both = put((1, 10), &[A, B], 1);
    right(&[both.clone(), page((2, 9), None, &[], false)]);
    right(&[both.clone(), page((2, 9), None, &[(A, 1), (B, 1)], false)]);
    wrong(&[both.clone(), page((2, 9), None, &[(A, 1)], false)], "torn");
    wrong(&[both.clone(), page((2, 9), None, &[(B, 1)], false)], "torn");
    // Two reads may lie on both sides of it, but not the wrong way round.
    right(&[both.clone(), get((2, 3), A, None), get((4, 5), B, Some(1))]);
    wrong(&[both, get((2, 3), A, Some(1)), get((4, 5), B, None)], "torn");
}

#[test]
fn everybody_sees_the_same_order() {
    let (first, second) = (put((1, 20), &[A], 1), put((1, 20), &[B], 2));
    let a_first = page((2, 9), None, &[(A, 1)], false);
    let b_first = page((2, 9), None, &[(B, 2)], false);
    right(&[first.clone(), second.clone(), a_first.clone()]);
    right(&[first.clone(), second.clone(), b_first.clone()]);
    wrong(&[first, second, a_first, b_first], "torn");
}

#[test]
fn a_page_is_not_stale() {
    wrong(&[put((1, 2), &[A], 1), page((3, 4), None, &[], false)], "linearizable");
    wrong(
        &[put((1, 2), &[A], 1), delete((3, 4), A, Condition::Exists, Done(None)), page((5, 6), None, &[(A, 1)], false)],
        "linearizable",
    );
    wrong(&[page((1, 2), None, &[(A, 1)], false)], "nobody wrote");
}

#[test]
fn a_page_is_in_order_and_within_what_was_asked() {
    let rows = [put((1, 2), &[A, B], 1)];
    let with = |page: Call| [rows[0].clone(), page];
    wrong(&with(page((3, 4), None, &[(B, 1), (A, 1)], false)), "out of order");
    wrong(&with(page((3, 4), None, &[(A, 1), (A, 1), (B, 1)], false)), "shown twice");
    let mut short = page((3, 4), None, &[(A, 1), (B, 1)], false);
    short.operation = Operation::Page(Page { table: Table::Steady, partition: Some(0), top: Some(1), before: None });
    wrong(&with(short), "more rows");
    let mut elsewhere = page((3, 4), None, &[(A, 1)], false);
    elsewhere.operation = Operation::Page(Page { table: Table::Steady, partition: Some(1), top: None, before: None });
    wrong(&with(elsewhere), "nobody wrote");
}

#[test]
fn further_pages_leave_nothing_out_and_show_nothing_twice() {
    let rows = put((1, 2), &[A, B, C], 1);
    let first = page((3, 4), None, &[(A, 1)], true);
    let further = |rows: &[(Key, Tag)]| page((7, 8), behind(A, 3), rows, false);
    right(&[rows.clone(), first.clone(), further(&[(B, 1), (C, 1)])]);
    wrong(&[rows.clone(), first.clone(), further(&[(C, 1)])], "linearizable");
    wrong(&[rows.clone(), first.clone(), further(&[(B, 1)])], "linearizable");
    wrong(&[rows.clone(), first.clone(), further(&[])], "linearizable");
    wrong(&[rows.clone(), first.clone(), further(&[(A, 1), (B, 1), (C, 1)])], "twice");
    // One that went, or came, in between is no fault.
    let gone = delete((5, 6), B, Condition::Exists, Done(None));
    right(&[rows, first.clone(), gone, further(&[(C, 1)])]);
    right(&[put((1, 2), &[A, C], 1), first.clone(), put((5, 6), &[B], 2), further(&[(C, 1)])]);
    right(&[put((1, 2), &[A, C], 1), first, put((5, 6), &[B], 2), further(&[(B, 2), (C, 1)])]);
}

#[test]
fn versions_grow() {
    let at = |time, tag, version| write(time, &[A], Verb::Replace, Condition::None, tag, Done(Some(version)));
    right(&[at((1, 2), 1, 10), at((3, 4), 2, 11)]);
    wrong(&[at((1, 2), 1, 10), at((3, 4), 2, 9)], "linearizable");
    wrong(&[at((1, 2), 1, 10), at((3, 4), 2, 10)], "linearizable");
    // Over a delete too.
    wrong(&[at((1, 2), 1, 10), delete((3, 4), A, Condition::Exists, Done(None)), at((5, 6), 2, 9)], "linearizable");
    // And at the same time they say which was first.
    let read = |tag, version| call((11, 12), Operation::Get(A), 0, Row(Seen { v: tag, w: tag, version }));
    right(&[at((1, 10), 1, 10), at((1, 10), 2, 11), read(2, 11)]);
    wrong(&[at((1, 10), 1, 10), at((1, 10), 2, 11), read(1, 10)], "linearizable");
}

#[test]
fn a_write_has_one_etag() {
    let other = call((3, 4), Operation::Get(A), 0, Row(Seen { v: 1, w: 1, version: 11 }));
    wrong(&[put((1, 2), &[A], 1), other], "two ETags");
}

#[test]
fn a_table_is_dropped_with_all_its_rows() {
    let drop = |time| call(time, Operation::Drop(Table::Steady), 0, Done(None));
    let create = |time, answer| call(time, Operation::Create(Table::Steady), 0, answer);
    let missing = |time| call(time, Operation::Get(A), 0, refused("TableNotFound"));
    let rows = put((1, 2), &[A, B], 1);
    let again = [rows.clone(), drop((3, 4)), create((5, 6), Done(None))];
    let and = |more: &[Call]| [&again[..], more].concat();
    right(&and(&[page((7, 8), None, &[], false), put((9, 10), &[A], 2), get((11, 12), A, Some(2))]));
    wrong(&and(&[get((7, 8), A, Some(1))]), "linearizable");
    wrong(&and(&[missing((7, 8))]), "Steady is not there, where it should be");
    wrong(&[rows.clone(), missing((3, 4))], "linearizable");
    wrong(&[rows.clone(), drop((3, 4)), get((5, 6), A, None)], "linearizable");
    wrong(&[rows.clone(), drop((3, 4)), put((5, 6), &[A], 2)], "linearizable");
    wrong(&[rows.clone(), create((3, 4), Done(None))], "linearizable");
    right(&[rows.clone(), create((3, 4), refused("TableAlreadyExists"))]);
    right(&[rows.clone(), drop((3, 10)), missing((4, 5)), create((6, 7), Done(None)), page((8, 9), None, &[], false)]);
    // Half of its rows.
    wrong(&[rows, drop((3, 10)), page((4, 5), None, &[(B, 1)], false)], "linearizable");
}

#[test]
fn a_page_of_a_whole_table_shows_one_moment() {
    let other = Key { partition: 1, ..A };
    let all = |time, rows: &[(Key, Tag)]| {
        let mut call = page(time, None, rows, false);
        call.operation = Operation::Page(Page { table: Table::Steady, partition: None, top: None, before: None });
        call
    };
    let (first, second) = (put((1, 20), &[A], 1), put((1, 20), &[other], 2));
    right(&[first.clone(), second.clone(), all((2, 9), &[(A, 1)]), all((10, 12), &[(A, 1), (other, 2)])]);
    wrong(&[first, second, all((2, 9), &[(A, 1)]), all((2, 9), &[(other, 2)])], "of Steady is torn");
}

#[test]
fn a_history_goes_on_where_the_one_before_ended() {
    let after = right(&[put((1, 2), &[A], 1)]);
    assert_eq!(after.entities[&A], Entity { v: 1, w: 1, version: 10, newest: 10 });
    assert!(check(&mut after.clone(), &[get((3, 4), A, Some(1))]).is_ok());
    assert!(check(&mut after.clone(), &[get((3, 4), A, None)]).is_err());
    assert!(check(&mut after.clone(), &[put((3, 4), &[B], 2), page((5, 6), None, &[(B, 2)], false)]).is_err());
}

/// Calls of a server that is right, at random times around the moment of each.
fn generated(seed: u64, count: u32) -> Vec<Call> {
    let mut random = Random::new(seed, 0);
    let mut rows: BTreeMap<Key, Tag> = BTreeMap::new();
    let mut calls = Vec::new();
    for tag in 1..=count {
        let moment = 1000 + Time::from(tag) * 10;
        let time = (moment - random.below(40), moment + 1 + random.below(40));
        let key = Key::new(Table::Steady, random.below(2) as u32, random.below(8) as u32);
        calls.push(match random.below(6) {
            0 => {
                let rows: Vec<(Key, Tag)> =
                    rows.iter().filter(|(key, _)| key.partition == 0).map(|(key, tag)| (*key, *tag)).collect();
                page(time, None, &rows, false)
            }
            1 => get(time, key, rows.get(&key).copied()),
            2 => match rows.remove(&key) {
                Some(_) => delete(time, key, Condition::Exists, Done(None)),
                None => delete(time, key, Condition::Exists, refused("ResourceNotFound")),
            },
            3 => {
                let other = Key { row: (key.row + 1) % 8, ..key };
                rows.extend([(key, tag), (other, tag)]);
                put(time, &[key, other], tag)
            }
            4 => match rows.get(&key).copied() {
                Some(before) => {
                    rows.insert(key, tag);
                    let condition = Condition::Is(version(before));
                    write(time, &[key], Verb::Replace, condition, tag, Done(Some(version(tag))))
                }
                None => get(time, key, None),
            },
            _ => {
                rows.insert(key, tag);
                put(time, &[key], tag)
            }
        });
    }
    calls
}

#[test]
fn long_histories_are_checked_in_no_time() {
    right(&generated(1, 20_000));
}

#[test]
fn one_wrong_answer_in_a_long_history_is_found() {
    for seed in 0..20 {
        let mut calls = generated(seed, 2_000);
        // An answer from a good while ago, in place of one near the end.
        let reads = |call: &Call| matches!(call.answer, Row(_));
        let at = calls.iter().rposition(reads).expect("there are reads");
        let Operation::Get(key) = calls[at].operation else { panic!("a row is the answer to a get") };
        let old = calls[..at - 200].iter().rev().find(|call| call.operation == Operation::Get(key) && reads(call));
        let Some(old) = old.map(|call| call.answer.clone()).filter(|old| *old != calls[at].answer) else { continue };
        calls[at].answer = old;
        wrong(&calls, "linearizable");
    }
}
