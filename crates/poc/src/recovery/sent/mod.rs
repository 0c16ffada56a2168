//! Packets in flight, and what became of those that were.

mod outcome;
mod save;
mod thresholds;

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;

pub use self::outcome::{AckError, Acked, Cause, Counts, Full, Lost, Outcome, Spurious};
use self::thresholds::Thresholds;
use super::Rtt;
use crate::limits::{
    HISTORY_PACKETS_MAX, LOST_REMEMBERED_MAX, PROBE_AFTER_MAX, PROBES_MAX, SKIPPED_REMEMBERED_MAX,
};
use crate::packet::{Ack, MarkCounts, Span};

/// What is known of the path and the peer before the first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What is taken for the round trip until it is measured.
    pub rtt: Duration,
    /// The longest that the peer puts off an acknowledgement.
    pub ack_delay_max: Duration,
}

impl Default for Settings {
    /// 333 ms (RFC 9002 section 6.2.2), and 10 ms.
    fn default() -> Self {
        Settings { rtt: Duration::from_millis(333), ack_delay_max: Duration::from_millis(25) }
    }
}

/// A packet from the oldest in flight on.
#[derive(Debug)]
struct Entry<T> {
    sent: Time,
    bytes: u32,
    /// What was in it. Nothing is left if it is not in flight: it was acknowledged, lost, left out, or needs
    /// no acknowledgement.
    content: Option<T>,
}

/// A packet that was declared lost.
#[derive(Debug, Clone, Copy)]
struct Missing {
    number: u64,
    sent: Time,
    bytes: u32,
}

/// The packets that were sent, with what was in each, a `T`, until its fate is known.
///
/// Each packet that elicits an acknowledgement becomes, once, acknowledged or lost. One that was declared
/// lost and is acknowledged after all is told as spurious besides: it is for the caller to make the best of
/// what it did meanwhile.
///
/// An acknowledgement costs time for its ranges, for what was lost between them, for the packets that it is
/// the first of, and for the last few before the largest. A ring holds the packets, so nothing
/// is allocated once it has its size.
#[derive(Debug)]
pub struct Sent<T> {
    settings: Settings,
    rtt: Rtt,
    /// The first packet on this path.
    measured_from: u64,
    now: Time,
    /// From `oldest` on; the first one is in flight.
    packets: VecDeque<Entry<T>>,
    oldest: u64,
    next: u64,
    in_flight: usize,
    bytes_in_flight: u64,
    largest_acked: Option<u64>,
    thresholds: Thresholds,
    /// When the oldest packet in flight is lost, if a later one was acknowledged.
    loss_at: Option<Time>,
    /// What the next probe counts from, and how many there were since something was acknowledged.
    probe_from: Time,
    probes: u32,
    /// Ascending.
    lost: VecDeque<Missing>,
    skipped: VecDeque<u64>,
    ecn: MarkCounts,
    counts: Counts,
}

impl<T> Sent<T> {
    /// Nothing was sent. Numbers count from 0.
    pub fn new(settings: Settings) -> Self {
        Sent {
            settings,
            rtt: Rtt::new(settings.rtt),
            measured_from: 0,
            now: Time::ZERO,
            packets: VecDeque::new(),
            oldest: 0,
            next: 0,
            in_flight: 0,
            bytes_in_flight: 0,
            largest_acked: None,
            thresholds: Thresholds::default(),
            loss_at: None,
            probe_from: Time::ZERO,
            probes: 0,
            lost: VecDeque::with_capacity(LOST_REMEMBERED_MAX),
            skipped: VecDeque::with_capacity(SKIPPED_REMEMBERED_MAX),
            ecn: MarkCounts::default(),
            counts: Counts::default(),
        }
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Whether there are too many packets since the oldest in flight, so that none is to be sent.
    pub fn is_full(&self) -> bool {
        self.packets.len() >= HISTORY_PACKETS_MAX
    }

    /// The packet of [`next_number`](Self::next_number) was sent, which elicits an acknowledgement.
    pub fn handle_sent(&mut self, now: Time, bytes: u32, content: T) -> Result<u64, Full> {
        if self.is_full() {
            return Err(Full);
        }
        self.now = self.now.max(now);
        if self.in_flight == 0 {
            self.probe_from = self.now;
        }
        self.in_flight += 1;
        self.bytes_in_flight += u64::from(bytes);
        Ok(self.push(bytes, Some(content)))
    }

    /// The same of a packet that elicits none: nothing more is told of it.
    pub fn handle_sent_silent(&mut self, now: Time) -> Result<u64, Full> {
        if self.is_full() {
            return Err(Full);
        }
        self.now = self.now.max(now);
        Ok(self.push(0, None))
    }

    /// Leaves out a number: a peer that acknowledges it did not receive what it says (RFC 9000 section 21.4).
    /// To be done now and then, at random.
    pub fn skip(&mut self) -> Result<u64, Full> {
        if self.is_full() {
            return Err(Full);
        }
        if self.skipped.len() == SKIPPED_REMEMBERED_MAX {
            self.skipped.pop_front();
        }
        self.skipped.push_back(self.next);
        Ok(self.push(0, None))
    }

    /// The peer has acknowledged packets; `outcome` is cleared, and filled with what follows from it.
    ///
    /// An error is the peer's fault; then nothing is changed. An acknowledgement that tells nothing new, or
    /// comes behind a later one, is none.
    pub fn handle_ack(&mut self, now: Time, ack: &Ack<'_>, outcome: &mut Outcome<T>) -> Result<(), AckError> {
        self.now = self.now.max(now);
        outcome.clear();
        let largest = self.check(ack)?;
        let mut at = None;
        for span in ack.packets.iter() {
            at = Some(self.find_spurious(at, span, outcome));
            self.take_acked(span, outcome);
        }
        if !outcome.acked.is_empty() {
            outcome.note_arrivals(&ack.arrivals);
            self.probes = 0;
            self.probe_from = self.now;
        }
        let measures = |acked: &&Acked<T>| acked.number == largest && largest >= self.measured_from;
        if let Some(acked) = outcome.acked.last().filter(measures) {
            let sample = self.now.since(acked.sent);
            self.rtt.handle_sample(sample, ack.delay.min(self.settings.ack_delay_max));
            outcome.rtt = Some(sample);
        }
        if self.largest_acked.is_none_or(|before| before < largest) {
            self.largest_acked = Some(largest);
            outcome.ecn = self.news_of_marks(ack.ecn);
        }
        for spurious in &outcome.spurious {
            self.thresholds.handle_spurious(self.now, &self.rtt, spurious);
        }
        self.detect(outcome);
        self.trim();
        Ok(())
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called: a packet counts as lost then, or a
    /// probe is due. All calls that begin with `handle` may change it.
    ///
    /// The wait for a probe begins again with what is acknowledged, but not with each packet that is sent, as
    /// RFC 9002 section 6.2.1 has it: a live source always sends, and is to learn soon of a silent peer.
    pub fn next_timeout(&self) -> Option<Time> {
        let probe_at = || {
            let after = self.rtt.probe_after(self.settings.ack_delay_max);
            let after = after.saturating_mul(1 << self.probes.min(PROBES_MAX));
            self.probe_from + after.min(PROBE_AFTER_MAX)
        };
        self.loss_at.or_else(|| (self.in_flight > 0).then(probe_at))
    }

    /// Time has passed; `outcome` is cleared, and filled with what follows from it.
    ///
    /// If it asks for a probe, something that elicits an acknowledgement is to be sent at once, even if
    /// congestion control would not allow it: best what is in flight for the longest
    /// ([`oldest`](Self::oldest)), else a ping. If six probes were not answered, what could have been by now
    /// counts as lost.
    pub fn handle_timeout(&mut self, now: Time, outcome: &mut Outcome<T>) {
        self.now = self.now.max(now);
        outcome.clear();
        if self.next_timeout().is_none_or(|due| self.now < due) {
            return;
        }
        if self.loss_at.is_some() {
            self.detect(outcome);
        } else {
            outcome.probe = true;
            self.counts.probes += 1;
            self.probe_from = self.now;
            self.probes = self.probes.saturating_add(1);
            if self.probes > PROBES_MAX {
                let sent_by = self.now - self.rtt.probe_after(self.settings.ack_delay_max);
                let end = self.packets.partition_point(|packet| packet.sent <= sent_by);
                (0..end).for_each(|at| self.lose(at, Cause::Silence, outcome));
            }
        }
        self.trim();
    }

    /// What is in flight for the longest.
    pub fn oldest(&self) -> Option<(u64, &T)> {
        let content = self.packets.front()?.content.as_ref()?;
        Some((self.oldest, content))
    }

    /// What is known of round trips.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The path is another one: nothing is known of its round trips, and what was sent before says nothing of
    /// them (RFC 9000 section 9.4).
    pub fn handle_path_change(&mut self) {
        self.rtt = Rtt::new(self.settings.rtt);
        self.measured_from = self.next;
        self.thresholds = Thresholds::default();
        self.probes = 0;
    }

    /// How many packets are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The bytes of them.
    pub fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// How many packets may come in front of one before it counts as lost; 3, unless some came later.
    pub fn reordering(&self) -> u64 {
        self.thresholds.packets()
    }

    /// How many packets were lost that a late acknowledgement would be noticed of.
    pub fn remembered(&self) -> usize {
        self.lost.len()
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn push(&mut self, bytes: u32, content: Option<T>) -> u64 {
        let number = self.next;
        self.next += 1;
        if content.is_none() && self.packets.is_empty() {
            self.oldest = self.next;
        } else {
            self.packets.push_back(Entry { sent: self.now, bytes, content });
        }
        number
    }

    /// The largest number, if all were sent.
    fn check(&self, ack: &Ack<'_>) -> Result<u64, AckError> {
        let largest = ack.packets.last().ok_or(AckError::Nothing)?;
        let is_skipped = |span: Span| self.skipped.iter().any(|number| span.contains(*number));
        if largest >= self.next || (!self.skipped.is_empty() && ack.packets.iter().any(is_skipped)) {
            return Err(AckError::NeverSent);
        }
        Ok(largest)
    }

    fn take_acked(&mut self, span: Span, outcome: &mut Outcome<T>) {
        for number in span.first.max(self.oldest)..=span.last {
            let Some(packet) = self.packets.get_mut((number - self.oldest) as usize) else { break };
            let Some(content) = packet.content.take() else { continue };
            let (sent, bytes) = (packet.sent, packet.bytes);
            self.in_flight -= 1;
            self.bytes_in_flight -= u64::from(bytes);
            self.counts.acked += 1;
            outcome.acked.push(Acked { number, sent, bytes, content, received: None });
        }
    }

    /// From there on, where the range before ended, among the lost. Where this one ends.
    fn find_spurious(&mut self, at: Option<usize>, span: Span, outcome: &mut Outcome<T>) -> usize {
        let is_before = |missing: &Missing| missing.number < span.first;
        let mut at = at.unwrap_or_else(|| self.lost.partition_point(is_before));
        while self.lost.get(at).is_some_and(is_before) {
            at += 1;
        }
        while let Some(missing) = self.lost.get(at).copied().filter(|missing| span.contains(missing.number)) {
            self.lost.remove(at);
            self.counts.spurious += 1;
            let Missing { number, sent, bytes } = missing;
            let behind = self.largest_acked.unwrap_or(0).saturating_sub(number);
            outcome.spurious.push(Spurious { number, sent, bytes, behind });
        }
        at
    }

    /// Marks since the last time; none if the peer counts backwards (RFC 9000 section 13.4.2.1).
    fn news_of_marks(&mut self, ecn: Option<MarkCounts>) -> Option<MarkCounts> {
        let ecn = ecn?;
        let news = ecn.since(&self.ecn);
        if news.is_some() {
            self.ecn = ecn;
        } else {
            self.counts.ecn_refused += 1;
        }
        news
    }

    /// Declares lost what is so far behind the largest one acknowledged, or was sent so long before
    /// (RFC 9002 section 6.1). Numbers and times ascend, so the first that is not lost ends the search.
    fn detect(&mut self, outcome: &mut Outcome<T>) {
        self.loss_at = None;
        let Some(largest) = self.largest_acked else { return };
        self.thresholds.handle_time(self.now, &self.rtt);
        let (packets, delay) = (self.thresholds.packets(), self.thresholds.delay(&self.rtt));
        let before = usize::try_from(largest.saturating_sub(self.oldest)).unwrap_or(usize::MAX);
        for at in 0..before.min(self.packets.len()) {
            let packet = &self.packets[at];
            if packet.content.is_none() {
                continue;
            }
            let lost_at = packet.sent + delay;
            let cause = if self.oldest + at as u64 + packets <= largest {
                Cause::Packets
            } else if lost_at <= self.now {
                Cause::Time
            } else {
                self.loss_at = Some(lost_at);
                break;
            };
            self.lose(at, cause, outcome);
        }
    }

    fn lose(&mut self, at: usize, cause: Cause, outcome: &mut Outcome<T>) {
        let packet = &mut self.packets[at];
        let Some(content) = packet.content.take() else { return };
        let (number, sent, bytes) = (self.oldest + at as u64, packet.sent, packet.bytes);
        self.in_flight -= 1;
        self.bytes_in_flight -= u64::from(bytes);
        self.counts.lose(cause);
        if self.lost.len() == LOST_REMEMBERED_MAX {
            self.lost.pop_front();
        }
        self.lost.push_back(Missing { number, sent, bytes });
        outcome.lost.push(Lost { number, sent, bytes, content, cause });
    }

    /// Forgets what is in front of the oldest in flight.
    fn trim(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.content.is_none()) {
            self.packets.pop_front();
            self.oldest += 1;
        }
    }
}

#[cfg(test)]
mod tests;
