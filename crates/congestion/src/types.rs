//! What goes in and out.

use core::fmt;
use core::time::Duration;

use outflow_media::Time;

use crate::limits::{BURST_MAX, DATAGRAM_BYTES_LEAST, DATAGRAM_BYTES_MOST, RATE_BPS_LEAST, RATE_BPS_MOST};

/// What the mark "congestion experienced" means on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Packets are sent as ECT(0): a mark is nearly as bad as a loss (RFC 3168, RFC 8511).
    #[default]
    Classic,
    /// Packets are sent as ECT(1): marks come early and often, and their share counts (RFC 9330, RFC 9331).
    Scalable,
}

/// What to keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The rate to start at, in bits a second.
    pub initial_bps: u64,
    /// The rate that it never goes below, however bad things are. A service that cannot live on less has to
    /// be ended by its operator (RFC 8083).
    pub min_bps: u64,
    /// The rate that it never exceeds.
    pub max_bps: u64,
    /// Bytes of a full packet.
    pub datagram_bytes: u64,
    /// How much may go at once, as time at the current rate; one packet may always.
    pub burst: Duration,
    /// What marks mean.
    pub ecn: Ecn,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            initial_bps: 1_000_000,
            min_bps: 64_000,
            max_bps: 1_000_000_000,
            datagram_bytes: 1200,
            burst: Duration::from_millis(5),
            ecn: Ecn::Classic,
        }
    }
}

impl Options {
    /// The same within the limits.
    pub(super) fn checked(self) -> Self {
        let min_bps = self.min_bps.clamp(RATE_BPS_LEAST, RATE_BPS_MOST);
        let max_bps = self.max_bps.clamp(min_bps, RATE_BPS_MOST);
        Options {
            initial_bps: self.initial_bps.clamp(min_bps, max_bps),
            min_bps,
            max_bps,
            datagram_bytes: self.datagram_bytes.clamp(DATAGRAM_BYTES_LEAST, DATAGRAM_BYTES_MOST),
            burst: self.burst.min(BURST_MAX),
            ecn: self.ecn,
        }
    }
}

/// A packet that the peer received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// Its number: as it was sent.
    pub number: u64,
    /// Its bytes: as it was sent.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Time,
    /// When it was received, by the peer's clock: any offset, and it may drift and step.
    pub received: Time,
}

/// A packet that is taken for lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Its number: as it was sent.
    pub number: u64,
    /// Its bytes: as it was sent.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Time,
}

/// What the controller does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It grows quickly until packets begin to wait.
    Start,
    /// It keeps the queue short.
    Delay,
    /// It pauses for a moment, so that the queue runs empty and the least delay is seen.
    Slowdown,
    /// A competing flow keeps the queue filled, or it is too short for its delay to say anything: it goes by
    /// losses, as that one does.
    Compete,
}

impl State {
    /// A word for it, in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Start => "start",
            State::Delay => "delay",
            State::Slowdown => "slowdown",
            State::Compete => "compete",
        }
    }
}

/// Why the window or the state changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Packets wait on the way.
    Delayed,
    /// The buffer on the way overflowed.
    Overflow,
    /// More packets are lost than any path should lose, whatever the cause (RFC 8083).
    Lossy,
    /// Packets were marked.
    Marked,
    /// Nothing was heard of what was sent.
    Silent,
    /// The queue did not go when this sender left: a competing flow fills it.
    Filled,
    /// It is time to see whether a competing flow still fills the queue.
    Tested,
    /// The queue is empty: no competing flow fills it.
    Alone,
    /// The least delay was not seen for long.
    Unseen,
    /// The pause is over.
    Seen,
    /// What was taken for lost came after all.
    Spurious,
    /// The path is another one.
    Moved,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 12] = [
        Reason::Delayed,
        Reason::Overflow,
        Reason::Lossy,
        Reason::Marked,
        Reason::Silent,
        Reason::Filled,
        Reason::Tested,
        Reason::Alone,
        Reason::Unseen,
        Reason::Seen,
        Reason::Spurious,
        Reason::Moved,
    ];

    /// A word for it, in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Delayed => "delayed",
            Reason::Overflow => "overflow",
            Reason::Lossy => "lossy",
            Reason::Marked => "marked",
            Reason::Silent => "silent",
            Reason::Filled => "filled",
            Reason::Tested => "tested",
            Reason::Alone => "alone",
            Reason::Unseen => "unseen",
            Reason::Seen => "seen",
            Reason::Spurious => "spurious",
            Reason::Moved => "moved",
        }
    }
}

/// A change that was not growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// Why.
    pub reason: Reason,
    /// The state from then on.
    pub state: State,
    /// The rate from then on, in bits a second.
    pub rate_bps: u64,
    /// The window before and from then on, in bytes.
    pub window_bytes: (u64, u64),
    /// How long packets waited on the way.
    pub queue: Duration,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.window_bytes;
        write!(
            f,
            "{}: {}: window {from} to {to} bytes, {} kbit/s, {} ms wait on the way",
            self.state.as_str(),
            self.reason.as_str(),
            self.rate_bps / 1000,
            self.queue.as_millis()
        )
    }
}
