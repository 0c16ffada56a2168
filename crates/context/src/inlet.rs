//! Where what goes along a line comes out of it: the queues from all lanes of what came before.

use rtrb::Consumer;

use crate::passed::Passed;

/// The reading ends of the queues from all lanes of what came before to one lane, which are read in the
/// order of their turns.
#[derive(Debug)]
pub(super) struct Inlet {
    lanes: Vec<Consumer<Passed>>,
    /// Whose turn it is, and how far the next turn is from it.
    turn: usize,
    step: usize,
}

impl Inlet {
    /// For lane `lane` of `of`, from these queues.
    pub(super) fn new(lanes: Vec<Consumer<Passed>>, (lane, of): (usize, usize)) -> Self {
        let (turn, step) = (lane % lanes.len(), of % lanes.len());
        Inlet { lanes, turn, step }
    }

    /// The next that came, in order.
    pub(super) fn take(&mut self) -> Option<Passed> {
        if self.is_for_all(self.turn)? {
            // It comes from every lane, behind what came from it before.
            let have_all = (0..self.lanes.len()).all(|lane| self.is_for_all(lane) == Some(true));
            if !have_all {
                return None;
            }
            return self.lanes.iter_mut().filter_map(|lane| lane.pop().ok()).reduce(|first, _| first);
        }
        let passed = self.lanes[self.turn].pop().ok()?;
        if matches!(passed, Passed::Turn(_)) {
            self.turn = (self.turn + self.step) % self.lanes.len();
        }
        Some(passed)
    }

    /// Whether the next of a lane is one that comes from every lane; `None` if there is none.
    fn is_for_all(&self, lane: usize) -> Option<bool> {
        self.lanes[lane].peek().ok().map(|passed| matches!(passed, Passed::ForAll(_)))
    }

    /// How much is in the queues.
    pub(super) fn queued(&self) -> usize {
        self.lanes.iter().map(Consumer::slots).sum()
    }

    /// Whether nothing comes any more.
    pub(super) fn is_over(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_abandoned() && lane.is_empty())
    }
}
