//! Packets that were received, and when to say so.

use core::time::Duration;

use outflow_media::Time;

use crate::limits::{ACKED_AGAIN, ARRIVALS_MAX, RECEIVED_SPANS_MAX, SPANS_MAX};
use crate::packet::{Ack, Arrival, Arrivals, Mark, MarkCounts, Span, Spans, TICK};

/// Packets behind a gap that show a loss.
const LOSS_PACKETS: u64 = 3;

/// An acknowledgement goes with a packet that comes so shortly before it is due: this share of what it is put off.
const SOON: u32 = 4;

/// The shortest that an acknowledgement is put off, however short the round trip is.
const ACK_DELAY_MIN: Duration = Duration::from_millis(2);

/// When acknowledgements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The longest that one is put off; the peer has to know it.
    pub ack_delay_max: Duration,
    /// Packets after which it is not put off any more.
    pub packets: u32,
}

impl Default for Settings {
    /// Every tenth packet, and 25 ms, as QUIC (RFC 9000 section 18.2). A gap is told as soon as it shows that a
    /// packet is lost, whatever this says.
    fn default() -> Self {
        Settings { ack_delay_max: Duration::from_millis(25), packets: 10 }
    }
}

/// Whether a packet is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// It is.
    New,
    /// It was received before, or is so old that this is not known any more: it is not.
    Duplicate,
}

/// The packet numbers that were received.
///
/// Holds at most a set number of ranges, and of times of arrivals, whatever comes. A packet costs a search in
/// the ranges if it does not come in order; nothing is allocated after the start.
#[derive(Debug)]
pub struct Received {
    settings: Settings,
    /// How long an acknowledgement is put off.
    delay: Duration,
    start: Time,
    now: Time,
    /// Ascending and apart.
    spans: Vec<Span>,
    /// What is below counts as received.
    floor: u64,
    /// What is below is not told any more.
    told_below: u64,
    largest_at: Time,
    /// What is not in an acknowledgement yet, or if that was made is in the last one.
    arrivals: Vec<Arrival>,
    is_told: bool,
    ecn: MarkCounts,
    /// Packets to be acknowledged, and when that is due.
    waiting: u32,
    due: Option<Time>,
    /// Packets that came behind the oldest gap that may not be taken for a loss yet, and behind the newest.
    behind_oldest: Option<u64>,
    behind_newest: Option<u64>,
    duplicates: u64,
}

impl Received {
    /// Nothing was received. Times of arrival count from `start`.
    pub fn new(settings: Settings, start: Time) -> Self {
        Received {
            settings,
            delay: settings.ack_delay_max,
            start,
            now: start,
            spans: Vec::with_capacity(RECEIVED_SPANS_MAX + 1),
            floor: 0,
            told_below: 0,
            largest_at: start,
            arrivals: Vec::with_capacity(ARRIVALS_MAX),
            is_told: false,
            ecn: MarkCounts::default(),
            waiting: 0,
            due: None,
            behind_oldest: None,
            behind_newest: None,
            duplicates: 0,
        }
    }

    /// A packet was received that is authentic, as far as that can be known. `elicits` says whether any of
    /// its frames has to be acknowledged.
    pub fn handle_received(&mut self, now: Time, number: u64, elicits: bool, mark: Mark) -> Arrived {
        self.now = self.now.max(now);
        let largest = self.largest();
        if !self.insert(number) {
            self.duplicates += 1;
            return Arrived::Duplicate;
        }
        if largest.is_none_or(|largest| largest < number) {
            self.largest_at = self.now;
        }
        self.told_below = self.told_below.min(number);
        self.note_arrival(number);
        self.ecn.count(mark);
        if elicits {
            self.waiting += 1;
            let is_late = largest.is_some_and(|largest| number < largest);
            let is_behind_gap = largest.is_some_and(|largest| number > largest + 1);
            let is_urgent = self.shows_loss(is_behind_gap) || is_late || mark == Mark::Ce;
            let is_urgent = is_urgent || self.waiting >= self.settings.packets;
            let due = if is_urgent { self.now } else { self.due.unwrap_or(self.now + self.delay) };
            // What is due soon goes now: the driver need not wake for it.
            let is_soon = due <= self.now + self.delay / SOON;
            self.due = Some(if is_soon { due.min(self.now) } else { due });
        }
        Arrived::New
    }

    /// Whether the sender takes what is missing before these for lost when it hears of this packet: the third
    /// behind a gap (RFC 9002 section 6.1.1), the others among them.
    fn shows_loss(&mut self, is_behind_gap: bool) -> bool {
        let since = |count: Option<u64>| count.map(|count| count + 1);
        (self.behind_oldest, self.behind_newest) = (since(self.behind_oldest), since(self.behind_newest));
        if is_behind_gap {
            self.behind_newest = Some(1);
            self.behind_oldest = self.behind_oldest.or(Some(1));
        }
        let shows = self.behind_oldest.is_some_and(|count| count >= LOSS_PACKETS);
        if shows {
            // Of gaps between, the newest is told last.
            self.behind_oldest = self.behind_newest.filter(|count| *count < LOSS_PACKETS);
        }
        shows
    }

    /// A round trip takes so long now. Acknowledgements are not put off for more than a quarter of it: else they
    /// are what a sender waits for, and what it sends then comes in bursts.
    pub fn handle_round_trip(&mut self, rtt: Duration) {
        let most = self.settings.ack_delay_max;
        self.delay = (rtt / 4).clamp(ACK_DELAY_MIN.min(most), most);
    }

    /// When an acknowledgement is to be sent: at once if a gap shows a loss, something came late, or was marked CE
    /// (RFC 9000 section 13.2.1, where each gap is told at once). A packet that is sent before may hold one too.
    pub fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    /// The acknowledgement as it is now; none if nothing was received. What does not fit into its packet of
    /// the times of arrival is not told again.
    pub fn ack(&mut self, now: Time) -> Option<Ack<'_>> {
        self.now = self.now.max(now);
        let first = self.spans.partition_point(|span| span.last < self.told_below);
        let told = &self.spans[first.max(self.spans.len().saturating_sub(SPANS_MAX))..];
        if told.is_empty() {
            return None;
        }
        (self.waiting, self.due, self.is_told) = (0, None, true);
        Some(Ack {
            packets: Spans::new(told),
            delay: self.now.since(self.largest_at),
            arrivals: Arrivals::new(&self.arrivals),
            ecn: (self.ecn != MarkCounts::default()).then_some(self.ecn),
        })
    }

    /// The peer has received an acknowledgement of this largest number (RFC 9000 section 13.2.4): later ones
    /// leave out what is well below.
    pub fn handle_ack_received(&mut self, largest: u64) {
        let largest = largest.min(self.largest().unwrap_or(0));
        self.told_below = self.told_below.max(largest.saturating_sub(ACKED_AGAIN));
    }

    /// The largest number that was received.
    pub fn largest(&self) -> Option<u64> {
        self.spans.last().map(|span| span.last)
    }

    /// How many packets came again, or too late to know.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// How many ranges are remembered.
    pub fn ranges(&self) -> usize {
        self.spans.len()
    }

    /// Whether it is new.
    fn insert(&mut self, number: u64) -> bool {
        if number < self.floor || number == u64::MAX {
            return false;
        }
        if let Some(last) = self.spans.last_mut()
            && number == last.last + 1
        {
            last.last = number;
            return true;
        }
        // The first range that ends at the number, just before it, or behind it.
        let at = self.spans.partition_point(|span| span.last + 1 < number);
        let Some(span) = self.spans.get(at).copied() else {
            self.add(at, number);
            return true;
        };
        if span.contains(number) {
            return false;
        }
        if span.last + 1 == number {
            self.spans[at].last = number;
            if self.spans.get(at + 1).is_some_and(|next| next.first == number + 1) {
                self.spans[at].last = self.spans.remove(at + 1).last;
            }
        } else if span.first == number + 1 {
            self.spans[at].first = number;
        } else {
            self.add(at, number);
        }
        true
    }

    fn add(&mut self, at: usize, number: u64) {
        self.spans.insert(at, Span::of(number));
        if self.spans.len() > RECEIVED_SPANS_MAX {
            self.floor = self.spans.remove(0).last + 1;
        }
    }

    fn note_arrival(&mut self, number: u64) {
        if self.is_told {
            self.arrivals.clear();
            self.is_told = false;
        }
        if self.arrivals.len() == ARRIVALS_MAX {
            self.arrivals.remove(0);
        }
        let ticks = self.now.since(self.start).as_nanos() / TICK.as_nanos();
        self.arrivals.push(Arrival { number, ticks: ticks as u64 });
    }
}

mod save;
#[cfg(test)]
mod tests;
