//! Which router asks, and what the others do (RFC 3376 section 6.6).

use super::*;

#[test]
fn at_the_start_queries_come_faster() {
    let settings = RouterSettings::new(Link::new(address("10.0.0.100"), 24));
    let mut router = Router::new(Time::ZERO, settings);
    let (mut times, mut out) = (Vec::new(), Vec::new());
    while times.len() < 4 {
        let now = router.next_timeout();
        router.handle_timeout(now);
        while router.poll_transmit(&mut out).is_some() {
            times.push(now.as_millis());
        }
    }
    assert_eq!(times, [0, 31_250, 156_250, 281_250], "sections 8.2, 8.6 and 8.7");
}

#[test]
fn the_router_with_the_lowest_address_asks() {
    let mut lab = Lab::new();
    lab.query("10.0.0.101", query_head(None), &[]);
    assert!(lab.router.is_querier(), "a higher address yields");
    lab.query("10.0.0.99", query_head(None), &[]);
    assert_eq!(lab.router.querier(), address("10.0.0.99"));
    assert_eq!(lab.events, [Event::QuerierChanged { querier: address("10.0.0.99") }]);
    lab.after_ms(254_999);
    assert_eq!((lab.router.is_querier(), lab.asked.len()), (false, 0));
    lab.after_ms(1);
    assert!(lab.router.is_querier(), "section 8.5: 255 s");
    assert_eq!(lab.asked, [(None, false, vec![])]);
    assert_eq!(lab.events[1..], [Event::QuerierChanged { querier: address("10.0.0.100") }]);
}

#[test]
fn robustness_and_interval_are_the_queriers() {
    let mut lab = Lab::new();
    let head = QueryHead { robustness: 3, interval: Duration::from_secs(20), ..query_head(None) };
    lab.query("10.0.0.99", head, &[]);
    lab.after_ms(64_999);
    assert!(!lab.router.is_querier());
    lab.record(RecordKind::ToEx, &[]);
    lab.after_ms(1);
    assert!(lab.router.is_querier(), "3 * 20 s + 10 s / 2");
    lab.after_ms(69_998);
    assert!(lab.state().is_some());
    lab.after_ms(1);
    assert!(lab.state().is_none(), "3 * 20 s + 10 s");

    let mut lab = Lab::new();
    let head = QueryHead { robustness: 0, interval: Duration::ZERO, ..head };
    lab.query("10.0.0.99", head, &[]);
    lab.after_ms(254_999);
    assert!(!lab.router.is_querier(), "section 4.1.6: what is not said is as configured");
}

#[test]
fn a_query_without_an_address_takes_no_part() {
    let mut lab = Lab::new();
    lab.query("0.0.0.0", query_head(None), &[]);
    assert_eq!((lab.router.is_querier(), lab.count(Reason::QuerySource)), (true, 1));
}

#[test]
fn others_than_the_querier_ask_nothing_and_follow_its_queries() {
    let mut lab = Lab::new();
    lab.query("10.0.0.99", query_head(None), &[]);
    lab.record(RecordKind::ToEx, &[]);
    lab.record(RecordKind::ToIn, &[]);
    lab.after_ms(10_000);
    assert_eq!((lab.state(), lab.asked.len()), (Some((Mode::Exclude, vec![])), 0));
    let head = QueryHead { max_response: Duration::from_secs(1), ..query_head(Some(GROUP)) };
    lab.query("10.0.0.99", QueryHead { suppress: true, ..head }, &[]);
    lab.after_ms(5000);
    assert!(lab.state().is_some(), "section 6.6.1: with the S flag, timers stay");
    lab.query("10.0.0.99", head, &[]);
    lab.after_ms(1999);
    assert!(lab.state().is_some());
    lab.after_ms(1);
    assert!(lab.state().is_none(), "section 6.6.1: the last member query time");

    lab.record(RecordKind::Allow, &[1, 2]);
    lab.query("10.0.0.99", head, &[2]);
    lab.after_ms(2000);
    assert_eq!(lab.state(), Some((Mode::Include, vec![1])));
}

#[test]
fn queries_that_have_begun_are_sent_to_their_end() {
    let mut lab = Lab::new();
    lab.record(RecordKind::ToEx, &[]);
    lab.record(RecordKind::ToIn, &[]);
    lab.query("10.0.0.99", query_head(None), &[]);
    lab.after_ms(3000);
    assert_eq!((lab.asked.len(), lab.state()), (2, None), "RFC 2236 section 3");
}

#[test]
fn a_query_of_an_older_version_is_counted() {
    let mut lab = Lab::new();
    lab.query("10.0.0.99", QueryHead { version: Version::V2, ..query_head(None) }, &[]);
    assert_eq!((lab.count(Reason::OlderQuery), lab.router.is_querier()), (1, false), "section 7.3.1");
}
