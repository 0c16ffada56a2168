//! A class: which of its flows is next, and what it is owed of the time that it was promised.

use std::collections::BTreeSet;

use crate::Part;
use crate::limits::WINDOW;

#[derive(Debug, Default)]
pub(crate) struct Class {
    pub(crate) promised: Part,
    /// Time that it was promised and has not had, nanoseconds; less than zero, if it had more.
    pub(crate) owed: i64,
    /// The pass of the flow that had its turn last: one that wakes goes on from there.
    pub(crate) now: u64,
    /// The flows that wait, by their passes.
    waiting: BTreeSet<(u64, usize)>,
}

impl Class {
    pub(crate) fn new(promised: Part) -> Self {
        Class { promised, ..Class::default() }
    }

    pub(crate) fn enter(&mut self, flow: usize, pass: u64) {
        self.waiting.insert((pass, flow));
    }

    pub(crate) fn leave(&mut self, flow: usize, pass: u64) {
        self.waiting.remove(&(pass, flow));
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The flow whose turn is next.
    pub(crate) fn first(&self) -> Option<usize> {
        self.waiting.first().map(|(_, flow)| *flow)
    }

    /// Time was worked in which it `had` as much. What it gets without being owed it counts, too, as far back as
    /// [`WINDOW`]; one that has nothing to do is owed nothing.
    pub(crate) fn passes(&mut self, took: u64, had: u64) {
        let most = self.promised.of(WINDOW) as i64;
        let owed = self.owed + self.promised.of(took) as i64 - had as i64;
        self.owed = owed.clamp(-most, if self.is_idle() { 0 } else { most });
    }
}
