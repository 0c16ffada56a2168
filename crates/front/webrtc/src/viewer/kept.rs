//! Packets that may be sent once more.

use std::collections::VecDeque;

use outflow_media::Time;

use super::media::Media;
use crate::limits::{KEPT_FOR, KEPT_MAX, PROBE_CHOICE, REPEAT_AFTER};

/// The newest packets of a track, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Kept {
    packets: VecDeque<Packet>,
}

#[derive(Debug)]
struct Packet {
    media: Media,
    sent: Time,
    repeated: Option<Time>,
}

impl Kept {
    /// A packet is sent.
    pub(super) fn add(&mut self, now: Time, media: Media) {
        let is_old = |packet: &Packet| now.since(packet.sent) > KEPT_FOR;
        while self.packets.len() >= KEPT_MAX || self.packets.front().is_some_and(is_old) {
            self.packets.pop_front();
        }
        let at = self.packets.partition_point(|packet| packet.media.number < media.number);
        self.packets.insert(at, Packet { media, sent: now, repeated: None });
    }

    /// The largest of the newest packets, to be sent once more for the sake of it.
    pub(super) fn large(&self) -> Option<&Media> {
        let newest = self.packets.iter().rev().take(PROBE_CHOICE).map(|packet| &packet.media);
        newest.max_by_key(|media| media.payload.len())
    }

    /// The packet with this number, to be sent once more; none if it is not kept any more, or is on its way again.
    pub(super) fn again(&mut self, now: Time, sequence: u16) -> Option<Media> {
        let newest = self.packets.back()?.media.number;
        let back = u32::from((newest as u16).wrapping_sub(sequence));
        let number = newest.checked_sub(back)?;
        let at = self.packets.binary_search_by_key(&number, |packet| packet.media.number).ok()?;
        let packet = self.packets.get_mut(at)?;
        let is_on_its_way = packet.repeated.is_some_and(|before| now.since(before) < REPEAT_AFTER);
        if is_on_its_way || now.since(packet.sent) > KEPT_FOR {
            return None;
        }
        packet.repeated = Some(now);
        Some(packet.media.clone())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn media(number: u32) -> Media {
        Media { number, timestamp: number, marker: false, payload: Bytes::from_static(b"x") }
    }

    fn number(media: Option<Media>) -> Option<u32> {
        media.map(|media| media.number)
    }

    #[test]
    fn what_is_missing_is_sent_once_more_and_not_twice_at_once() {
        let mut kept = Kept::default();
        let now = Time::from_millis(1000);
        for at in [65_534, 65_535, 65_537, 65_536] {
            kept.add(now, media(at));
        }
        assert_eq!(number(kept.again(now, 65_535)), Some(65_535));
        assert_eq!(number(kept.again(now, 0)), Some(65_536));
        assert_eq!(number(kept.again(now, 65_535)), None, "it is on its way");
        assert_eq!(number(kept.again(now + REPEAT_AFTER, 65_535)), Some(65_535));
        for unknown in [2, 65_533, 30_000] {
            assert_eq!(number(kept.again(now, unknown)), None, "{unknown}");
        }
    }

    #[test]
    fn what_is_old_is_of_no_use_any_more() {
        let mut kept = Kept::default();
        kept.add(Time::ZERO, media(300));
        let late = Time::ZERO + KEPT_FOR + REPEAT_AFTER;
        assert_eq!(number(kept.again(late, 300)), None);
        kept.add(late, media(301));
        assert_eq!(kept.packets.len(), 1);
        (302..302 + 2 * KEPT_MAX as u32).for_each(|at| kept.add(late, media(at)));
        assert_eq!(kept.packets.len(), KEPT_MAX);
    }
}
