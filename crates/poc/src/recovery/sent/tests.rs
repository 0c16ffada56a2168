//! Each rule by itself. What is in a packet is its number.

use super::*;
use crate::packet::{Arrival, Arrivals, Spans};

const DELAY: Duration = Duration::from_millis(5);

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A sender, and what followed from the last call. Times are in milliseconds.
struct End {
    sent: Sent<u64>,
    outcome: Outcome<u64>,
}

impl End {
    /// Packets of 1000 bytes, sent at these times.
    fn new(times: &[u64]) -> Self {
        let sent = Sent::new(Settings { rtt: Duration::from_millis(100), ack_delay_max: DELAY });
        let mut end = End { sent, outcome: Outcome::new() };
        times.iter().for_each(|time| end.send(*time));
        end
    }

    fn send(&mut self, time: u64) {
        let number = self.sent.next_number();
        assert_eq!(self.sent.handle_sent(ms(time), 1000, number), Ok(number));
    }

    fn ack_with(&mut self, time: u64, spans: &[(u64, u64)], ecn: Option<MarkCounts>) -> Result<(), AckError> {
        let spans: Vec<_> = spans.iter().map(|(first, last)| Span { first: *first, last: *last }).collect();
        let (packets, arrivals) = (Spans::new(&spans), Arrivals::NONE);
        let ack = Ack { packets, delay: Duration::ZERO, arrivals, ecn };
        self.sent.handle_ack(ms(time), &ack, &mut self.outcome)
    }

    fn ack(&mut self, time: u64, spans: &[(u64, u64)]) {
        self.ack_with(time, spans, None).expect("the peer is honest");
    }

    fn timeout(&mut self, time: u64) {
        self.sent.handle_timeout(ms(time), &mut self.outcome);
    }

    fn acked(&self) -> Vec<u64> {
        assert!(self.outcome.acked.iter().all(|acked| acked.number == acked.content));
        self.outcome.acked.iter().map(|acked| acked.number).collect()
    }

    fn lost(&self) -> Vec<(u64, Cause)> {
        assert!(self.outcome.lost.iter().all(|lost| lost.number == lost.content));
        self.outcome.lost.iter().map(|lost| (lost.number, lost.cause)).collect()
    }

    fn spurious(&self) -> Vec<(u64, u64)> {
        self.outcome.spurious.iter().map(|spurious| (spurious.number, spurious.behind)).collect()
    }
}

#[test]
fn each_packet_is_acknowledged_once() {
    let mut end = End::new(&[0, 1, 2, 3]);
    assert_eq!((end.sent.in_flight(), end.sent.bytes_in_flight()), (4, 4000));
    end.ack(50, &[(0, 1)]);
    assert_eq!(end.acked(), [0, 1]);
    assert_eq!(end.outcome.rtt, Some(Duration::from_millis(49)));
    end.ack(51, &[(0, 2)]);
    assert_eq!(end.acked(), [2]);
    end.ack(52, &[(0, 2)]);
    assert_eq!((end.acked(), end.outcome.rtt), (vec![], None));
    assert_eq!((end.sent.in_flight(), end.sent.bytes_in_flight()), (1, 1000));
}

#[test]
fn three_later_packets_make_one_lost() {
    let mut end = End::new(&[0, 0, 0, 0, 0]);
    end.ack(50, &[(2, 2)]);
    assert_eq!(end.lost(), []);
    end.ack(50, &[(2, 3)]);
    assert_eq!(end.lost(), [(0, Cause::Packets)]);
    end.ack(50, &[(2, 4)]);
    assert_eq!((end.lost(), end.sent.in_flight()), (vec![(1, Cause::Packets)], 0));
}

#[test]
fn an_eighth_of_a_round_trip_more_makes_one_lost() {
    let mut end = End::new(&[0, 8]);
    end.ack(88, &[(1, 1)]);
    assert_eq!((end.lost(), end.sent.next_timeout()), (vec![], Some(ms(90))));
    end.timeout(89);
    assert_eq!((end.lost(), end.outcome.probe), (vec![], false));
    end.timeout(90);
    assert_eq!((end.lost(), end.sent.next_timeout()), (vec![(0, Cause::Time)], None));
}

#[test]
fn what_was_sent_later_is_not_lost() {
    let mut end = End::new(&[0, 1, 2, 3, 4, 5]);
    end.ack(80, &[(0, 2)]);
    assert_eq!(end.lost(), []);
    // Only a probe can tell.
    assert_eq!(end.sent.next_timeout(), Some(ms(80 + 78 + 4 * 39 + 5)));
}

#[test]
fn a_late_acknowledgement_shows_that_nothing_was_lost() {
    let mut end = End::new(&[0, 0, 0, 0, 0, 0, 0]);
    end.ack(50, &[(1, 6)]);
    assert_eq!(end.lost(), [(0, Cause::Packets)]);
    end.ack(51, &[(0, 6)]);
    assert_eq!((end.acked(), end.spurious()), (vec![], vec![(0, 6)]));
    end.ack(52, &[(0, 6)]);
    assert_eq!(end.spurious(), []);
    // Seven behind would have been right.
    assert_eq!((end.sent.reordering(), end.sent.counts().spurious), (7, 1));
    (0..8).for_each(|_| end.send(60));
    end.ack(110, &[(0, 6), (9, 13)]);
    assert_eq!(end.lost(), []);
    end.ack(110, &[(0, 6), (9, 14)]);
    assert_eq!(end.lost(), [(7, Cause::Packets)]);
}

#[test]
fn what_came_late_is_forgotten_after_sixteen_round_trips() {
    let mut end = End::new(&[0, 0, 0, 0, 0]);
    end.ack(50, &[(1, 4)]);
    end.ack(51, &[(0, 4)]);
    assert_eq!(end.sent.reordering(), 5);
    end.send(60);
    end.ack(110, &[(0, 5)]);
    assert_eq!(end.sent.reordering(), 5);
    end.send(900);
    end.ack(950, &[(0, 6)]);
    assert_eq!(end.sent.reordering(), 3);
}

#[test]
fn packets_that_were_never_sent_cannot_be_acknowledged() {
    let mut end = End::new(&[0, 0]);
    assert_eq!(end.sent.skip(), Ok(2));
    end.send(1);
    for spans in [&[(0, 4)][..], &[(4, 4)], &[(0, 0), (1 << 50, 1 << 60)], &[(0, 3)], &[(2, 2)]] {
        assert_eq!(end.ack_with(50, spans, None), Err(AckError::NeverSent), "{spans:?}");
        assert_eq!((end.acked(), end.sent.in_flight()), (vec![], 3));
    }
    assert_eq!(end.ack_with(50, &[], None), Err(AckError::Nothing));
    end.ack(50, &[(0, 1), (3, 3)]);
    assert_eq!(end.acked(), [0, 1, 3]);
    assert_eq!(end.ack_with(50, &[(0, 3)], None), Err(AckError::NeverSent));
}

#[test]
fn an_old_acknowledgement_changes_nothing() {
    let mut end = End::new(&[0, 0, 0, 0]);
    end.ack_with(50, &[(0, 3)], Some(MarkCounts { ce: 3, ..MarkCounts::default() }))
        .expect("the peer is honest");
    let (rtt, next) = (*end.sent.rtt(), end.sent.next_timeout());
    end.ack_with(90, &[(0, 1)], Some(MarkCounts { ce: 1, ..MarkCounts::default() }))
        .expect("it is late, that is all");
    assert_eq!((end.acked(), end.lost(), end.outcome.rtt, end.outcome.ecn), (vec![], vec![], None, None));
    assert_eq!((*end.sent.rtt(), end.sent.next_timeout(), end.sent.counts().ecn_refused), (rtt, next, 0));
}

#[test]
fn marks_are_told_as_they_grow() {
    let mut end = End::new(&[0, 0, 0, 0]);
    let ecn = |ect0, ce| Some(MarkCounts { ect0, ect1: 0, ce });
    end.ack_with(50, &[(0, 1)], ecn(2, 0)).expect("the peer is honest");
    assert_eq!(end.outcome.ecn, ecn(2, 0));
    end.ack_with(50, &[(0, 2)], ecn(2, 1)).expect("the peer is honest");
    assert_eq!(end.outcome.ecn, ecn(0, 1));
    end.ack_with(50, &[(0, 3)], ecn(3, 0)).expect("the path is to blame");
    assert_eq!((end.outcome.ecn, end.sent.counts().ecn_refused), (None, 1));
}

#[test]
fn times_of_arrival_come_with_their_packets() {
    let mut end = End::new(&[0, 0, 0, 0]);
    end.ack(40, &[(1, 1)]);
    let arrivals = [(1, 5), (3, 8), (0, 16), (2, 24)].map(|(number, ticks)| Arrival { number, ticks });
    let packets = [Span { first: 0, last: 2 }];
    let ack = Ack {
        packets: Spans::new(&packets),
        delay: Duration::ZERO,
        arrivals: Arrivals::new(&arrivals),
        ecn: None,
    };
    end.sent.handle_ack(ms(50), &ack, &mut end.outcome).expect("the peer is honest");
    let received: Vec<_> = end.outcome.acked.iter().map(|acked| (acked.number, acked.received)).collect();
    assert_eq!(received, [(0, Some(Duration::from_millis(2))), (2, Some(Duration::from_millis(3)))]);
}

#[test]
fn probes_come_ever_later_and_the_last_one_gives_up() {
    let mut end = End::new(&[0, 0]);
    end.ack(100, &[(0, 0)]);
    let (mut waits, mut now) = (Vec::new(), ms(100));
    while let Some(due) = end.sent.next_timeout() {
        waits.push(due.since(now).as_millis());
        now = due;
        end.sent.handle_timeout(now, &mut end.outcome);
        assert!(end.outcome.probe);
        assert_eq!(end.sent.oldest(), (waits.len() < 7).then_some((1, &1)));
    }
    // 100 + 4·50 + 5, and then twice that; 10 s at most.
    assert_eq!(waits, [305, 610, 1220, 2440, 4880, 9760, 10_000]);
    assert_eq!((end.lost(), end.sent.counts().probes), (vec![(1, Cause::Silence)], 7));
    // It was there after all.
    end.ack(40_000, &[(0, 1)]);
    assert_eq!(end.spurious(), [(1, 0)]);
}

#[test]
fn an_answer_ends_the_backing_off() {
    let mut end = End::new(&[0, 0]);
    end.timeout(305);
    assert_eq!(end.sent.next_timeout(), Some(ms(305 + 2 * 305)));
    end.ack(400, &[(0, 0)]);
    assert_eq!(end.sent.next_timeout(), Some(ms(400 + 400 + 4 * 200 + 5)));
}

#[test]
fn one_that_goes_on_sending_learns_that_there_is_no_answer() {
    let (mut end, mut now) = (End::new(&[]), 0);
    while end.outcome.lost.is_empty() {
        end.send(now);
        end.timeout(now);
        now += 10;
    }
    // 305 ms, doubled up to 10 s; what was sent just now could not be answered yet.
    let gives_up = now - 10;
    assert!((29_215..=29_300).contains(&gives_up), "{gives_up}");
    assert_eq!(end.sent.in_flight(), 31);
    assert!(end.outcome.lost.iter().all(|lost| lost.sent + Duration::from_millis(305) <= ms(gives_up)));
}

#[test]
fn the_peer_cannot_claim_a_longer_wait_than_it_may() {
    let mut end = End::new(&[0]);
    end.ack(100, &[(0, 0)]);
    end.send(200);
    let packets = [Span::of(1)];
    let (packets, arrivals) = (Spans::new(&packets), Arrivals::NONE);
    let ack = Ack { packets, delay: Duration::from_secs(1), arrivals, ecn: None };
    end.sent.handle_ack(ms(350), &ack, &mut end.outcome).expect("the peer may say so");
    assert_eq!(end.sent.rtt().smoothed(), (7 * Duration::from_millis(100) + Duration::from_millis(145)) / 8);
}

#[test]
fn nothing_is_waited_for_if_nothing_is_in_flight() {
    let mut end = End::new(&[]);
    assert_eq!(end.sent.handle_sent_silent(ms(0)), Ok(0));
    assert_eq!(end.sent.next_timeout(), None);
    end.timeout(100_000);
    assert!(!end.outcome.probe);
    end.send(1);
    assert_eq!(end.sent.handle_sent_silent(ms(2)), Ok(2));
    end.ack(100, &[(0, 2)]);
    // Of a packet that elicits nothing, no time is known.
    assert_eq!((end.acked(), end.outcome.rtt, end.sent.next_timeout()), (vec![1], None, None));
}

#[test]
fn too_many_packets_are_refused() {
    let mut end = End::new(&[0; HISTORY_PACKETS_MAX]);
    assert!(end.sent.is_full());
    assert_eq!(end.sent.handle_sent(ms(0), 1, 0), Err(Full));
    assert_eq!((end.sent.skip(), end.sent.handle_sent_silent(ms(0))), (Err(Full), Err(Full)));
    end.ack(50, &[(1, 1)]);
    assert!(end.sent.is_full());
    end.ack(50, &[(0, 0)]);
    assert_eq!(end.sent.handle_sent(ms(50), 1, 0), Ok(HISTORY_PACKETS_MAX as u64));
}

#[test]
fn another_path_is_measured_by_what_is_sent_on_it() {
    let mut end = End::new(&[0, 0]);
    end.ack(30, &[(0, 0)]);
    end.sent.handle_path_change();
    end.ack(31, &[(0, 1)]);
    assert!(!end.sent.rtt().is_measured() && end.outcome.rtt.is_none());
    end.send(40);
    end.ack(240, &[(0, 2)]);
    assert_eq!(end.sent.rtt().smoothed(), Duration::from_millis(200));
}
