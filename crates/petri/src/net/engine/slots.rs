//! What is known of each unit of the window: a byte each, in the order in which units are sent.

/// What is known of a unit that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Slot {
    /// Nothing.
    #[default]
    Unknown,
    /// It is here and waits for its turn.
    Held,
    /// It was delivered.
    Delivered,
    /// It will not come.
    Absent,
    /// It will not come, and could have been delivered by now.
    Missed,
}

/// A ring of rounds.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    objects: usize,
    /// A power of two rounds, less one.
    mask: u64,
}

impl Slots {
    /// For `rounds` rounds, a power of two, of `objects` each.
    pub(super) fn new(rounds: usize, objects: usize) -> Self {
        Slots { slots: vec![Slot::Unknown; rounds * objects], objects, mask: rounds as u64 - 1 }
    }

    /// The slot of an object in a round of the window.
    pub(super) fn of(&mut self, round: u64, object: usize) -> &mut Slot {
        let at = self.at(round, object);
        &mut self.slots[at]
    }

    pub(super) fn get(&self, round: u64, object: usize) -> Slot {
        self.slots[self.at(round, object)]
    }

    /// The slots of a round of the window.
    pub(super) fn round(&self, round: u64) -> &[Slot] {
        let first = self.at(round, 0);
        &self.slots[first..first + self.objects]
    }

    fn at(&self, round: u64, object: usize) -> usize {
        (round & self.mask) as usize * self.objects + object
    }

    /// How many units something is known of.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.slots.iter().filter(|slot| **slot != Slot::Unknown).count()
    }
}
