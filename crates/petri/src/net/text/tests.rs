//! Nets written by hand, what is said of mistakes, and round trips.

use super::*;
use crate::net::samples;

const MPEG: &str = include_str!("../../../nets/mpeg.tspn");

#[test]
fn the_mpeg_net_that_is_shipped_is_the_one_of_the_paper() {
    let net: Net = MPEG.parse().expect("a net");
    assert!(net == samples::mpeg(), "crates/petri/nets/mpeg.tspn should say:\n{}", samples::mpeg());
}

#[test]
fn printing_and_reading_is_the_same_net() {
    for net in [samples::mpeg(), samples::lip_sync(), samples::mpeg().without_names()] {
        assert!(net.to_string().parse::<Net>().as_ref() == Ok(&net), "{net}");
    }
}

#[test]
fn a_net_can_be_written_by_hand() {
    let net = samples::lip_sync();
    assert_eq!((net.transitions().len(), net.places().len(), net.objects()), (2, 6, 5));
    let sound = net.transitions()[0].master.expect("a master");
    assert_eq!(net.places()[sound.index()].name.to_string(), "sound");
    assert_eq!(net.places()[0].interval, Interval::until_ms(40, 400));
    assert_eq!(net.places()[4].interval.latest, None);
}

#[test]
fn times_come_in_one_word_or_in_two() {
    let with = |within: &str| {
        format!("transition t and\nobject x from t to t within {within} holding 1").parse::<Net>()
    };
    let us = Duration::from_micros;
    let interval = Interval { earliest: us(5), nominal: us(2000), latest: Some(us(3_000_000)) };
    for within in ["5 us, 2 ms, 3 s", "5us 2ms 3s", "5 us,2ms  ,\t3 s"] {
        assert_eq!(with(within).expect("a net").places()[0].interval, interval);
    }
    assert_eq!(with("0 ms, 0 ms, inf").expect("a net").places()[0].interval, Interval::ALWAYS);
}

/// What is said of a text with one line wrong.
fn complaint(line: &str) -> String {
    let text = format!("transition t and # fine\n\n{line}\nobject x from t to t holding 1\n");
    text.parse::<Net>().expect_err("no net").to_string()
}

#[test]
fn mistakes_are_named_by_line_with_what_to_write() {
    for (line, said) in [
        (
            "place y from t to t",
            "line 3: \"place\" is not known: a line begins with transition, object or order",
        ),
        ("transition", "line 3: the name of the transition is missing"),
        ("transition u", "line 3: the rule by which the transition fires is missing"),
        ("transition u nand", "line 3: \"nand\" is no rule: write one of strong-or, or, or-master, and,"),
        ("transition t or", "line 3: there is a transition t already"),
        ("transition u master x", "line 3: \"x\" stands where \"by\" and the name of the master belong"),
        ("transition u master by", "line 3: the name of the master is missing"),
        ("transition u master by x y", "line 3: \"y\" is too much"),
        ("transition u[1..3] and", "line 3: \"u[1..3]\" is not the name of one thing"),
        ("transition u master by z", "line 3: no place is called z"),
        ("object", "line 3: the name of the place is missing"),
        ("object y[1 from t to t", "line 3: \"y[1\" is no name"),
        ("object y[3..1] from t to t", "line 3: \"y[3..1]\" is no name"),
        ("object y[01] from t to t", "line 3: \"y[01]\" is no name"),
        ("object y[0..99999] from t to t", "line 3: more than 16384 places"),
        ("object y", "line 3: from is missing"),
        ("object y to t", "line 3: \"to\" stands where \"from\" and the name of a transition belong"),
        ("object y from u to t", "line 3: no transition is called u: add the line \"transition u …\""),
        ("object y from t to t for 3 ms", "line 3: \"for\" is too much"),
        ("object y from t to t within 3", "line 3: 3 of what? Write s, ms or us behind it"),
        ("object y from t to t within 1.5 ms", "line 3: 1 of what?"),
        ("object y from t to t within x", "line 3:  of what?"),
        ("object y from t to t within 3 ms", "line 3: a time, as in 40 ms, is missing"),
        ("object y from t to t within 99999999999999999999 ms 1 ms 1 ms", "is no time"),
        (
            "object y from t to t within inf, 1 ms, 2 ms",
            "line 3: only the latest time, the third, can be inf",
        ),
        ("object y from t to t within 3 ms, 2 ms, 4 ms", "line 3: the interval is not in order"),
        ("object y from t to t holding many", "line 3: \"many\" is no number of tokens"),
        ("object y from t to t holding", "line 3: the number of tokens is missing"),
        ("object y from t to t", "t → (y) → t; let one of its places hold a token"),
        ("object x from t to t holding 1", "two places are called x"),
        ("transition u master by x\nobject z from u to u holding 1", "master of transition u is not a place"),
    ] {
        let complaint = complaint(line);
        assert!(complaint.contains(said), "{line}: {complaint}");
    }
    let long = "#".repeat(TEXT_BYTES_MAX + 1).parse::<Net>().expect_err("long");
    assert!(long.to_string().contains("bytes"));
}
