//! Which layer of a publisher is the best: in the order of the offer the first (RFC 8853, section 5.2), or the last, as
//! browsers have it that scale them by themselves (WebRTC, section 5.1). What comes first shows it.

use std::collections::VecDeque;

use bytes::Bytes;
use outflow_media::Time;

use crate::limits::{LAYERS_HELD_MAX, LAYERS_SHOWN_AFTER};

/// The layers of a track.
#[derive(Debug)]
pub(super) struct Layers {
    count: u8,
    /// `None` until it is known.
    order: Option<Order>,
    /// What came until then: layer, track, packet.
    // bounded: by `LAYERS_HELD_MAX`.
    held: VecDeque<Came>,
    /// When it is taken for known.
    until: Option<Time>,
    /// The first picture of each layer: bytes, and whether it is whole.
    first: Vec<(usize, bool)>,
}

/// A packet of a layer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Came {
    /// Its number: of the offer, and once the order is known, with the best first.
    pub(super) layer: u8,
    pub(super) track: u8,
    pub(super) packet: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    BestFirst,
    BestLast,
}

impl Layers {
    /// This number of layers.
    pub(super) fn new(count: u8) -> Self {
        let first = vec![(0, false); usize::from(count)];
        Layers { count, order: None, held: VecDeque::new(), until: None, first }
    }

    /// Takes a packet, and hands out what can go on. `last`: its picture ends with it.
    pub(super) fn take(&mut self, now: Time, came: Came, last: bool, tell: impl FnMut(Came)) {
        if let Some(order) = self.order {
            return core::iter::once(self.place(order, came)).for_each(tell);
        }
        self.until.get_or_insert(now + LAYERS_SHOWN_AFTER);
        if let Some((bytes, is_whole)) = self.first.get_mut(usize::from(came.layer))
            && !*is_whole
        {
            *bytes += came.packet.len();
            *is_whole = last;
        }
        self.held.push_back(came);
        let whole = self.first.iter().filter(|(_, is_whole)| *is_whole).count();
        if whole > 1 || self.count < 2 || self.held.len() >= LAYERS_HELD_MAX {
            self.settle(tell);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub(super) fn due(&self) -> Option<Time> {
        self.until
    }

    /// Time has passed: what comes alone for so long is the smallest, or all that there is.
    pub(super) fn handle_timeout(&mut self, now: Time, tell: impl FnMut(Came)) {
        if self.until.is_some_and(|until| until <= now) {
            self.settle(tell);
        }
    }

    /// The number with the best first of one that has this number in the offer, and the other way round: turned twice, it
    /// is the same. None before the order is known.
    pub(super) fn turned(&self, number: u8) -> Option<u8> {
        self.order.map(|order| self.turn(order, number))
    }

    fn settle(&mut self, tell: impl FnMut(Came)) {
        let come: Vec<(u8, usize)> =
            (0..).zip(&self.first).filter(|(_, of)| of.0 > 0).map(|(layer, of)| (layer, of.0)).collect();
        let order = match come[..] {
            [(0, _)] if self.count > 1 => Order::BestLast,
            [(_, first), .., (_, last)] if first < last => Order::BestLast,
            _ => Order::BestFirst,
        };
        (self.order, self.until) = (Some(order), None);
        let held = core::mem::take(&mut self.held);
        held.into_iter().map(|came| self.place(order, came)).for_each(tell);
    }

    fn place(&self, order: Order, came: Came) -> Came {
        Came { layer: self.turn(order, came.layer), ..came }
    }

    fn turn(&self, order: Order, number: u8) -> u8 {
        match order {
            Order::BestFirst => number,
            Order::BestLast => self.count.saturating_sub(1).saturating_sub(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(layer: u8, bytes: usize) -> Came {
        Came { layer, track: 1, packet: Bytes::from(vec![layer; bytes]) }
    }

    /// The layers as they were handed out, and how large their packets were.
    fn order(count: u8, packets: &[(u8, usize, bool)], ms: u64) -> Vec<(u8, usize)> {
        let (mut layers, start, mut told) = (Layers::new(count), Time::from_millis(1_000), Vec::new());
        let mut tell = |came: Came| told.push((came.layer, came.packet.len()));
        packets.iter().for_each(|&(layer, bytes, last)| {
            layers.take(start, came(layer, bytes), last, &mut tell);
        });
        layers.handle_timeout(Time::from_millis(1_000 + ms), &mut tell);
        told
    }

    #[test]
    fn the_larger_first_picture_is_the_better_one() {
        let best_first = [(0, 1_000, false), (2, 100, true), (0, 500, true), (1, 400, true)];
        assert_eq!(order(3, &best_first, 0), [(0, 1_000), (2, 100), (0, 500), (1, 400)]);
        let best_last = [(0, 100, true), (1, 400, false), (1, 100, true), (2, 900, true)];
        assert_eq!(order(3, &best_last, 0), [(2, 100), (1, 400), (1, 100), (0, 900)]);
    }

    #[test]
    fn what_comes_alone_is_the_smallest() {
        let after = LAYERS_SHOWN_AFTER.as_millis() as u64;
        assert_eq!(order(3, &[(0, 100, true), (0, 50, true)], after - 1), []);
        assert_eq!(order(3, &[(0, 100, true), (0, 50, true)], after), [(2, 100), (2, 50)]);
        assert_eq!(order(3, &[(2, 100, true)], after), [(2, 100)]);
        assert_eq!(order(1, &[(0, 100, true)], 0), [(0, 100)], "of one there is no order");
    }

    #[test]
    fn what_is_held_has_an_end() {
        let packets: Vec<_> = (0..LAYERS_HELD_MAX).map(|_| (1, 10, false)).collect();
        assert_eq!(order(2, &packets[1..], 0).len(), 0);
        assert_eq!(order(2, &packets, 0).len(), LAYERS_HELD_MAX);
    }

    #[test]
    fn numbers_are_turned_both_ways() {
        let (mut layers, start) = (Layers::new(3), Time::ZERO);
        assert_eq!(layers.turned(0), None);
        layers.take(start, came(0, 10), true, drop);
        layers.take(start, came(1, 20), true, drop);
        layers.take(start, came(2, 30), true, drop);
        assert_eq!((layers.turned(0), layers.turned(2)), (Some(2), Some(0)));
        assert_eq!(layers.due(), None);
    }
}
