//! A flow: where it stands in each class, and what is left of what it has reserved.

use crate::Claim;
use crate::limits::WINDOW;

#[derive(Debug)]
pub(crate) struct Flow<const CLASSES: usize> {
    pub(crate) claim: Claim,
    /// Time of its reserve that it may use now, nanoseconds.
    pub(crate) left: i64,
    /// How long it has had its turn, nanoseconds.
    pub(crate) worked: u64,
    pub(crate) places: [Place; CLASSES],
}

/// Where a flow stands in a class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// What it has had, by its weight: the flow with the least goes first.
    pub(crate) pass: u64,
    pub(crate) waits: bool,
}

impl<const CLASSES: usize> Flow<CLASSES> {
    /// Time has passed, of which it has reserved a part.
    pub(crate) fn earns(&mut self, passed: u64) {
        let most = self.claim.reserved.of(WINDOW) as i64;
        let earned = self.claim.reserved.of(passed) as i64;
        self.left = self.left.saturating_add(earned).clamp(-most, most);
    }

    /// The most urgent class in which it waits.
    pub(crate) fn waits(&self) -> Option<usize> {
        self.places.iter().position(|place| place.waits)
    }
}

impl<const CLASSES: usize> Default for Flow<CLASSES> {
    fn default() -> Self {
        Flow { claim: Claim::default(), left: 0, worked: 0, places: [Place::default(); CLASSES] }
    }
}
