//! Packets of a frame brought together, for elements that are given frames.

use outflow_media::Tag;
use outflow_packet::limits::TRACKS_MAX;

use super::Item;
use crate::limits::FRAME_BYTES_MAX;

/// Keeps the packets of frames that are not complete.
///
/// A frame is complete with its last packet, or when its track goes on with the next one; one that is
/// larger than [`FRAME_BYTES_MAX`] goes on in parts. What comes late goes on by itself. Tracks do not
/// wait for each other.
#[derive(Debug, Default)]
pub(super) struct Frames {
    tracks: Vec<Gathered>,
    whole: Vec<Item>,
}

#[derive(Debug, Default)]
struct Gathered {
    frame: u32,
    bytes: usize,
    items: Vec<Item>,
}

impl Frames {
    /// Takes a batch, and leaves in it the frames that are complete, one behind the other.
    pub(super) fn gather(&mut self, batch: &mut Vec<Item>) {
        let Frames { tracks, whole } = self;
        for item in batch.drain(..) {
            let Tag { track, frame, last, .. } = item.packet.tag;
            let track = usize::from(track) % TRACKS_MAX;
            if tracks.len() <= track {
                tracks.resize_with(track + 1, Gathered::default);
            }
            let gathered = &mut tracks[track];
            if !gathered.items.is_empty() && gathered.frame != frame {
                if frame.wrapping_sub(gathered.frame).cast_signed() < 0 {
                    whole.push(item);
                    continue;
                }
                gathered.give(whole);
            }
            gathered.frame = frame;
            gathered.bytes += item.len();
            gathered.items.push(item);
            if last || gathered.bytes >= FRAME_BYTES_MAX {
                gathered.give(whole);
            }
        }
        core::mem::swap(batch, whole);
    }

    /// Lets go of what is not complete; how many packets that were.
    pub(super) fn clear(&mut self) -> u64 {
        let packets = self.tracks.iter().map(|gathered| gathered.items.len() as u64).sum();
        self.tracks.clear();
        packets
    }

    /// Puts what is not complete before these packets: no element is given frames any more.
    pub(super) fn release(&mut self, batch: &mut Vec<Item>) {
        self.tracks.iter_mut().for_each(|gathered| gathered.give(&mut self.whole));
        self.whole.append(batch);
        core::mem::swap(batch, &mut self.whole);
    }

    /// Bytes that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.tracks.iter().map(|gathered| gathered.bytes).sum()
    }
}

impl Gathered {
    fn give(&mut self, whole: &mut Vec<Item>) {
        whole.append(&mut self.items);
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(track: u8, frame: u32, last: bool) -> Item {
        let mut item = Item::empty();
        item.packet.tag = Tag { track, frame, last, ..Tag::default() };
        item
    }

    fn gathered(frames: &mut Frames, items: &[(u8, u32, bool)]) -> Vec<(u8, u32)> {
        let mut batch = items.iter().map(|(track, frame, last)| item(*track, *frame, *last)).collect();
        frames.gather(&mut batch);
        batch.iter().map(|item| (item.packet.tag.track, item.packet.tag.frame)).collect()
    }

    #[test]
    fn frames_go_on_when_they_are_complete_and_tracks_do_not_wait_for_each_other() {
        let mut frames = Frames::default();
        assert_eq!(gathered(&mut frames, &[(0, 7, false), (1, 3, true), (0, 7, false)]), [(1, 3)]);
        assert_eq!(gathered(&mut frames, &[(0, 7, true), (0, 8, false)]), [(0, 7), (0, 7), (0, 7)]);
        // The last packet got lost, and one comes late.
        assert_eq!(gathered(&mut frames, &[(0, 9, false), (0, 7, false)]), [(0, 8), (0, 7)]);
        assert_eq!(frames.clear(), 1);
        assert_eq!(gathered(&mut frames, &[(0, 0, true)]), [(0, 0)]);
    }

    #[test]
    fn what_is_not_complete_is_released_before_what_comes_behind_it() {
        let mut frames = Frames::default();
        assert_eq!(gathered(&mut frames, &[(0, 7, false), (0, 7, false)]), []);
        let mut batch = vec![item(0, 7, true), item(0, 8, false)];
        frames.release(&mut batch);
        let released: Vec<_> = batch.iter().map(|item| item.packet.tag.frame).collect();
        assert_eq!((released, frames.bytes()), (vec![7, 7, 7, 8], 0));
    }
}
