//! Packets in the order of their sequence numbers.

use bytes::Bytes;

use crate::limits::{LATE_PACKETS_MAX, LOST_PACKETS_MAX, REORDER_PACKETS_MAX};
use crate::sequence_distance;

const WINDOW: usize = REORDER_PACKETS_MAX;
const LATE: i16 = LATE_PACKETS_MAX.cast_signed();
const AHEAD: i16 = LOST_PACKETS_MAX.cast_signed();

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It is given out when its turn comes.
    Taken,
    /// Its place was passed, or taken.
    Late,
}

/// Holds packets that are early, until those before them are there or are given up.
#[derive(Debug, Default)]
pub struct Reorder {
    next: Option<u16>,
    held: [Option<Bytes>; WINDOW],
    /// Packets are missing in front of the next one.
    gap: bool,
}

impl Reorder {
    /// Takes a packet, and gives out those whose turn it is, each with whether packets are
    /// missing in front of it.
    pub fn push(&mut self, sequence: u16, packet: Bytes, mut out: impl FnMut(Bytes, bool)) -> Pushed {
        let next = *self.next.get_or_insert(sequence);
        let mut ahead = sequence_distance(next, sequence);
        if (-LATE..0).contains(&ahead) {
            return Pushed::Late;
        }
        if !(0..AHEAD).contains(&ahead) {
            self.flush(&mut out);
            self.next = Some(sequence);
            self.gap = true;
            ahead = 0;
        }
        let mut place = usize::from(ahead.unsigned_abs());
        while place >= WINDOW {
            if self.held.iter().all(Option::is_none) {
                self.next = Some(sequence);
                self.gap = true;
                place = 0;
            } else {
                self.step(&mut out);
                place -= 1;
            }
        }
        if self.held[place].is_some() {
            return Pushed::Late;
        }
        self.held[place] = Some(packet);
        while self.held[0].is_some() {
            self.step(&mut out);
        }
        Pushed::Taken
    }

    /// Gives out all that is held and begins again.
    pub fn flush(&mut self, mut out: impl FnMut(Bytes, bool)) {
        for _ in 0..WINDOW {
            self.step(&mut out);
        }
        self.next = None;
    }

    /// Gives out the packet whose turn it is, or gives it up.
    fn step(&mut self, out: &mut impl FnMut(Bytes, bool)) {
        match self.held[0].take() {
            Some(packet) => out(packet, std::mem::take(&mut self.gap)),
            None => self.gap = true,
        }
        self.held.rotate_left(1);
        self.next = self.next.map(|next| next.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes packets that hold the low byte of their number; `!` marks a gap.
    fn order(sequences: &[u16]) -> (String, usize) {
        let mut reorder = Reorder::default();
        let mut out = String::new();
        let mut late = 0;
        let mut tell = |packet: Bytes, gap: bool| {
            out.push_str(if gap { "!" } else { " " });
            out.push_str(&packet[0].to_string());
        };
        for sequence in sequences {
            let packet = Bytes::copy_from_slice(&[*sequence as u8]);
            if reorder.push(*sequence, packet, &mut tell) == Pushed::Late {
                late += 1;
            }
        }
        reorder.flush(&mut tell);
        (out, late)
    }

    #[test]
    fn packets_in_order_pass_at_once() {
        assert_eq!(order(&[65_534, 65_535, 0, 1]), (" 254 255 0 1".into(), 0));
    }

    #[test]
    fn early_packets_wait_for_their_turn() {
        assert_eq!(order(&[1, 4, 3, 2, 5]), (" 1 2 3 4 5".into(), 0));
    }

    #[test]
    fn a_lost_packet_is_given_up_when_the_window_is_full() {
        let sent: Vec<u16> = [1].into_iter().chain(3..=12).collect();
        assert_eq!(order(&sent), (" 1!3 4 5 6 7 8 9 10 11 12".into(), 0));
        assert_eq!(order(&[&sent[..], &[2]].concat()).1, 1, "it is late then");
    }

    #[test]
    fn duplicates_are_late() {
        assert_eq!(order(&[1, 1, 3, 3, 2]), (" 1 2 3".into(), 2));
    }

    #[test]
    fn a_long_loss_and_a_new_start_are_gaps() {
        assert_eq!(order(&[1, 3, 200, 201]), (" 1!3!200 201".into(), 0));
        assert_eq!(order(&[10_000, 30, 31]), (" 16!30 31".into(), 0));
        assert_eq!(order(&[10, 40_000]), (" 10!64".into(), 0));
    }
}
