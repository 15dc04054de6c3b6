//! The language of `$filter`: what each text means, and which error each wrong one gives.

use crate::samples::filter;
use crate::{Filter, Outline, Plan};
use partita_model::limits::{FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX};
use partita_model::{EntityView, Record, ServiceError, Ticks};
use proptest::prelude::*;

/// The canonical text of a filter shows what was read.
fn check(text: &str, expect: &str) {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).expect("not blank");
    assert_eq!(filter.to_string(), expect, "{text}");
    assert_eq!(Filter::parse(expect), Ok(Some(filter)), "{expect}");
}

fn same(text: &str) {
    check(text, text);
}

#[test]
fn blank() {
    for text in ["", " ", "\t\r\n  "] {
        assert_eq!(Filter::parse(text), Ok(None));
    }
}

#[test]
fn strings() {
    same("a eq ''");
    same("a eq 'text'");
    same("a eq 'O''Neil'");
    same("a eq ''''");
    same("a eq ''''''");
    same("a eq ' and (not) '");
    same("a eq '\u{554A}\u{1F600}\n'");
    check("a eq'x'", "a eq 'x'");
    check("'x'eq a", "a eq 'x'");
}

#[test]
fn numbers() {
    same("a eq 0");
    same("a eq 123");
    same("a eq -5");
    check("a eq 007", "a eq 7");
    check("a eq -0", "a eq 0");
    same("a eq 2147483647");
    same("a eq -2147483648");
    check("a eq 2147483648", "a eq 2147483648L");
    check("a eq -2147483649", "a eq -2147483649L");
    check("a eq 9223372036854775807", "a eq 9223372036854775807L");
    same("a eq 123L");
    check("a eq -5l", "a eq -5L");
    same("a eq -9223372036854775808L");
    same("a eq 1.5");
    same("a eq -1.5");
    same("a eq -0.0");
    check("a eq 1e10", "a eq 10000000000.0");
    check("a eq 1.5E-3", "a eq 0.0015");
    check("a eq 1e+2", "a eq 100.0");
    same("a eq 1e300");
    check("a eq 1d", "a eq 1.0");
    check("a eq -1.5D", "a eq -1.5");
    check("a eq 64.0", "a eq 64.0");
    same("a eq NaN");
    same("a eq INF");
    same("a eq -INF");
}

#[test]
fn other_literals() {
    same("a eq true");
    same("a eq false");
    same("a eq datetime'2019-07-10T19:00:00Z'");
    check("a eq datetime'2019-07-10T19:00:00.000Z'", "a eq datetime'2019-07-10T19:00:00Z'");
    check("a eq datetime'2019-07-10T19:00:00.1234567'", "a eq datetime'2019-07-10T19:00:00.1234567Z'");
    check("a eq datetime'2019-07-10'", "a eq datetime'2019-07-10T00:00:00Z'");
    same("a eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'");
    check("a eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", "a eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'");
    same("a eq X''");
    same("a eq X'62696e'");
    check("a eq x'62696E'", "a eq X'62696e'");
    check("a eq binary'62696e'", "a eq X'62696e'");
}

#[test]
fn operators_and_sides() {
    for op in ["eq", "ne", "gt", "ge", "lt", "le"] {
        same(&format!("a {op} 1"));
    }
    for (op, flipped) in [("eq", "eq"), ("ne", "ne"), ("gt", "lt"), ("ge", "le"), ("lt", "gt"), ("le", "ge")] {
        check(&format!("1 {op} a"), &format!("a {flipped} 1"));
    }
    check("1 lt 2", "true");
    check("1 gt 2L", "false");
    check("'a' eq 5", "false");
    check("'a' lt 5", "true");
    check("NaN eq NaN", "false");
    check("true eq true", "true");
}

#[test]
fn names() {
    same("_a1 eq 1");
    same("\u{554A}\u{9F44} eq 1");
    same("e\u{301}te\u{203F} eq 1");
    // Words are operators only where an operator can stand.
    same("eq eq 1");
    same("and eq 1 and or eq 2 or mod eq 3");
    same("datetime eq 1 and guid eq 2 and X eq 3");
    same("Not eq 1 and True eq 2 and nan eq 3");
}

#[test]
fn precedence_and_shape() {
    same("a eq 1 or b eq 2 and c eq 3");
    same("(a eq 1 or b eq 2) and c eq 3");
    check("(a eq 1 and b eq 2) or c eq 3", "a eq 1 and b eq 2 or c eq 3");
    check("a eq 1 or (b eq 2 or (c eq 3 or d eq 4))", "a eq 1 or b eq 2 or c eq 3 or d eq 4");
    check("((a eq 1) and (b eq 2)) and (c eq 3)", "a eq 1 and b eq 2 and c eq 3");
    check("not (a eq 1)", "not a eq 1");
    check("not(a eq 1)", "not a eq 1");
    same("not (a eq 1 or b eq 2)");
    same("not a eq 1 and b eq 2");
    check("(not a eq 1) and b eq 2", "not a eq 1 and b eq 2");
    same("not not a eq 1");
    same("a eq 1 and not b eq 2 or not c");
    check("(((a))) eq ((1))", "a eq 1");
    check("(a eq 1)and(b eq 2)or(c eq 3)", "a eq 1 and b eq 2 or c eq 3");
    check("\ta\neq\r1  ", "a eq 1");

    let Ok(Some(Filter::Or(terms))) = Filter::parse("a eq 1 or b eq 2 and c eq 3 or (d eq 4 or e eq 5)") else {
        panic!("a chain of `or` is one node");
    };
    assert_eq!(terms.len(), 4);
    assert!(matches!(terms[1], Filter::And(_)));
}

#[test]
fn bare_booleans() {
    same("true");
    same("false");
    check("(false)", "false");
    same("Active");
    same("not Active");
    same("Active and Age gt 3");
    same("true or not false");
}

/// Each of these was seen in a recording, or is made by an SDK.
#[test]
fn filters_of_clients() {
    same("PartitionKey eq 'pk'");
    same("married eq true and RowKey eq 'rk'");
    same("age lt 40");
    same("ratio lt 4.1");
    same("large_int eq 1099511627776L");
    check("large_int eq 1099511627776", "large_int eq 1099511627776L");
    same("clsid eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'");
    same("binary eq X'62696e617279'");
    check("birthday eq datetime'1970-10-04T00:00:00.000000Z'", "birthday eq datetime'1970-10-04T00:00:00Z'");
    same("PartitionKey eq ':@' and RowKey eq '+,$' and Chars eq '?''/!_^#'");
    same("TableName eq 'a' or TableName eq 'b'");
    same("TableName ge 'p' and TableName lt 'p{'");
    check(
        "((PartitionKey eq 'a') and (RowKey ge 'b')) and (N gt 60L)",
        "PartitionKey eq 'a' and RowKey ge 'b' and N gt 60L",
    );
    same("Address eq 'street1' and RowKey eq 'row-\u{F4}'");
}

#[test]
fn errors() {
    let syntax = |position: usize, text: &str| ServiceError::FilterSyntax {
        position: position.to_string(),
        text: text.to_owned(),
    };
    let check = |text: &str, expect: ServiceError| assert_eq!(Filter::parse(text), Err(expect), "{text}");

    for (text, position) in [
        ("aaa bbb ccc", 7),
        ("a EQ 1", 4),
        ("a eq 1 b eq 2", 8),
        ("a eq 1 AND b eq 2", 10),
        ("eq 1", 4),
        ("a 'x'", 5),
        ("a (b)", 3),
        ("a eq 1)", 7),
        ("(aaa bbb ccc)", 8),
        ("'\u{1F600}' bbb", 8),
        ("a eq 1 5", 8),
        ("a like 'x'", 6),
        ("a eq 5-3", 8),
        ("a eq 1 f(x)", 8),
    ] {
        check(text, syntax(position, text));
    }
    for text in [
        "1",
        "'a'",
        "1.5",
        "NaN",
        "1 and a eq 2",
        "a eq 2 or 'x'",
        "not 5",
        "(7)",
        "guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
    ] {
        check(text, ServiceError::FilterNotBoolean);
    }
    for text in [
        "startswith(a,'b')",
        "substringof('b',a)",
        "contains(a,'b') eq true",
        "tolower(a) eq 'b'",
        "a eq 1 and not endswith(a,'b')",
        "'x' eq trim(a)",
        "a add 1 eq 2",
        "a eq 1 sub 1",
        "1 mul 1",
        "a div 1 eq 2",
        "a mod 2 eq 0",
    ] {
        check(text, ServiceError::NotImplemented);
    }
    for text in [
        "a eq 'x",
        "'",
        "a eq '''",
        "a eq X'62",
        "a eq",
        "a eq 1 and",
        "a eq 1 or",
        "not",
        "(a eq 1",
        "((a eq 1)",
        "()",
        "(",
        ")",
        ")a eq 1",
        "a eq ()",
        "a eq null",
        "null",
        "null eq a",
        "a eq b",
        "a eq 1 eq 2",
        "(a eq 1) eq true",
        "a eq not b",
        "a eq (not b)",
        "a eq (b eq 1)",
        "a eq datetime'yesterday'",
        "a eq datetime'2019-02-30'",
        "a eq guid'c9da6455'",
        "a eq X'6'",
        "a eq X'6g'",
        "a eq time'12:00'",
        "a eq datetimeoffset'2019-07-10T19:00:00Z'",
        "a eq foo'bar'",
        "a eq 9223372036854775808",
        "a eq 9223372036854775808L",
        "a eq -9223372036854775809L",
        "a eq 1e400",
        "a eq -INFd",
        "a eq 1.5L",
        "a eq 1.5f",
        "a eq 1.5M",
        "a eq 12abc",
        "a eq 0x10",
        "a eq 1.",
        "a eq .5",
        "a eq 1e",
        "a eq 1e+",
        "a eq 1.2.3",
        "a eq -",
        "a eq - 5",
        "-a eq 5",
        "a eq +5",
        "a/b eq 1",
        "a.b eq 1",
        "a = 1",
        "a eq 1, b eq 2",
        "a\u{A0}eq 1",
        "\0",
    ] {
        check_invalid(text);
    }
}

/// Asserts that a text is refused as the service refuses it, with a line that says why.
#[track_caller]
fn check_invalid(text: &str) {
    let shown: String = text.chars().take(100).collect();
    match Filter::parse(text) {
        Err(ServiceError::FilterInvalid { detail }) => {
            assert!(detail.starts_with("\nThe filter at position "), "{detail}")
        }
        other => panic!("{shown}: {other:?}"),
    }
}

#[test]
fn messages() {
    for (text, code, message) in [
        ("aaa bbb ccc", "InvalidInput", "Syntax error at position 7 in 'aaa bbb ccc'."),
        ("1", "InvalidInput", "The $filter expression must evaluate to a single boolean value."),
        (
            "P eq null",
            "InvalidInput",
            "One of the request inputs is not valid.\nThe filter at position 5: nothing is ever null, since a property that is null is not stored.",
        ),
        (
            "\u{1F600} gt",
            "InvalidInput",
            "One of the request inputs is not valid.\nThe filter at position 0: '\u{1F600}' cannot begin anything.",
        ),
        (
            "Näme gt",
            "InvalidInput",
            "One of the request inputs is not valid.\nThe filter at position 7: a property, a value or a condition is missing.",
        ),
        (
            "(a eq 1",
            "InvalidInput",
            "One of the request inputs is not valid.\nThe filter at position 7: a parenthesis is not closed.",
        ),
        (
            "a eq 1 and b eq c",
            "InvalidInput",
            "One of the request inputs is not valid.\nThe filter at position 17: before this, a comparison is not of a property and a value.",
        ),
        (
            "When ge datetime'yesterday'",
            "InvalidInput",
            "One of the request inputs is not valid.\nThe filter at position 8: the text in quotes is not of the type before them.",
        ),
        (
            "startswith(a,'b')",
            "NotImplemented",
            "The requested operation is not implemented on the specified resource.",
        ),
    ] {
        let error = Filter::parse(text).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, message), "{text}");
    }
}

#[test]
fn comparisons_are_counted() {
    let chain = |count: usize| vec!["RowKey eq 'x'"; count].join(" or ");
    let filter = Filter::parse(&chain(FILTER_COMPARISONS_MAX)).unwrap().unwrap();
    assert_eq!(filter.comparisons(), FILTER_COMPARISONS_MAX);
    check_invalid(&chain(FILTER_COMPARISONS_MAX + 1));
    let bare = vec!["true"; FILTER_COMPARISONS_MAX + 1].join(" and ");
    check_invalid(&bare);
}

/// Texts as deep as allowed, with as much on each level as a text can have.
fn deepest() -> Vec<String> {
    let nested = |open: &str, inner: &str, close: &str, times: usize| open.repeat(times) + inner + &close.repeat(times);
    vec![
        nested("(", "a eq 1", ")", FILTER_DEPTH_MAX),
        nested("not ", "a eq 1", "", FILTER_DEPTH_MAX),
        nested("a or RowKey gt 'x' and (", "b or c", ")", FILTER_DEPTH_MAX),
        nested("(", "b or c", ") and RowKey lt 'x' or a", FILTER_DEPTH_MAX),
        nested("a or PartitionKey gt 'x' and not (", "b or c", ")", FILTER_DEPTH_MAX / 2),
    ]
}

#[test]
fn depth_is_limited() {
    for text in deepest() {
        assert!(Filter::parse(&text).is_ok(), "{text}");
    }
    for text in [
        format!("{}a eq 1{}", "(".repeat(FILTER_DEPTH_MAX + 1), ")".repeat(FILTER_DEPTH_MAX + 1)),
        format!("{}a eq 1", "not ".repeat(FILTER_DEPTH_MAX + 1)),
        "(".repeat(1_000_000),
        "not ".repeat(1_000_000),
        "not(".repeat(1_000_000),
    ] {
        check_invalid(&text);
    }
    // What stands side by side is not deep.
    assert!(Filter::parse(&vec!["not (a eq 1)"; FILTER_COMPARISONS_MAX].join(" and ")).is_ok());
}

/// A server's thread has 2 MiB, and tests are not optimised, so this is the least there will ever be. The test takes
/// half of it, since whoever calls has used some.
#[test]
fn the_deepest_filter_fits_the_stack() {
    let run = || {
        for text in deepest() {
            let filter = Filter::parse(&text).unwrap().unwrap();
            let copy = filter.clone();
            assert_eq!(copy, filter);
            assert_eq!(Filter::parse(&format!("{filter:?}")), Ok(Some(copy)));
            let bytes = Record::encode(&[]);
            let record = Record::open(&bytes).unwrap();
            let entity = EntityView { partition_key: "y", row_key: "y", timestamp: Ticks(0), record };
            filter.matches(&entity).unwrap();
            filter.matches_table("name");
            filter.comparisons();
            Plan::of(Some(&filter)).start();
            let outline = Outline::of(&filter);
            outline.may_match(&vec![[0, 1].as_slice(); outline.columns().len()]);
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

/// Pieces of filters, right and wrong.
fn soup() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        proptest::sample::select(vec![
            "(",
            ")",
            "not",
            "and",
            "or",
            "eq",
            "ne",
            "gt",
            "ge",
            "lt",
            "le",
            "add",
            "mod",
            "true",
            "false",
            "null",
            "a",
            "PartitionKey",
            "RowKey",
            "'x'",
            "''",
            "'",
            "1",
            "-5",
            "1L",
            "1.5",
            "1e",
            "-",
            "+",
            "NaN",
            "-INF",
            "datetime'",
            "datetime'2020-01-01'",
            "guid'",
            "X'00'",
            "X'0'",
            "f(",
            ",",
            ".",
            "\u{1F600}",
            "\u{E001}",
            "\u{A0}",
            "\0",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    (proptest::collection::vec(token, 0..30), proptest::sample::select(vec!["", " ", "\t"]))
        .prop_map(|(tokens, between)| tokens.join(between))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_printed_is_read_again(filter in filter()) {
        prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(Some(filter)));
    }

    #[test]
    fn no_text_panics(text in prop_oneof![any::<String>(), soup()]) {
        if let Ok(Some(filter)) = Filter::parse(&text) {
            prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(Some(filter)));
        }
    }
}
