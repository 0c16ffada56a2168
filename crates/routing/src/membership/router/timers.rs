//! When something is due next, of many.

use outflow_media::Time;

/// A slot that waits for nothing.
const NOWHERE: u32 = u32::MAX;

/// A heap of times, one for each slot, that may be moved. It allocates only for slots that are new.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Vec<(Time, u32)>,
    /// Where in the heap each slot is.
    places: Vec<u32>,
}

impl Timers {
    /// The slot that is due next, and when.
    pub(super) fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    /// Sets when a slot is due, or that it waits for nothing.
    pub(super) fn set(&mut self, slot: u32, time: Option<Time>) {
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, NOWHERE);
        }
        match (self.places[slot as usize], time) {
            (NOWHERE, None) => (),
            (NOWHERE, Some(time)) => {
                self.heap.push((time, slot));
                self.up(self.heap.len() - 1);
            }
            (place, Some(time)) => {
                self.heap[place as usize].0 = time;
                self.settle(place as usize);
            }
            (place, None) => {
                self.places[slot as usize] = NOWHERE;
                self.heap.swap_remove(place as usize);
                if (place as usize) < self.heap.len() {
                    self.settle(place as usize);
                }
            }
        }
    }

    fn settle(&mut self, place: usize) {
        let place = self.up(place);
        self.down(place);
    }

    fn up(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.heap.swap(place, (place - 1) / 2);
            self.places[self.heap[place].1 as usize] = place as u32;
            place = (place - 1) / 2;
        }
        self.places[self.heap[place].1 as usize] = place as u32;
        place
    }

    fn down(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let least = children.min_by_key(|child| self.heap[*child]);
            let Some(child) = least.filter(|child| self.heap[*child] < self.heap[place]) else { return };
            self.heap.swap(place, child);
            self.places[self.heap[place].1 as usize] = place as u32;
            self.places[self.heap[child].1 as usize] = child as u32;
            place = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_first_is_the_earliest_of_all_that_were_set() {
        let (mut timers, mut model) = (Timers::default(), BTreeMap::new());
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..20_000 {
            let slot = random.u32(..40);
            let time = random.bool().then(|| Time::from_millis(random.u64(..1000)));
            timers.set(slot, time);
            match time {
                Some(time) => model.insert(slot, time),
                None => model.remove(&slot),
            };
            let first = model.iter().map(|(slot, time)| (*time, *slot)).min();
            assert_eq!(timers.first(), first);
        }
        assert!(timers.heap.len() <= 40);
    }
}
