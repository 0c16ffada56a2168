//! Sequence numbers: elements leave gaps on purpose, which are closed; those of packets that never
//! came in stay, so that receivers still see what was lost.
//!
//! Closing them takes one number a packet, its *place*: how many packets of its track came into the
//! graph before it. Where a packet leaves, its sequence number moves back by as many as were left out
//! before it. A packet that came late, or once more, has the place of the one that it stands at, and
//! moves back by as much as that one did.

use outflow_packet::limits::TRACKS_MAX;
use outflow_rtp::sequence_distance;

use super::Item;

/// This many packets back, a late one is still told from the next one of a source that began again.
const RECENT: usize = 64;

/// Gives the packets of one track their places: where they come into the graph, and where an element
/// makes one flow of several.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    count: u16,
    highest: Option<u16>,
    /// The place of each of the newest sequence numbers.
    of: [u16; RECENT],
}

impl Default for Places {
    fn default() -> Self {
        Places { count: 0, highest: None, of: [0; RECENT] }
    }
}

impl Places {
    /// Gives a packet the next place.
    pub fn place(&mut self, item: &mut Item) {
        let sequence = item.header().map(outflow_rtp::sequence);
        let (place, again) = self.next(sequence);
        (item.of_track, item.again) = (Some(place), again);
    }

    /// As if one packet less had come, and none lately: for those that are let through once more.
    pub(super) fn go_back(&mut self) {
        *self = Places { count: self.count.wrapping_sub(1), ..Places::default() };
    }

    /// The place of the next packet, and whether it came late or once more.
    fn next(&mut self, sequence: Option<u16>) -> (u16, bool) {
        let Some(sequence) = sequence else {
            self.count = self.count.wrapping_add(1);
            return (self.count.wrapping_sub(1), false);
        };
        let step = self.highest.map_or(1, |highest| sequence_distance(highest, sequence));
        if (1 - RECENT as i16..=0).contains(&step) {
            return (self.of[usize::from(sequence) % RECENT], true);
        }
        // Those in between may still come: they stand where this one stands.
        for back in 0..usize::from(step.unsigned_abs()).min(RECENT) {
            self.of[usize::from(sequence.wrapping_sub(back as u16)) % RECENT] = self.count;
        }
        self.highest = Some(sequence);
        self.count = self.count.wrapping_add(1);
        (self.count.wrapping_sub(1), false)
    }
}

/// Closes the gaps that were left on purpose.
#[derive(Debug, Clone, Default)]
pub struct Numbering {
    tracks: Vec<Passed>,
}

#[derive(Debug, Clone)]
struct Passed {
    began: bool,
    /// What the place of the next packet is if none is left out any more.
    expected: u16,
    /// How far packets move back now.
    back: u16,
    /// Place, and how far back, of those that passed.
    recent: [Option<(u16, u16)>; RECENT],
}

impl Default for Passed {
    fn default() -> Self {
        Passed { began: false, expected: 0, back: 0, recent: [None; RECENT] }
    }
}

impl Numbering {
    /// Moves the sequence number of a packet back by as many as were left out before it. Those that an
    /// element has numbered itself stay as they are.
    pub fn number(&mut self, item: &mut Item) {
        let Some(place) = item.of_track else { return };
        let track = usize::from(item.packet.tag.track) % TRACKS_MAX;
        if self.tracks.len() <= track {
            self.tracks.resize_with(track + 1, Passed::default);
        }
        item.renumber(self.tracks[track].back(place, item.again));
    }

    /// Begins with the source's own numbers again.
    pub fn restart(&mut self) {
        self.tracks.iter_mut().for_each(|passed| *passed = Passed::default());
    }
}

impl Passed {
    fn back(&mut self, place: u16, again: bool) -> u16 {
        let slot = usize::from(place) % RECENT;
        if again && self.began {
            let known = self.recent[slot].filter(|(known, _)| *known == place);
            return known.map_or(self.back, |(_, back)| back);
        }
        if !self.began {
            (self.began, self.expected, self.back) = (true, place, 0);
        }
        self.back = self.back.wrapping_add(place.wrapping_sub(self.expected));
        self.expected = place.wrapping_add(1);
        self.recent[slot] = Some((place, self.back));
        self.back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(numbers: &[u16], left_out: &[u16]) -> Vec<u16> {
        let (mut places, mut passed) = (Places::default(), Passed::default());
        let mut out = Vec::new();
        for number in numbers {
            let (place, again) = places.next(Some(*number));
            if !left_out.contains(number) {
                out.push(number.wrapping_sub(passed.back(place, again)));
            }
        }
        out
    }

    #[test]
    fn gaps_on_purpose_are_closed_and_others_stay() {
        assert_eq!(pass(&[1, 2, 3, 5, 6], &[2]), [1, 2, 4, 5]);
        assert_eq!(pass(&[65_534, 65_535, 0, 1], &[65_535]), [65_534, 65_535, 0]);
    }

    #[test]
    fn what_comes_once_more_and_is_left_out_moves_nothing() {
        assert_eq!(pass(&[1, 2, 2, 3, 4], &[2]), [1, 2, 3]);
        assert_eq!(pass(&[1, 2, 2, 3, 3, 4], &[1]), [2, 2, 3, 3, 4]);
    }

    #[test]
    fn a_late_packet_gets_a_number_that_no_other_has() {
        assert_eq!(pass(&[5, 7, 6, 8], &[7]), [5, 6, 7]);
        assert_eq!(pass(&[4, 5, 7, 8, 6, 9], &[5]), [4, 6, 7, 5, 8]);
        // A source that begins again far away goes on from there.
        assert_eq!(pass(&[5, 6, 900, 901], &[900]), [5, 6, 900]);
    }
}
