//! How much RTCP is taken of a receiver, whichever way it comes, and what becomes of the rest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use outflow_media::{Rate, Time, TokenBucket};

use crate::limits::{RTCP_BURST, RTCP_BYTES_MAX, RTCP_PER_SECOND, RTCP_WAITING_MAX};

/// How fast packets may come.
const RATE: Rate = Rate::per_second(RTCP_PER_SECOND);

/// Why an RTCP packet of a receiver, or a part of one, was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The packet is longer than any datagram of the network.
    Size,
    /// There were many just before.
    Rate,
    /// Others of the same receiver still wait for the worker.
    Full,
    /// A report or a request behind as many as are taken of one packet.
    Parts,
    /// A report or a request of a source that is not the receiver's, or that has not reported yet.
    Foreign,
}

impl Unread {
    /// Every reason, with its name in metrics and in the API.
    const ALL: [(Unread, &'static str); 5] = [
        (Unread::Size, "rtcp-size"),
        (Unread::Rate, "rtcp-rate"),
        (Unread::Full, "rtcp-full"),
        (Unread::Parts, "rtcp-parts"),
        (Unread::Foreign, "foreign-report"),
    ];
}

/// What its connection and its worker both count of a receiver's RTCP.
#[derive(Debug, Default)]
pub struct RtcpCounts {
    /// Packets on their way to the worker.
    waiting: AtomicU8,
    unread: [AtomicU64; Unread::ALL.len()],
}

impl RtcpCounts {
    /// This many more were not read.
    pub(crate) fn add(&self, why: Unread, count: u64) {
        self.unread[why as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// What was not read, by reason.
    pub(crate) fn named(&self) -> BTreeMap<&'static str, u64> {
        let count = |(why, name)| (name, self.unread[why as usize].load(Ordering::Relaxed));
        Unread::ALL.map(count).into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// What a receiver's RTCP has to pass before anything is done for it: no packet is long, few come in a second,
/// and few wait.
#[derive(Debug)]
pub struct RtcpGate {
    left: TokenBucket,
    counts: Arc<RtcpCounts>,
}

impl Default for RtcpGate {
    fn default() -> Self {
        RtcpGate::new(Arc::default())
    }
}

impl RtcpGate {
    /// One that counts what does not pass here.
    pub(crate) fn new(counts: Arc<RtcpCounts>) -> Self {
        RtcpGate { left: TokenBucket::new(RTCP_BURST), counts }
    }

    /// Where it counts.
    pub fn counts(&self) -> &Arc<RtcpCounts> {
        &self.counts
    }

    /// Whether a packet of this length is to be read; it is counted if not.
    pub(crate) fn passes(&mut self, now: Time, length: usize) -> bool {
        let why = if length > RTCP_BYTES_MAX { Unread::Size } else { Unread::Rate };
        let passes = length <= RTCP_BYTES_MAX && self.left.pass(now, RATE);
        if !passes {
            self.counts.add(why, 1);
        }
        passes
    }

    /// A packet for the worker, if it passes.
    pub fn take(&mut self, now: Time, bytes: &[u8]) -> Option<WaitingRtcp> {
        if !self.passes(now, bytes.len()) {
            return None;
        }
        // It comes through here alone: nothing is added between these two.
        if self.counts.waiting.load(Ordering::Relaxed) >= RTCP_WAITING_MAX {
            self.counts.add(Unread::Full, 1);
            return None;
        }
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        // A copy: a reference would keep what was read from the connection, all of it.
        Some(WaitingRtcp { bytes: bytes.into(), counts: Arc::clone(&self.counts) })
    }
}

/// An RTCP packet on its way to the worker.
#[derive(Debug)]
pub struct WaitingRtcp {
    /// The packet.
    pub(crate) bytes: Box<[u8]>,
    counts: Arc<RtcpCounts>,
}

impl Drop for WaitingRtcp {
    fn drop(&mut self) {
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_passes_at_the_rate_and_the_rest_is_counted() {
        let mut gate = RtcpGate::default();
        let at = |i: u64| Time::from_micros(i * 100);
        // A hundred thousand in ten seconds, each read at once.
        let passed = (0..100_000).filter(|i| gate.take(at(*i), &[0; 8]).is_some()).count() as u64;
        let expected = RTCP_BURST + 10 * RTCP_PER_SECOND;
        assert!(passed.abs_diff(expected) <= 1, "{passed} of about {expected}");
        assert_eq!(gate.counts().named(), BTreeMap::from([("rtcp-rate", 100_000 - passed)]));
    }

    #[test]
    fn few_wait_for_a_worker_that_is_busy_and_go_on_when_it_has_read() {
        let mut gate = RtcpGate::default();
        let mut waiting: Vec<_> = (0..10).filter_map(|_| gate.take(Time::ZERO, &[0; 8])).collect();
        assert_eq!(waiting.len(), usize::from(RTCP_WAITING_MAX));
        assert_eq!(gate.counts().named(), BTreeMap::from([("rtcp-full", 10 - waiting.len() as u64)]));
        waiting.pop();
        assert!(gate.take(Time::ZERO, &[0; 8]).is_some_and(|rtcp| rtcp.bytes.len() == 8));
    }

    #[test]
    fn what_is_longer_than_a_datagram_is_not_read() {
        let mut gate = RtcpGate::default();
        assert!(gate.take(Time::ZERO, &[0; RTCP_BYTES_MAX]).is_some());
        assert!(gate.take(Time::ZERO, &[0; RTCP_BYTES_MAX + 1]).is_none());
        assert_eq!(gate.counts().named(), BTreeMap::from([("rtcp-size", 1)]));
    }
}
