//! Packets that peers were given of late: one that sends some of them once more keeps their numbers, and no bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use outflow_media::Time;

use crate::limits::{RECENT_BYTES_MAX, RECENT_FOR, RECENT_KNOWN, RECENT_MAX};

/// What the peers of a worker were given of late, the same bytes for all of them.
#[derive(Debug, Default)]
pub struct Recent {
    /// The oldest first, and when each was given.
    // bounded: by `RECENT_BYTES_MAX`, `RECENT_MAX`, and `RECENT_FOR`.
    packets: VecDeque<(Time, Bytes)>,
    /// The number of the oldest.
    first: u32,
    bytes: usize,
    /// Where packets are, by where their bytes lie in memory.
    known: Vec<u32>,
}

impl Recent {
    /// One more, which stays for [`RECENT_FOR`], or for half of that if it is here already, if there is room. Answers its
    /// number.
    pub fn add(&mut self, now: Time, packet: Bytes) -> u32 {
        let place = packet.as_ptr().addr() / 16 % RECENT_KNOWN;
        self.known.resize(RECENT_KNOWN, 0);
        let known = self.known[place];
        if self.is_here(now, known, &packet) {
            return known;
        }
        let number = self.push(now, packet);
        self.known[place] = number;
        number
    }

    /// Whether the packet is the one of this number, and stays for some time.
    fn is_here(&self, now: Time, number: u32, packet: &Bytes) -> bool {
        let known = self.packets.get(number.wrapping_sub(self.first) as usize);
        known.is_some_and(|(given, bytes)| {
            let is_young = now.since(*given) < RECENT_FOR / 2;
            is_young && (bytes.as_ptr(), bytes.len()) == (packet.as_ptr(), packet.len())
        })
    }

    fn push(&mut self, now: Time, packet: Bytes) -> u32 {
        self.bytes += packet.len();
        self.packets.push_back((now, packet));
        let number = self.first.wrapping_add(self.packets.len() as u32 - 1);
        while let Some((given, packet)) = self.packets.front()
            && (now.since(*given) > RECENT_FOR
                || self.bytes > RECENT_BYTES_MAX
                || self.packets.len() > RECENT_MAX)
        {
            self.bytes -= packet.len();
            self.packets.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        number
    }

    /// The packet of this number, if it is still here.
    pub fn get(&self, number: u32) -> Option<&Bytes> {
        self.packets.get(number.wrapping_sub(self.first) as usize).map(|(_, packet)| packet)
    }

    /// None is here any more.
    pub(crate) fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.packets.len() as u32);
        self.packets.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_or_finds_no_room_is_here_no_more() {
        let mut recent = Recent::default();
        let packet = |byte: u8| Bytes::from(vec![byte; RECENT_BYTES_MAX / 4]);
        let at = Time::from_millis;
        let one = recent.add(at(0), packet(1));
        let two = recent.add(at(500), packet(2));
        assert_eq!([one, two].map(|number| recent.get(number).map(|packet| packet[0])), [Some(1), Some(2)]);
        let three = recent.add(at(501) + RECENT_FOR, packet(3));
        assert_eq!([one, two].map(|number| recent.get(number).is_some()), [false; 2]);
        let more: Vec<_> = (4..8).map(|byte| recent.add(at(501) + RECENT_FOR, packet(byte))).collect();
        assert!(recent.get(three).is_none(), "there was no room");
        let bytes: Vec<_> = more.iter().filter_map(|number| Some(recent.get(*number)?[0])).collect();
        assert_eq!(bytes, [4, 5, 6, 7]);
        recent.clear();
        assert!(recent.get(more[3]).is_none() && recent.get(more[3].wrapping_add(1)).is_none());
    }

    #[test]
    fn what_is_given_again_soon_stands_there_once() {
        let mut recent = Recent::default();
        let packet = Bytes::from(vec![7; 1200]);
        let add = |recent: &mut Recent, ms| recent.add(Time::from_millis(ms), packet.clone());
        let first = add(&mut recent, 0);
        assert_eq!(add(&mut recent, 100), first);
        assert_ne!(
            recent.add(Time::from_millis(100), packet.slice(..600)),
            first,
            "a part is another packet"
        );
        let later = add(&mut recent, 501);
        assert_ne!(later, first, "it stays long enough for those that get it now");
        assert!(recent.get(later) == recent.get(first));
    }

    #[test]
    fn numbers_come_round() {
        let mut recent = Recent { first: u32::MAX, ..Recent::default() };
        let numbers = [b"a", b"b"].map(|byte| recent.add(Time::ZERO, Bytes::from_static(byte)));
        assert_eq!(numbers, [u32::MAX, 0]);
        assert_eq!(recent.get(0).map(|packet| &packet[..]), Some(&b"b"[..]));
        assert!(recent.get(1).is_none() && recent.get(u32::MAX - 1).is_none());
    }
}
