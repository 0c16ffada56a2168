//! What follows from an acknowledgement, or from time that has passed.

use core::time::Duration;

use outflow_media::Time;

use crate::packet::{Arrivals, MarkCounts};

/// An acknowledgement that cannot be true: the peer is to blame, and the connection to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// Without any packet.
    #[error("the peer acknowledges nothing")]
    Nothing,
    /// Of a packet that was never sent: the peer says that it received what it cannot know of.
    #[error("the peer acknowledges a packet that was never sent")]
    NeverSent,
}

/// Too many packets wait for an acknowledgement: the caller is to wait, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many packets are in flight; wait until some are acknowledged or lost")]
pub struct Full;

/// A packet that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked<T> {
    /// Its number.
    pub number: u64,
    /// When it was sent.
    pub sent: Time,
    /// How long it was.
    pub bytes: u32,
    /// What was in it.
    pub content: T,
    /// When the peer received it, by the peer's clock since it began, in steps of 1/8 ms; if it told.
    pub received: Option<Duration>,
}

/// Why a packet counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// As many later ones as the threshold were acknowledged (RFC 9002 section 6.1.1).
    Packets,
    /// A later one was, and it was sent so long ago (section 6.1.2).
    Time,
    /// Nothing was, for all probes.
    Silence,
}

/// A packet that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost<T> {
    /// Its number.
    pub number: u64,
    /// When it was sent.
    pub sent: Time,
    /// How long it was.
    pub bytes: u32,
    /// What was in it.
    pub content: T,
    /// Why it counts as lost.
    pub cause: Cause,
}

/// A packet that counted as lost, and is acknowledged after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spurious {
    /// Its number.
    pub number: u64,
    /// When it was sent.
    pub sent: Time,
    /// How long it was.
    pub bytes: u32,
    /// How far it is behind the largest packet that was acknowledged before.
    pub behind: u64,
}

/// What became of packets. To be used again and again, so that nothing is allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome<T> {
    /// Acknowledged for the first time, in ascending order.
    pub acked: Vec<Acked<T>>,
    /// Lost, in ascending order.
    pub lost: Vec<Lost<T>>,
    /// Acknowledged after they were declared lost, in ascending order.
    pub spurious: Vec<Spurious>,
    /// How long the round trip of the largest one took, with the peer's wait, if it is among those that were
    /// acknowledged.
    pub rtt: Option<Duration>,
    /// Marks that the peer has counted since the last time; none if it does not count.
    pub ecn: Option<MarkCounts>,
    /// Whether a probe is to be sent.
    pub probe: bool,
}

impl<T> Default for Outcome<T> {
    fn default() -> Self {
        Outcome {
            acked: Vec::new(),
            lost: Vec::new(),
            spurious: Vec::new(),
            rtt: None,
            ecn: None,
            probe: false,
        }
    }
}

impl<T> Outcome<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Outcome::default()
    }

    pub(super) fn clear(&mut self) {
        self.acked.clear();
        self.lost.clear();
        self.spurious.clear();
        (self.rtt, self.ecn, self.probe) = (None, None, false);
    }

    /// Puts times of arrival to the packets that they are of; the others are of packets told of before.
    pub(super) fn note_arrivals(&mut self, arrivals: &Arrivals<'_>) {
        // Both go down, about: the next one is mostly the one before.
        let mut at = self.acked.len();
        for arrival in arrivals.iter() {
            let guess = at.wrapping_sub(1);
            at = match self.acked.get(guess) {
                Some(acked) if acked.number == arrival.number => guess,
                _ => match self.acked.binary_search_by_key(&arrival.number, |acked| acked.number) {
                    Ok(found) => found,
                    Err(_) => continue,
                },
            };
            self.acked[at].received = Some(arrival.time());
        }
    }
}

/// What happened to packets so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets acknowledged before they counted as lost.
    pub acked: u64,
    /// Packets lost: [`Cause::Packets`].
    pub lost_by_packets: u64,
    /// Packets lost: [`Cause::Time`].
    pub lost_by_time: u64,
    /// Packets lost: [`Cause::Silence`].
    pub lost_by_silence: u64,
    /// Packets of these that were acknowledged after all.
    pub spurious: u64,
    /// Probes that were asked for.
    pub probes: u64,
    /// Counts of marks that went back: the path or the peer does not count.
    pub ecn_refused: u64,
}

impl Counts {
    pub(super) fn lose(&mut self, cause: Cause) {
        *match cause {
            Cause::Packets => &mut self.lost_by_packets,
            Cause::Time => &mut self.lost_by_time,
            Cause::Silence => &mut self.lost_by_silence,
        } += 1;
    }
}
