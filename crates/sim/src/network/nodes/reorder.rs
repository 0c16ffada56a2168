//! What comes out of order is put in order, as in a player's buffer.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;

/// How long a packet waits for those before it, and how many wait.
const WAITS: Duration = Duration::from_millis(200);
const WAITING_MAX: usize = 1024;

/// Packets by their sequence numbers. One that came before, or comes too late, is left out.
#[derive(Debug)]
pub(super) struct Reorder<T> {
    /// The sequence number that comes next, and how many came before.
    next: Option<u16>,
    taken: u64,
    /// Packets that came before others in front of them, and when.
    waiting: BTreeMap<u64, (Time, T)>,
}

impl<T> Default for Reorder<T> {
    fn default() -> Self {
        Reorder { next: None, taken: 0, waiting: BTreeMap::new() }
    }
}

impl<T> Reorder<T> {
    /// A packet has come.
    pub(super) fn put(&mut self, now: Time, sequence: u16, packet: T) {
        let ahead = sequence.wrapping_sub(*self.next.get_or_insert(sequence));
        if ahead < 1 << 15 {
            self.waiting.entry(self.taken + u64::from(ahead)).or_insert((now, packet));
        }
    }

    /// A packet has come. Whether it is the next one, and none wait: then it is taken, and need not be put.
    pub(super) fn pass(&mut self, sequence: u16) -> bool {
        let passes = self.waiting.is_empty() && *self.next.get_or_insert(sequence) == sequence;
        if passes {
            self.taken += 1;
            self.next = Some(sequence.wrapping_add(1));
        }
        passes
    }

    /// The next packet, and how many are missing in front of it.
    pub(super) fn take(&mut self, now: Time) -> Option<(u64, T)> {
        let entry = self.waiting.first_entry()?;
        let is_next = *entry.key() == self.taken;
        let is_over = now.since(entry.get().0) >= WAITS;
        if is_next || is_over || self.waiting.len() >= WAITING_MAX {
            return self.take_any();
        }
        None
    }

    /// The same, without waiting for those before it.
    pub(super) fn take_any(&mut self) -> Option<(u64, T)> {
        let (number, (_, packet)) = self.waiting.pop_first()?;
        let missing = number - self.taken;
        self.taken += missing + 1;
        self.next = self.next.map(|next| next.wrapping_add(missing as u16 + 1));
        Some((missing, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken of packets of these numbers, of which one comes every so often; and what was missing.
    fn taken(numbers: &[u16], each_ms: u64) -> Vec<(u64, u16)> {
        let mut order = Reorder::default();
        let mut out = Vec::new();
        for (number, at) in numbers.iter().zip(0..) {
            let now = Time::from_millis(each_ms * at);
            if order.pass(*number) {
                out.push((0, *number));
                continue;
            }
            order.put(now, *number, *number);
            out.extend(core::iter::from_fn(|| order.take(now)));
        }
        out.extend(core::iter::from_fn(|| order.take_any()));
        out
    }

    #[test]
    fn packets_wait_for_those_before_them_and_copies_are_left_out() {
        let whole = [(0, 65_534), (0, 65_535), (0, 0), (0, 1), (0, 2)];
        assert_eq!(taken(&[65_534, 65_535, 0, 1, 2], 1), whole);
        assert_eq!(taken(&[65_534, 1, 0, 65_535, 0, 2], 1), whole);
        assert_eq!(taken(&[65_534, 0, 1, 2], 1), [(0, 65_534), (1, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn what_comes_too_late_is_missing() {
        assert_eq!(taken(&[0, 2, 3, 4, 1, 5], 100), [(0, 0), (1, 2), (0, 3), (0, 4), (0, 5)]);
        assert_eq!(taken(&[0, 2, 1, 3], 100), [(0, 0), (0, 1), (0, 2), (0, 3)]);
    }
}
