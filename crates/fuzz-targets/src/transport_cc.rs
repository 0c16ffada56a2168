//! What receivers say of the packets of a transport: messages, what makes them, and what follows from them.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use outflow_congestion::limits::LEDGER_PACKETS_MAX;
use outflow_congestion::{Bounds, Estimator, Ledger, Outcome};
use outflow_media::Time;
use outflow_rtp::Arrivals;
use outflow_rtp::limits::{ARRIVALS_MAX, TRANSPORT_STATUSES_MAX};
use outflow_rtp::rtcp::transport_cc::{self, Feedback, Writer};

/// When the clock wraps that messages tell of, in microseconds.
const WRAPS_US: i64 = (1 << 24) * 64_000;

/// Behind a byte of zero come packets of RTCP. Behind another one come steps, each of a byte that says what, and three
/// that say what of: packets that come in order, or with any number, time that passes, messages.
pub(crate) fn transport_cc(data: &[u8]) {
    match data.split_first() {
        Some((0, packets)) => {
            let _malformed = transport_cc::read(packets, |feedback| check(&feedback, packets.len()));
        }
        Some((_, steps)) => record(steps),
        None => (),
    }
}

/// No more is told than it may be, all of what is told is; and what is written of that is told again.
fn check(feedback: &Feedback<'_>, bytes: usize) {
    let statuses: Vec<_> = feedback.statuses().collect();
    let (count, most) = (usize::from(feedback.count()), usize::from(TRANSPORT_STATUSES_MAX));
    assert!(statuses.len() >= count.min(most) && statuses.len() <= count.min(most + 7 * bytes));
    let Some((last, _)) = statuses.last() else { return };
    assert_eq!(*last, feedback.first().wrapping_add(feedback.count() - 1));
    if statuses.len() < count {
        return;
    }
    let began = 2 * WRAPS_US + i64::from(feedback.reference()) * 64_000;
    let time = |at: i64| Time::from_micros((began + at).unsigned_abs());
    let arrivals: Vec<_> = statuses.iter().map(|(_, at)| at.map(time)).collect();
    let mut again = Vec::new();
    Writer::new(1, 2).write(feedback.first(), &arrivals, "fuzz", |bytes| again.extend(told(&bytes)));
    let by_clock =
        |(number, at): &(u16, Option<i64>)| (*number, at.map(|at| (began + at).rem_euclid(WRAPS_US)));
    let arrived = statuses.iter().rposition(|(_, at)| at.is_some()).map_or(0, |last| last + 1);
    assert_eq!(again, statuses[..arrived].iter().map(by_clock).collect::<Vec<_>>());
}

/// What one of our own messages says, by the receiver's clock.
fn told(bytes: &[u8]) -> Vec<(u16, Option<i64>)> {
    let mut all = Vec::new();
    transport_cc::read(bytes, |feedback| {
        let began = i64::from(feedback.reference()) * 64_000;
        let by_clock = |at: i64| (began + at).rem_euclid(WRAPS_US);
        all.extend(feedback.statuses().map(|(number, at)| (number, at.map(by_clock))));
    })
    .expect("its own message");
    all
}

/// What is told to have come has come then.
fn record(steps: &[u8]) {
    let (mut arrivals, mut writer) = (Arrivals::default(), Writer::new(1, 2));
    let mut came: BTreeMap<u16, BTreeSet<i64>> = BTreeMap::new();
    let (mut now, mut next) = (Time::from_millis(1000), 0_u16);
    for [what, a, b, c] in steps.as_chunks::<4>().0 {
        match what % 4 {
            0 => next = next.wrapping_add(u16::from(*a)),
            1 => next = u16::from_be_bytes([*a, *b]),
            2 => now = now + Duration::from_millis(u64::from(u16::from_be_bytes([*a, *b]))),
            _ => {
                now = now.max(arrivals.due().unwrap_or(now));
                let Some((first, times)) = arrivals.poll(now) else { continue };
                assert!(times.len() <= ARRIVALS_MAX && times.last().is_some_and(Option::is_some));
                writer.write(first, times, "fuzz", |bytes| {
                    for (number, at) in told(&bytes) {
                        assert!(at.is_none_or(|at| came[&number].contains(&at)), "{number} at {at:?}");
                    }
                });
                assert_eq!(arrivals.due(), None, "all is told");
                continue;
            }
        }
        for _ in 0..=c % 64 {
            now = now + Duration::from_micros(250);
            arrivals.handle(now, next, usize::from(*b) * 8);
            came.entry(next).or_default().insert((now.as_micros() / 250 * 250).cast_signed() % WRAPS_US);
            next = next.wrapping_add(1);
        }
    }
}

const BOUNDS: Bounds = Bounds { initial_bps: 500_000, min_bps: 50_000, max_bps: 20_000_000 };

/// Steps, each of a byte that says what, two that say what of, and one that says how many bytes it has: packets that are
/// sent, time that passes, a probe, packets of RTCP as they are, and a message about packets that were sent, of which
/// each byte is one that is lost or the time since the one before.
pub(crate) fn estimate(mut data: &[u8]) {
    let mut run = Run {
        now: Time::from_millis(1000),
        ledger: Ledger::new(65_400),
        estimator: Estimator::new(BOUNDS),
        sent: BTreeMap::new(),
        came: BTreeSet::new(),
        lost: BTreeSet::new(),
    };
    while let [what, a, b, length, rest @ ..] = data {
        let (body, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        data = behind;
        run.step(*what, *a, *b, body);
        let bps = run.estimator.estimate_bps();
        assert!((BOUNDS.min_bps..=BOUNDS.max_bps).contains(&bps), "{bps}");
    }
}

struct Run {
    now: Time,
    ledger: Ledger,
    estimator: Estimator,
    /// When each packet was sent, and its bytes.
    sent: BTreeMap<u64, (Time, u64)>,
    came: BTreeSet<u64>,
    lost: BTreeSet<u64>,
}

impl Run {
    fn step(&mut self, what: u8, a: u8, b: u8, body: &[u8]) {
        match what % 5 {
            0 => {
                for _ in 0..a {
                    self.now = self.now + Duration::from_micros(u64::from(b) * 16);
                    let number = self.ledger.handle_sent(self.now, u64::from(b) * 8);
                    self.sent.insert(number, (self.now, u64::from(b) * 8));
                }
            }
            1 => self.now = self.now + Duration::from_millis(u64::from(u16::from_be_bytes([a, b]))),
            2 => {
                if let Some(bps) = self.estimator.probe_bps(self.now, u64::from(b) * 100_000) {
                    self.estimator.handle_probe(self.now, self.ledger.next_number(), a.into(), bps);
                }
            }
            3 => {
                let mut all = Vec::new();
                let _malformed = transport_cc::read(body, |feedback| {
                    all.push((feedback.reference(), feedback.statuses().collect()));
                });
                all.into_iter().for_each(|(reference, statuses)| self.hear(reference, statuses));
            }
            _ => {
                let reference = self.now.as_micros() / 64_000 + u64::from(b);
                let first = (self.ledger.next_number() as u16).wrapping_sub(a.into());
                let mut at = 0;
                let said = body.iter().enumerate().map(|(n, byte)| {
                    at += i64::from(byte.cast_signed()) * 250;
                    (first.wrapping_add(n as u16), (*byte != 0x80).then_some(at))
                });
                self.hear(reference as u32 & 0xff_ffff, said.collect());
            }
        }
    }

    fn hear(&mut self, reference: u32, statuses: Vec<(u16, Option<i64>)>) {
        let outcomes: Vec<Outcome> = self.ledger.handle_feedback(self.now, reference, statuses).collect();
        for outcome in &outcomes {
            let (sent, bytes) = self.sent[&outcome.number];
            assert_eq!(outcome.bytes, bytes);
            // What is older is taken for younger.
            if self.now.since(sent) < Duration::from_secs(3600) {
                assert_eq!(outcome.sent.as_micros(), sent.as_micros());
            }
            assert!(outcome.number + LEDGER_PACKETS_MAX as u64 >= self.ledger.next_number());
            assert_eq!(outcome.was_lost, self.lost.contains(&outcome.number));
            let is_new = match outcome.received_us {
                Some(_) => self.came.insert(outcome.number),
                None => !self.came.contains(&outcome.number) && self.lost.insert(outcome.number),
            };
            assert!(is_new, "{outcome:?}");
        }
        self.estimator.handle(self.now, outcomes);
    }
}
