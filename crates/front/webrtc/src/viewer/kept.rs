//! Which packets went to a viewer of late, so that some can be sent once more. Their bytes are among those that all
//! viewers of the worker were given ([`Recent`](outflow_engine::Recent)).

use std::collections::VecDeque;

use outflow_media::Time;

use crate::limits::{KEPT_AT_FIRST, KEPT_FOR, KEPT_MAX, PROBE_CHOICE, REPEAT_AFTER, REPEATED_MAX};

/// The newest packets of a track.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By the lowest bits of their numbers: a power of two of places, or none yet.
    // bounded: by `KEPT_MAX`.
    places: Vec<Sent>,
    newest: u32,
    /// There are packets of upper layers.
    has_layers: bool,
    /// From which number on they are taken once, and since when.
    round: Option<(u32, Time)>,
    /// What was sent once more of late, the newest behind.
    // bounded: by `REPEATED_MAX`.
    repeated: VecDeque<(u32, Time)>,
}

/// What a packet was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// The packet of the stream, by its number among those that were given.
    pub(super) packet: u32,
    pub(super) part: Part,
    /// It was the last of its picture for this viewer.
    pub(super) ends: bool,
    /// It is of the lowest layer: all others need it.
    pub(super) is_lowest: bool,
}

/// What of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// The parameter sets that stand in front of it.
    Sets,
    /// One of two, where it is too long for one.
    First,
    Second,
}

/// A packet that was sent. There are hundreds a viewer, so it is small.
#[derive(Debug, Clone, Copy)]
struct Sent {
    packet: u32,
    /// The lowest bits of its number.
    number: u16,
    /// None of a place that is free.
    part: Option<Part>,
    about: u8,
}

/// Of [`Origin`]: it ends its picture, and it is of the lowest layer.
const ENDS: u8 = 1;
const LOWEST: u8 = 2;

const _: () = assert!(size_of::<Sent>() == 8 && KEPT_AT_FIRST.is_power_of_two() && KEPT_MAX < 1 << 16);

const FREE: Sent = Sent { packet: 0, number: 0, part: None, about: 0 };

impl Kept {
    /// A packet is sent by this number.
    pub(super) fn add(&mut self, now: Time, number: u32, origin: Origin) {
        if self.places.is_empty() {
            self.places.resize(KEPT_AT_FIRST, FREE);
        }
        let (first, _) = *self.round.get_or_insert((number, now));
        if number.checked_sub(first).is_some_and(|taken| taken as usize >= self.places.len()) {
            self.come_round(now, number);
        }
        let (at, Origin { packet, part, ends, is_lowest }) = (self.place(number), origin);
        let about = if ends { ENDS } else { 0 } | if is_lowest { LOWEST } else { 0 };
        self.places[at] = Sent { packet, number: number as u16, part: Some(part), about };
        self.has_layers |= !is_lowest;
        self.newest = self.newest.max(number);
    }

    /// All places are taken: twice as many are needed, if that took less time than packets are kept.
    fn come_round(&mut self, now: Time, number: u32) {
        let is_soon = self.round.is_some_and(|(_, since)| now.since(since) < KEPT_FOR);
        if !is_soon || self.places.len() >= KEPT_MAX {
            self.round = Some((number, now));
            return;
        }
        let wider = vec![FREE; 2 * self.places.len()];
        for sent in core::mem::replace(&mut self.places, wider) {
            let at = self.place(sent.number.into());
            if sent.part.is_some() {
                self.places[at] = sent;
            }
        }
    }

    /// Reads where the next packet is put down.
    pub(super) fn warm(&self) -> usize {
        let last = self.places.len().wrapping_sub(1);
        self.places.get(self.newest.wrapping_add(1) as usize & last).map_or(0, |sent| sent.packet as usize)
    }

    fn place(&self, number: u32) -> usize {
        number as usize & (self.places.len() - 1)
    }

    /// The newest packets, the newest first: those of which one is sent once more for the sake of it.
    pub(super) fn newest(&self) -> impl Iterator<Item = (u32, Origin)> {
        let numbers = (0..PROBE_CHOICE as u32).filter_map(|back| self.newest.checked_sub(back));
        numbers.filter_map(|number| Some((number, self.origin(number)?)))
    }

    /// Whether all layers that the viewer is sent need the packet with this number.
    pub(super) fn is_base(&self, sequence: u16) -> bool {
        let number = self.number(sequence).filter(|_| self.has_layers);
        number.and_then(|number| self.origin(number)).is_some_and(|origin| origin.is_lowest)
    }

    fn number(&self, sequence: u16) -> Option<u32> {
        self.newest.checked_sub(u32::from((self.newest as u16).wrapping_sub(sequence)))
    }

    /// The packet with this number, which is missed; none if it is not kept any more, or is on its way again.
    pub(super) fn missed(&self, now: Time, sequence: u16) -> Option<(u32, Origin)> {
        let number = self.number(sequence)?;
        let origin = self.origin(number)?;
        let is_on_its_way =
            |(repeated, at): &(u32, Time)| *repeated == number && now.since(*at) < REPEAT_AFTER;
        if self.repeated.iter().rev().any(is_on_its_way) {
            return None;
        }
        Some((number, origin))
    }

    /// It is sent once more.
    pub(super) fn again(&mut self, now: Time, number: u32) {
        if self.repeated.len() >= REPEATED_MAX {
            self.repeated.pop_front();
        }
        self.repeated.push_back((number, now));
    }

    fn origin(&self, number: u32) -> Option<Origin> {
        let last = self.places.len().checked_sub(1)?;
        let Sent { packet, number: kept, part, about } = self.places[number as usize & last];
        let part = part.filter(|_| kept == number as u16)?;
        Some(Origin { packet, part, ends: about & ENDS != 0, is_lowest: about & LOWEST != 0 })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn add(kept: &mut Kept, now: Time, number: u32) {
        kept.add(
            now,
            number,
            Origin {
                packet: number + 7,
                part: Part::Whole,
                ends: false,
                is_lowest: !number.is_multiple_of(3),
            },
        );
    }

    /// By which number it goes, and which packet that is.
    fn again(kept: &mut Kept, now: Time, sequence: u16) -> Option<(u32, u32)> {
        let (number, origin) = kept.missed(now, sequence)?;
        kept.again(now, number);
        Some((number, origin.packet))
    }

    #[test]
    fn what_is_missing_is_sent_once_more_and_not_twice_at_once() {
        let mut kept = Kept::default();
        let now = Time::from_millis(1000);
        assert_eq!(again(&mut kept, now, 0), None);
        for at in [65_534, 65_535, 65_537, 65_536] {
            add(&mut kept, now, at);
        }
        assert_eq!(again(&mut kept, now, 65_535), Some((65_535, 65_542)));
        assert_eq!(again(&mut kept, now, 0), Some((65_536, 65_543)));
        assert_eq!(again(&mut kept, now, 65_535), None, "it is on its way");
        assert_eq!(again(&mut kept, now + REPEAT_AFTER, 65_535), Some((65_535, 65_542)));
        for unknown in [2, 65_533, 30_000] {
            assert_eq!(again(&mut kept, now, unknown), None, "{unknown}");
        }
        let of_base = [65_534, 65_535, 0, 1, 2].map(|sequence: u16| kept.is_base(sequence));
        assert_eq!(of_base, [true, false, true, true, false]);
        let newest: Vec<_> = kept.newest().map(|(number, _)| number).collect();
        assert_eq!(newest, [65_537, 65_536, 65_535, 65_534]);
    }

    #[test]
    fn all_of_a_burst_at_the_beginning_is_kept() {
        let (mut kept, now) = (Kept::default(), Time::from_millis(1000));
        (300..600).for_each(|number| add(&mut kept, now, number));
        assert!((300..600).all(|number| kept.missed(now, number as u16).is_some()));
    }

    #[test]
    fn there_is_room_for_what_comes_within_the_time_and_not_for_more() {
        let of_track = |per_second: u32, packets: u32| {
            let mut kept = Kept::default();
            for at in 0..packets {
                add(&mut kept, Time::ZERO + Duration::from_secs(1) * at / per_second, 300 + at);
            }
            kept
        };
        let mut sound = of_track(50, 5_000);
        assert!(sound.places.len() <= 64);
        let now = Time::from_millis(100_000);
        assert_eq!(again(&mut sound, now, 5_270), Some((5_270, 5_277)));
        let mut picture = of_track(400, 5_000);
        assert!((400..=512).contains(&picture.places.len()), "{}", picture.places.len());
        assert_eq!(again(&mut picture, now, 4_900), Some((4_900, 4_907)));
        let mut fast = of_track(100_000, 5_000);
        assert_eq!(fast.places.len(), KEPT_MAX);
        assert_eq!(again(&mut fast, now, 5_299 - KEPT_MAX as u16), None);
        assert_eq!(again(&mut fast, now, 5_300 - KEPT_MAX as u16), Some((4_276, 4_283)));
    }
}
