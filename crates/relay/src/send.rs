//! Orders to the driver, and its reports of them.

use outflow_packet::{DropReason, TrackMask};

use crate::schedule::{Share, SinkKey};
use outflow_ring::Seq;

/// The sinks that an order goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipients {
    /// Members of a cohort: see [`Stream::members`](crate::Stream::members).
    Cohort {
        /// Index of the cohort in its branch.
        cohort: usize,
        /// The first member.
        first: usize,
        /// How many members, from the first on.
        count: usize,
    },
    /// One sink.
    One(SinkKey),
}

/// "These packets of this branch to these sinks."
///
/// The driver may carry it out with one system call or a thousand. Whatever it does not report
/// counts as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Which branch's ring the packets are in.
    pub branch: usize,
    /// The sinks that it goes to.
    pub recipients: Recipients,
    /// The first packet.
    pub from: Seq,
    /// The packet after the last.
    pub to: Seq,
    /// Only packets of these tracks.
    pub tracks: TrackMask,
    /// What of them each sink gets; `None` if that differs: see [`Stream::share`](crate::Stream::share).
    pub share: Option<Share>,
    /// Begin with the preamble of the packet at `from`.
    pub preamble: bool,
    /// Behind them the sink goes on with another rendition, which needs nothing of this one.
    pub leaves: bool,
}

/// What became of a sink's packets, as far as it is not "sent".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// It takes no more now. `next` is the first packet that was not taken, not even in part:
    /// the driver finishes a packet that was.
    Blocked {
        /// The first packet to send again.
        next: Seq,
    },
    /// It takes packets again.
    Writable,
    /// This many packets went lost on the way out, and sending them again is no use.
    Lost {
        /// Why.
        reason: DropReason,
        /// How many.
        packets: u64,
    },
    /// A packet that counts as sent was given up by a link.
    GivenUp {
        /// Why.
        reason: DropReason,
        /// Its bytes, without transport headers.
        bytes: u64,
    },
}
