//! Which bytes of a unit are there: one range mostly, so nothing is allocated for that one.

/// Parts of a unit, from byte to byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    /// Ascending and apart; the end does not belong to a range.
    parts: Vec<(u32, u32)>,
    /// What is there without a gap from the beginning.
    front: u32,
}

impl Ranges {
    /// Adds bytes. Answers how many of them were not there.
    pub(super) fn insert(&mut self, from: u32, to: u32) -> u32 {
        if to <= self.front {
            return 0;
        }
        if from <= self.front {
            return self.extend_front(to);
        }
        let first = self.parts.partition_point(|part| part.1 < from);
        let last = first + self.parts[first..].partition_point(|part| part.0 <= to);
        if first == last {
            self.parts.insert(first, (from, to));
            return to - from;
        }
        let there: u32 = self.parts[first..last].iter().map(|part| part.1 - part.0).sum();
        let joined = (self.parts[first].0.min(from), self.parts[last - 1].1.max(to));
        self.parts[first] = joined;
        self.parts.drain(first + 1..last);
        joined.1 - joined.0 - there
    }

    /// All of them, ascending and apart.
    pub(super) fn all(&self) -> Vec<(u32, u32)> {
        let front = (self.front > 0).then_some((0, self.front));
        front.into_iter().chain(self.parts.iter().copied()).collect()
    }

    /// Whether all of these bytes are there.
    pub(super) fn contains(&self, from: u32, to: u32) -> bool {
        to <= self.front || self.parts.iter().any(|part| part.0 <= from && to <= part.1)
    }

    /// Whether everything up to there is.
    pub(super) fn is_full(&self, bytes: u32) -> bool {
        self.front >= bytes
    }

    /// How many gaps there are, about.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    fn extend_front(&mut self, to: u32) -> u32 {
        let reached = self.parts.partition_point(|part| part.0 <= to);
        let there: u32 = self.parts[..reached].iter().map(|part| part.1 - part.0).sum();
        let end = self.parts[..reached].last().map_or(to, |part| part.1.max(to));
        self.parts.drain(..reached);
        let added = end - self.front - there;
        self.front = end;
        added
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_set_of_bytes(steps in prop::collection::vec((0..60_u32, 1..9_u32), 1..40)) {
            let (mut ranges, mut model) = (Ranges::default(), [false; 70]);
            for (from, count) in steps {
                let part = &mut model[from as usize..(from + count) as usize];
                let added = part.iter().filter(|is_there| !**is_there).count();
                part.fill(true);
                prop_assert_eq!(ranges.insert(from, from + count), added as u32);
                prop_assert!(ranges.contains(from, from + count));
                let front = model.iter().take_while(|is_there| **is_there).count() as u32;
                prop_assert!(ranges.is_full(front) && !ranges.is_full(front + 1));
                for at in 0..70 {
                    prop_assert_eq!(ranges.contains(at, at + 1), model[at as usize]);
                }
            }
        }
    }
}
