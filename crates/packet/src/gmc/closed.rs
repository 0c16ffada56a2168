//! Sequence numbers without the packets that were left out.

/// Packets back from the newest that are remembered. One that is later has lost its place.
const REMEMBERED: u16 = u64::BITS as u16;

/// Closes the gaps that packets leave in the sequence numbers of a track when they are left out. What was lost before
/// leaves its gap: nothing is known of it, and its receiver is to see that. Packets that come late, or once more, get
/// the number that they would have had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Closed {
    newest: Option<u16>,
    /// How many were left out, wrapping.
    left_out: u16,
    /// Which of the last ones were: bit 0 is the newest.
    recent: u64,
}

/// Where a packet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// By this number behind the newest; it is the newest now.
    Ahead(u16),
    /// By this number before the newest.
    Back(u16),
    /// It is the first, or so late that the track begins again.
    Afresh,
}

impl Closed {
    /// Whether a packet of this number is newer than all before.
    pub const fn is_new(&self, sequence: u16) -> bool {
        !matches!(self.place(sequence), Place::Back(_))
    }

    const fn place(&self, sequence: u16) -> Place {
        let Some(newest) = self.newest else { return Place::Afresh };
        let ahead = sequence.wrapping_sub(newest);
        match ahead {
            1..=0x7fff => Place::Ahead(ahead),
            _ if ahead.wrapping_neg() < REMEMBERED => Place::Back(ahead.wrapping_neg()),
            _ => Place::Afresh,
        }
    }

    /// The number that a packet gets; nothing if it is left out, now or when it came first.
    pub const fn next(&mut self, sequence: u16, is_taken: bool) -> Option<u16> {
        let before = match self.place(sequence) {
            Place::Back(back) => {
                if self.recent >> back & 1 == 1 {
                    return None;
                }
                let newer = self.recent & ((1 << back) - 1);
                self.left_out.wrapping_sub(newer.count_ones() as u16)
            }
            Place::Ahead(by) => {
                self.recent = if by < REMEMBERED { self.recent << by } else { 0 };
                self.comes(sequence, is_taken)
            }
            Place::Afresh => {
                self.recent = 0;
                self.comes(sequence, is_taken)
            }
        };
        if is_taken { Some(sequence.wrapping_sub(before)) } else { None }
    }

    /// It is the newest now. Returns how many were left out before it.
    const fn comes(&mut self, sequence: u16, is_taken: bool) -> u16 {
        let before = self.left_out;
        self.newest = Some(sequence);
        if !is_taken {
            self.recent |= 1;
            self.left_out = self.left_out.wrapping_add(1);
        }
        before
    }
}
