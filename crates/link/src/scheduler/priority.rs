//! Strict priority: nothing of a class goes while there is anything of one above it. Within a class, one packet of
//! each buffer in turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::choose::{Look, Scheduler};

#[derive(Debug, Default)]
pub(super) struct Strict {
    /// By class: which buffer is next.
    turns: BTreeMap<u8, VecDeque<usize>>,
    awake: BTreeSet<usize>,
    /// Those whose class is not known yet.
    woken: Vec<usize>,
}

impl Scheduler for Strict {
    fn wakes(&mut self, buffer: usize) {
        if self.awake.insert(buffer) {
            self.woken.push(buffer);
        }
    }

    fn next(&mut self, look: Look<'_>) -> Option<usize> {
        for buffer in self.woken.drain(..) {
            match look(buffer) {
                Some(candidate) => self.turns.entry(candidate.class).or_default().push_back(buffer),
                None => _ = self.awake.remove(&buffer),
            }
        }
        for (class, turns) in &mut self.turns {
            while let Some(buffer) = turns.pop_front() {
                match look(buffer) {
                    Some(candidate) if candidate.class == *class => {
                        turns.push_back(buffer);
                        return Some(buffer);
                    }
                    // Another class, since a flow came or went: it has its turn there from the next packet on.
                    Some(_) => self.woken.push(buffer),
                    None => _ = self.awake.remove(&buffer),
                }
            }
        }
        if self.woken.is_empty() { None } else { self.next(look) }
    }
}
