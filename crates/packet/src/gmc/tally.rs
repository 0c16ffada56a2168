//! Packets of a track that count, by their sequence numbers.

/// Packets back from the newest that are remembered. One that is later has lost its place.
const REMEMBERED: u16 = u64::BITS as u16;

/// Counts some packets of a track. One that comes late, or once more, is told what it would have been told at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    newest: Option<u16>,
    /// How many have counted, wrapping.
    counted: u16,
    /// Which of the last ones did: bit 0 is the newest.
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

impl Tally {
    /// One that goes on from what another one was.
    pub(super) const fn resume(newest: Option<u16>, counted: u16, recent: u64) -> Self {
        Tally { newest, counted, recent }
    }

    /// Whether a packet of this number is newer than all before.
    pub(super) const fn is_new(&self, sequence: u16) -> bool {
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

    /// A packet comes, and counts if it is newer than all before. Returns how many count that stand before it, and
    /// whether it counts, now or when it came first.
    pub(super) const fn comes(&mut self, sequence: u16, counts: bool) -> (u16, bool) {
        self.recent = match self.place(sequence) {
            Place::Back(back) => {
                let newer = self.recent & ((1 << back) - 1);
                let before = self.counted.wrapping_sub(newer.count_ones() as u16);
                let did = self.recent >> back & 1 == 1;
                return (if did { before.wrapping_sub(1) } else { before }, did);
            }
            Place::Ahead(by) if by < REMEMBERED => self.recent << by,
            Place::Ahead(_) | Place::Afresh => 0,
        };
        let before = self.counted;
        self.newest = Some(sequence);
        if counts {
            self.recent |= 1;
            self.counted = before.wrapping_add(1);
        }
        (before, counts)
    }
}
