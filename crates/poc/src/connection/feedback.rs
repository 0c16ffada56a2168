//! What congestion control is told: it goes by packets with units in them, when they came, and how they were
//! marked.

use core::time::Duration;

use outflow_congestion::{Acked, Controller, Lost};
use outflow_media::Time;

use super::contents::Contents;
use crate::packet::{Ack, MarkCounts};
use crate::recovery::Outcome;

/// What is remembered for that from one acknowledgement to the next.
#[derive(Debug)]
pub(super) struct Feedback {
    /// Whether packets are still marked, and what the peer counted.
    marks: bool,
    ecn: MarkCounts,
    /// When the peer received a packet, by its clock, and when that was sent: the last one known of.
    told: Option<(Duration, Time)>,
    acked: Vec<Acked>,
    // To be used again.
    lost: Vec<Lost>,
}

impl Feedback {
    pub(super) fn new(marks: bool) -> Self {
        Feedback { marks, ecn: MarkCounts::default(), told: None, acked: Vec::new(), lost: Vec::new() }
    }

    /// What another one needs to go on: the peer's counts of marks, and when it received a packet, and that was sent.
    pub(super) const fn save(&self) -> (bool, MarkCounts, Option<(Duration, Time)>) {
        (self.marks, self.ecn, self.told)
    }

    /// One that goes on.
    pub(super) fn restore((marks, ecn, told): (bool, MarkCounts, Option<(Duration, Time)>)) -> Self {
        Feedback { ecn, told, ..Feedback::new(marks) }
    }

    /// Whether packets are marked.
    pub(super) const fn marks(&self) -> bool {
        self.marks
    }

    /// The peer is elsewhere: packets may be marked again.
    pub(super) const fn handle_path_change(&mut self, marks: bool) {
        self.marks = marks;
    }

    /// Says what became of packets, and what the peer acknowledged with it.
    pub(super) fn tell(
        &mut self,
        now: Time,
        outcome: &Outcome<Contents>,
        ack: Option<&Ack<'_>>,
        ack_delay_max: Duration,
        controller: &mut Controller,
    ) {
        self.note_marks(now, outcome, ack, controller);
        for acked in &outcome.acked {
            self.told = acked.received.map(|received| (received, acked.sent)).or(self.told);
            if acked.content.is_counted {
                let received = acked.received.map_or(Time::ZERO, |received| Time::ZERO + received);
                let (number, bytes, sent) = (acked.number, u64::from(acked.bytes), acked.sent);
                self.acked.push(Acked { number, bytes, sent, received });
            }
        }
        // Before anything was told, they wait.
        if let (Some((received, sent)), Some(ack)) = (self.told, ack) {
            for acked in self.acked.iter_mut().filter(|acked| acked.received == Time::ZERO) {
                // What was told of it may have been lost: then it took as long as another one.
                acked.received = Time::ZERO + received + acked.sent.since(sent) - sent.since(acked.sent);
            }
            if let Some(newest) = self.acked.last() {
                let rtt = now.since(newest.sent).saturating_sub(held(newest.received, ack, ack_delay_max));
                controller.handle_acked(now, &self.acked, rtt);
                self.acked.clear();
            }
        }
        let of = |number, bytes, sent| Lost { number, bytes: u64::from(bytes), sent };
        self.lost.clear();
        let lost = outcome.lost.iter().filter(|lost| lost.content.is_counted);
        self.lost.extend(lost.map(|lost| of(lost.number, lost.bytes, lost.sent)));
        if !self.lost.is_empty() {
            controller.handle_lost(now, &self.lost);
        }
        if !outcome.spurious.is_empty() {
            self.lost.clear();
            self.lost.extend(outcome.spurious.iter().map(|lost| of(lost.number, lost.bytes, lost.sent)));
            controller.handle_spurious(now, &self.lost);
        }
    }

    /// A path, or a peer, that does not count marks, or counts too few, gets none (RFC 9000 section
    /// 13.4.2.1).
    fn note_marks(
        &mut self,
        now: Time,
        outcome: &Outcome<Contents>,
        ack: Option<&Ack<'_>>,
        controller: &mut Controller,
    ) {
        let Some(ack) = ack.filter(|_| self.marks) else { return };
        let marked = outcome.acked.iter().filter(|acked| acked.content.is_marked).count() as u64;
        let Some(news) = outcome.ecn else {
            // Of one that was overtaken nothing is said.
            self.marks = marked == 0 || ack.ecn.is_some();
            return;
        };
        if news.ect0 + news.ce < marked {
            self.marks = false;
            return;
        }
        self.ecn.ect0 += news.ect0;
        self.ecn.ect1 += news.ect1;
        self.ecn.ce += news.ce;
        controller.handle_ecn(now, self.ecn);
    }
}

/// How long the peer waited after it received a packet before it sent an acknowledgement.
fn held(received: Time, ack: &Ack<'_>, ack_delay_max: Duration) -> Duration {
    let largest = ack.arrivals.iter().find(|arrival| arrival.number == ack.largest());
    let largest = largest.or_else(|| ack.arrivals.iter().next());
    let after = largest.map_or(Duration::ZERO, |arrival| (Time::ZERO + arrival.time()).since(received));
    (after + ack.delay).min(ack_delay_max)
}
