//! A stream over and over: what counts goes on counting, so that it is one stream that does not end.

use super::packets::{EXTENDED_LONG, EXTENSION_AT, TICKS_PER_PICTURE, packets};
use super::{Coding, Encoded};

/// The packets of a stream of AV1, again and again.
#[derive(Debug)]
pub struct Endless {
    pictures: Vec<Vec<Vec<u8>>>,
    /// Of one turn.
    packets: usize,
    frames: usize,
    is_described: bool,
    /// Pictures that were handed out.
    given: usize,
}

impl Endless {
    /// From the first picture on, which is a key picture.
    pub fn new(encoded: &Encoded) -> Self {
        let pictures = packets(encoded);
        Endless {
            packets: pictures.iter().map(Vec::len).sum(),
            frames: encoded.frames.len(),
            is_described: encoded.coding == Coding::Av1,
            pictures,
            given: 0,
        }
    }

    /// The packets of the next picture.
    pub fn next_picture(&mut self) -> Vec<Vec<u8>> {
        let (turn, at) = (self.given / self.pictures.len(), self.given % self.pictures.len());
        self.given += 1;
        let mut picture = self.pictures[at].clone();
        picture.iter_mut().for_each(|packet| self.count_on(packet, turn));
        picture
    }

    /// The sequence number, the timestamp, and the frame's number in the dependency descriptor.
    fn count_on(&self, packet: &mut [u8], turn: usize) {
        add_16(packet, 2, turn * self.packets);
        let timestamp = packet[4..8].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        let ticks = (turn * self.pictures.len()) as u32;
        let timestamp = timestamp.wrapping_add(ticks.wrapping_mul(TICKS_PER_PICTURE));
        packet[4..8].copy_from_slice(&timestamp.to_be_bytes());
        if self.is_described {
            let is_long = packet[EXTENSION_AT..EXTENSION_AT + 2] == EXTENDED_LONG.to_be_bytes();
            // Behind the profile and the length, and an identifier with its length; then a byte that counts nothing.
            add_16(packet, EXTENSION_AT + 4 + if is_long { 2 } else { 1 } + 1, turn * self.frames);
        }
    }
}

fn add_16(packet: &mut [u8], at: usize, more: usize) {
    let before = u16::from_be_bytes([packet[at], packet[at + 1]]);
    packet[at..at + 2].copy_from_slice(&before.wrapping_add(more as u16).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use outflow_rtp::RtpHeader;

    use super::super::Plan;
    use super::*;

    /// A frame that is nothing but a unit with its header.
    fn unit(spatial: u8, temporal: u8) -> Vec<u8> {
        vec![0x36, temporal << 5 | spatial << 3, 3, 1, 2, 3]
    }

    #[test]
    fn numbers_go_on_where_it_begins_again() {
        let plan = Plan::new(2, 1, 3);
        let frames = plan.frames.iter().map(|frame| unit(frame.spatial, frame.temporal)).collect();
        let encoded = Encoded { coding: Coding::Av1, plan, frames, pictures: Vec::new() };
        let mut endless = Endless::new(&encoded);
        let all: Vec<Vec<u8>> = (0..7).flat_map(|_| endless.next_picture()).collect();
        assert_eq!(all.len(), 14);
        let number = |packet: &[u8]| {
            let at = if packet[12..14] == EXTENDED_LONG.to_be_bytes() { 19 } else { 18 };
            u16::from_be_bytes([packet[at], packet[at + 1]])
        };
        for (at, pair) in all.windows(2).enumerate() {
            let [before, next] = [0, 1].map(|at| RtpHeader::new_checked(&pair[at]).unwrap());
            assert_eq!(next.sequence(), before.sequence().wrapping_add(1));
            assert_eq!(number(&pair[1]), number(&pair[0]).wrapping_add(1), "{at}");
            let ticks = if at % 2 == 0 { 0 } else { TICKS_PER_PICTURE };
            assert_eq!(next.timestamp(), before.timestamp().wrapping_add(ticks));
        }
        assert_eq!(all[0].len(), all[12].len(), "the key picture again, with its structure");
    }
}
