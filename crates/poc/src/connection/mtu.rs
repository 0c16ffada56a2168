//! How large datagrams may be (compare RFC 8899): sizes are tried from below, and what gets through is used.

use crate::limits::{DATAGRAM_BYTES_MAX, PROBED_BYTES, PROBES_OF_SIZE_MAX};
use crate::save::SavedMtu;
use core::time::Duration;
use outflow_media::Time;

/// How long to wait between attempts, and before all of it is tried again.
const PAUSE: Duration = Duration::from_millis(200);
const AGAIN: Duration = Duration::from_secs(600);

/// Datagrams of the size in use that were lost in a row, with smaller ones coming, before it falls back.
const LOST_MAX: u32 = 6;

#[derive(Debug)]
pub(super) struct Mtu {
    /// What is known to get through.
    bytes: usize,
    most: usize,
    /// Which of [`PROBED_BYTES`] is tried next, and how often it was.
    next: usize,
    attempts: u32,
    /// The packet that it is tried by.
    under_way: Option<u64>,
    /// What was sent before went another way.
    since: u64,
    at: Time,
    lost: u32,
}

impl Mtu {
    pub(super) fn new(now: Time, most: usize) -> Self {
        let most = most.max(DATAGRAM_BYTES_MAX);
        let (bytes, under_way) = (DATAGRAM_BYTES_MAX, None);
        Mtu { bytes, most, next: 0, attempts: 0, under_way, since: 0, at: now, lost: 0 }
    }

    /// What another one needs to go on.
    pub(super) fn save(&self) -> SavedMtu {
        let (bytes, at) = (self.bytes as u32, self.at.as_nanos());
        SavedMtu { bytes, attempts: self.attempts, since: self.since, at, lost: self.lost }
    }

    /// One that goes on, of which a size is tried by a packet that is in flight, the last one if there are several.
    pub(super) fn restore(most: usize, saved: &SavedMtu, probes: impl Iterator<Item = (u64, u16)>) -> Self {
        let mtu = Mtu::new(Time::from_nanos(saved.at), most);
        let bytes = (saved.bytes as usize).clamp(DATAGRAM_BYTES_MAX, mtu.most);
        let next =
            PROBED_BYTES.iter().position(|size| usize::from(*size) > bytes).unwrap_or(PROBED_BYTES.len());
        let is_tried = |(number, size): &(u64, u16)| {
            *number >= saved.since && usize::from(*size) <= mtu.most && PROBED_BYTES.get(next) == Some(size)
        };
        let under_way = probes.filter(is_tried).last().map(|(number, _)| number);
        let (attempts, lost) = (saved.attempts.min(PROBES_OF_SIZE_MAX), saved.lost.min(LOST_MAX));
        Mtu { bytes, next, attempts, under_way, since: saved.since, lost, ..mtu }
    }

    /// Bytes that a datagram may have.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What to try, now or later.
    pub(super) fn probe(&self) -> Option<(Time, u16)> {
        let size = *PROBED_BYTES.get(self.next)?;
        (self.under_way.is_none() && usize::from(size) <= self.most).then_some((self.at, size))
    }

    pub(super) fn handle_sent(&mut self, number: u64) {
        (self.under_way, self.attempts) = (Some(number), self.attempts + 1);
    }

    pub(super) fn handle_acked(&mut self, now: Time, number: u64, size: u16) {
        if self.under_way != Some(number) {
            return;
        }
        self.under_way = None;
        self.bytes = self.bytes.max(usize::from(size));
        (self.next, self.attempts, self.at, self.lost) = (self.next + 1, 0, now, 0);
    }

    pub(super) fn handle_lost(&mut self, now: Time, number: u64) {
        if self.under_way != Some(number) {
            return;
        }
        (self.under_way, self.at) = (None, now + PAUSE);
        if self.attempts >= PROBES_OF_SIZE_MAX {
            // Larger ones would not come either.
            (self.attempts, self.at) = (0, now + AGAIN);
        }
    }

    /// A packet of `bytes` bytes came, or was lost. Returns whether the datagram size falls back by that.
    pub(super) fn handle_packet(&mut self, now: Time, number: u64, bytes: usize, is_lost: bool) -> bool {
        if bytes <= DATAGRAM_BYTES_MAX || number < self.since {
            return false;
        }
        self.lost = if is_lost { self.lost + 1 } else { 0 };
        let is_black_hole = self.lost >= LOST_MAX && self.bytes > DATAGRAM_BYTES_MAX;
        if is_black_hole {
            *self = Mtu { at: now + AGAIN, since: self.since, ..Mtu::new(now, self.most) };
        }
        is_black_hole
    }

    /// The path is another one, from this packet on.
    pub(super) fn handle_path_change(&mut self, now: Time, number: u64) {
        *self = Mtu { since: number, ..Mtu::new(now, self.most) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_tried_from_below_until_one_does_not_get_through() {
        let (mut mtu, mut now, mut tried) = (Mtu::new(Time::ZERO, 1472), Time::ZERO, Vec::new());
        while let Some((at, size)) = mtu.probe().filter(|(at, _)| *at < Time::from_millis(5000)) {
            now = at;
            mtu.handle_sent(tried.len() as u64);
            assert_eq!(mtu.probe(), None);
            let number = tried.len() as u64;
            tried.push(size);
            if size <= 1400 { mtu.handle_acked(now, number, size) } else { mtu.handle_lost(now, number) }
        }
        assert_eq!(tried, [1280, 1350, 1400, 1452, 1452, 1452]);
        assert_eq!(mtu.bytes(), 1400);
        assert!(mtu.probe().is_some_and(|(at, size)| size == 1452 && at >= now + AGAIN));
    }

    #[test]
    fn no_more_is_tried_than_is_allowed() {
        let mut mtu = Mtu::new(Time::ZERO, 1300);
        mtu.handle_sent(0);
        mtu.handle_acked(Time::ZERO, 0, 1280);
        assert_eq!((mtu.probe(), mtu.bytes()), (None, 1280));
    }

    #[test]
    fn it_falls_back_where_large_ones_do_not_come_any_more() {
        let mut mtu = Mtu::new(Time::ZERO, 1452);
        mtu.handle_sent(0);
        mtu.handle_acked(Time::ZERO, 0, 1280);
        let packet = |mtu: &mut Mtu, bytes, is_lost| mtu.handle_packet(Time::ZERO, 1, bytes, is_lost);
        let lose = |mtu: &mut Mtu| packet(mtu, 1280, true);
        assert!((0..5).all(|_| !lose(&mut mtu)));
        assert!(!packet(&mut mtu, 1280, false) && !packet(&mut mtu, 1000, true));
        assert!((0..5).all(|_| !lose(&mut mtu)) && lose(&mut mtu));
        assert_eq!(mtu.bytes(), 1200);
    }

    #[test]
    fn what_went_another_way_says_nothing_of_this_one() {
        let mut mtu = Mtu::new(Time::ZERO, 1452);
        mtu.handle_sent(7);
        mtu.handle_path_change(Time::ZERO, 9);
        mtu.handle_acked(Time::ZERO, 7, 1280);
        assert_eq!((mtu.bytes(), mtu.probe()), (1200, Some((Time::ZERO, 1280))));
        mtu.handle_sent(9);
        mtu.handle_lost(Time::ZERO, 7);
        assert_eq!(mtu.probe(), None, "it is under way");
        mtu.handle_acked(Time::ZERO, 9, 1280);
        assert!((0..9).all(|number| !mtu.handle_packet(Time::ZERO, number, 1452, true)));
        assert_eq!(mtu.bytes(), 1280);
    }
}
