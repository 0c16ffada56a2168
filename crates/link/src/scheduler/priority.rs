//! Priority: what is of the highest class that has something goes first. Each class below it that has something is
//! promised a part of the bytes, which it gets whatever those above it have, so that none starves; with nothing
//! promised, classes are strict. Within a class, one packet of each buffer in turn.
//!
//! What a class does not use, others have. It saves nothing up while it has nothing to send, and what it had without
//! being owed it is held against it for [`PRIORITY_WINDOW`] only.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use outflow_turns::Part as Share;

use super::choose::{Look, Scheduler};
use crate::limits::{LOWER_TOGETHER, PRIORITY_WINDOW};

/// What a byte counts, so that parts of a few bytes do not vanish: shares are in thousandths of a percent.
const BYTE: u64 = 100_000;

#[derive(Debug, Default)]
pub(super) struct Priority {
    promised: Share,
    classes: BTreeMap<u8, Class>,
    awake: BTreeSet<usize>,
    /// Those whose class is not known yet.
    woken: Vec<usize>,
    /// Class and bytes of the packet that was taken out last.
    taken: Option<(u8, usize)>,
}

#[derive(Debug, Default)]
struct Class {
    /// Which buffer is next.
    turns: VecDeque<usize>,
    /// What it was promised and has not had; less than zero, if it had more.
    owed: i64,
}

impl Priority {
    /// The packet that was taken out last has gone.
    fn settle(&mut self) {
        let Some((at, bytes)) = self.taken.take() else { return };
        let lower = self.waiting().count().saturating_sub(1).max(1);
        let together = u32::try_from(lower).map_or(0, |lower| LOWER_TOGETHER / lower);
        let promised = self.promised.min(Share::of_100_000(together));
        let took = bytes as u64 * BYTE;
        let (earned, most) = (promised.of(took) as i64, promised.of(PRIORITY_WINDOW * BYTE) as i64);
        for (class, state) in &mut self.classes {
            let above = if state.turns.is_empty() { 0 } else { most };
            state.owed = (state.owed + earned).min(above);
            if *class == at {
                state.owed = (state.owed - took as i64).max(-most.max(took as i64));
            }
        }
    }

    /// Buffers that have woken have their turns in their classes.
    fn place(&mut self, look: Look<'_>) {
        for buffer in self.woken.drain(..) {
            match look(buffer) {
                Some(candidate) => self.classes.entry(candidate.class).or_default().turns.push_back(buffer),
                None => _ = self.awake.remove(&buffer),
            }
        }
    }

    /// Classes of which something may wait, the highest first.
    fn waiting(&self) -> impl Iterator<Item = (u8, i64)> + '_ {
        let waiting = self.classes.iter().filter(|(_, class)| !class.turns.is_empty());
        waiting.map(|(class, state)| (*class, state.owed))
    }

    /// The class whose turn it is.
    fn class(&self) -> Option<u8> {
        let (highest, _) = self.waiting().next()?;
        let owed = self.waiting().skip(1).filter(|(_, owed)| *owed > 0);
        let most = owed.max_by_key(|(class, owed)| (*owed, Reverse(*class)));
        Some(most.map_or(highest, |(class, _)| class))
    }

    /// The next buffer of a class; `None` if it has none after all.
    fn take(&mut self, class: u8, look: Look<'_>) -> Option<usize> {
        let state = self.classes.get_mut(&class)?;
        while let Some(buffer) = state.turns.pop_front() {
            match look(buffer) {
                Some(candidate) if candidate.class == class => {
                    state.turns.push_back(buffer);
                    self.taken = Some((class, candidate.bytes));
                    return Some(buffer);
                }
                // Another class, since a flow came or went: it has its turn there from the next packet on.
                Some(_) => self.woken.push(buffer),
                None => _ = self.awake.remove(&buffer),
            }
        }
        state.owed = state.owed.min(0);
        None
    }
}

impl Scheduler for Priority {
    fn promise(&mut self, lower_share: Share) {
        self.promised = lower_share;
    }

    fn wakes(&mut self, buffer: usize) {
        if self.awake.insert(buffer) {
            self.woken.push(buffer);
        }
    }

    fn next(&mut self, look: Look<'_>) -> Option<usize> {
        self.settle();
        loop {
            self.place(look);
            let class = self.class()?;
            if let Some(buffer) = self.take(class, look) {
                return Some(buffer);
            }
        }
    }

    fn spared(&mut self) {
        self.taken = None;
    }
}
