//! In which order pictures are shown, for receivers that show them as they come: they get no more than the layers that
//! come in that order.

use outflow_media::{Kind, Tag};
use outflow_packet::Level;
use outflow_rtp::sequence_distance;

/// The layer of the pictures that others refer to, where codecs do not name their layers: without it nothing moves.
const REFERENCES: u8 = 1;

/// What the timestamps of a branch's pictures have shown.
#[derive(Debug, Default)]
pub(in crate::control) struct Showing {
    /// The newest packet's sequence number, and the newest timestamp.
    newest: Option<(u16, u32)>,
    /// The lowest layer with pictures that are shown before some that came sooner.
    lowest: Option<u8>,
}

impl Showing {
    /// A packet of the main track came, with this sequence number and timestamp. Returns whether a lower layer is known for
    /// its order now.
    pub(in crate::control) fn packet(
        &mut self,
        tag: &Tag,
        (sequence, timestamp): (u16, u32),
        clock_rate: u32,
    ) -> bool {
        // One that comes late says nothing of the order in which pictures were sent; and the layer of a picture is not
        // known by what stands before its first slice.
        let is_late = self.newest.is_some_and(|(newest, _)| sequence_distance(newest, sequence) <= 0);
        if is_late || tag.kind == Kind::Header {
            return false;
        }
        let step = self.newest.map_or(0, |(_, newest)| timestamp.wrapping_sub(newest).cast_signed());
        // Further back, time has leapt.
        let is_before = step < 0 && step.unsigned_abs() < 2 * clock_rate;
        let newest = self.newest.filter(|_| is_before).map_or(timestamp, |(_, newest)| newest);
        self.newest = Some((sequence, newest));
        let is_lower = is_before && self.lowest.is_none_or(|lowest| tag.layer < lowest);
        if is_lower {
            self.lowest = Some(tag.layer);
        }
        is_lower
    }

    /// Whether pictures that others refer to are shown before some that came sooner: no level is without.
    pub(in crate::control) fn is_deep(&self) -> bool {
        self.lowest.is_some_and(|lowest| lowest <= REFERENCES)
    }

    /// The source begins again.
    pub(in crate::control) fn restart(&mut self) {
        *self = Showing::default();
    }

    /// The best level whose pictures come in the order in which they are shown, of this number of layers; or at least
    /// leave out all that can be left out, where pictures that others refer to do not.
    pub(super) fn level(&self, layers: u8) -> Level {
        let highest = self.lowest.map(|lowest| lowest.saturating_sub(1).max(REFERENCES));
        highest.and_then(|highest| Level::new(layers.saturating_sub(highest))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pictures: &[(u32, u8)]) -> Showing {
        let mut showing = Showing::default();
        for (sequence, (timestamp, layer)) in (65_534..).zip(pictures) {
            let tag = Tag { kind: Kind::Predicted, layer: *layer, ..Tag::default() };
            showing.packet(&tag, (sequence as u16, *timestamp), 90_000);
        }
        showing
    }

    #[test]
    fn the_layers_that_come_in_order_are_left() {
        let in_order = [(0, 0), (3_600, 1), (7_200, 2), (10_800, 1)];
        assert_eq!(after(&in_order).level(3), Level::BEST);
        let reordered = [(u32::MAX - 99, 0), (10_800, 1), (3_600, 2), (7_200, 2)];
        assert_eq!(after(&reordered).level(3).number(), 2);
        let pyramid = [(0, 0), (14_400, 1), (7_200, 1), (3_600, 2), (10_800, 2)];
        assert_eq!(after(&pyramid).level(3).number(), 2, "what others refer to stays");
        let is_deep = [&in_order[..], &reordered, &pyramid].map(|pictures| after(pictures).is_deep());
        assert_eq!(is_deep, [false, false, true]);
        let sub_layers = [(0, 0), (14_400, 1), (7_200, 2), (3_600, 3), (10_800, 3)];
        assert_eq!(after(&sub_layers).level(4).number(), 3);
        assert_eq!(after(&sub_layers).level(1), Level::BEST, "there is nothing to choose");
    }

    #[test]
    fn time_that_leaps_and_packets_that_do_not_say_their_layer_show_nothing() {
        assert_eq!(after(&[(1_000_000, 1), (10, 1), (3_610, 2)]).level(3), Level::BEST);
        let mut showing = after(&[(7_200, 1)]);
        let header = Tag { kind: Kind::Header, ..Tag::default() };
        assert!(!showing.packet(&header, (65_535, 3_600), 90_000));
        let bidirectional = Tag { kind: Kind::Bidirectional, layer: 2, ..header };
        assert!(!showing.packet(&bidirectional, (65_533, 3_600), 90_000), "it was lost, and comes once more");
        assert!(!showing.packet(&bidirectional, (65_534, 3_600), 90_000), "it comes twice");
        assert!(showing.packet(&bidirectional, (65_535, 3_600), 90_000));
        showing.restart();
        assert_eq!(showing.level(3), Level::BEST);
    }
}
