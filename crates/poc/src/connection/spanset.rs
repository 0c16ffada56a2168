//! A set of numbers as ranges: units that were lost, or given up.

use crate::packet::Span;

/// Ranges, ascending and apart. Most of what is added is near the end, and most of what is removed at the
/// beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SpanSet {
    spans: Vec<Span>,
}

impl SpanSet {
    /// Adds all numbers of a range.
    pub(super) fn insert(&mut self, span: Span) {
        // Ranges that adjoin become one.
        let from = self.spans.partition_point(|other| other.last.saturating_add(1) < span.first);
        let end = span.last.saturating_add(1);
        let to = from + self.spans[from..].partition_point(|other| other.first <= end);
        if from == to {
            self.spans.insert(from, span);
            return;
        }
        let (first, last) = (self.spans[from].first, self.spans[to - 1].last);
        self.spans[from] = Span { first: first.min(span.first), last: last.max(span.last) };
        self.spans.drain(from + 1..to);
    }

    /// Removes all numbers below this one.
    pub(super) fn remove_below(&mut self, end: u64) {
        let over = self.spans.partition_point(|span| span.last < end);
        self.spans.drain(..over);
        if let Some(first) = self.spans.first_mut() {
            first.first = first.first.max(end);
        }
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let at = self.spans.partition_point(|span| span.last < number);
        self.spans.get(at).is_some_and(|span| span.contains(number))
    }

    /// Takes out the first ranges, at most `count`, of numbers below `end`; one may be cut in two.
    pub(super) fn take(&mut self, count: usize, end: u64, taken: &mut Vec<Span>) {
        taken.clear();
        let whole = self.spans.partition_point(|span| span.last < end).min(count);
        taken.extend(self.spans.drain(..whole));
        if let Some(first) = self.spans.first_mut()
            && first.first < end
            && whole < count
        {
            taken.push(Span { first: first.first, last: end - 1 });
            first.first = end;
        }
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((0..3_u8, 0..60_u64, 0..6_u64), 1..60)) {
            let (mut set, mut model, mut taken) = (SpanSet::default(), BTreeSet::new(), Vec::new());
            for (what, number, more) in steps {
                match what {
                    0 => {
                        set.insert(Span { first: number, last: number + more });
                        model.extend(number..=number + more);
                    }
                    1 => {
                        set.remove_below(number / 2);
                        model.retain(|other| *other >= number / 2);
                    }
                    _ => {
                        set.take(more as usize, number, &mut taken);
                        for span in &taken {
                            for number in span.first..=span.last {
                                prop_assert_eq!(model.pop_first(), Some(number));
                            }
                        }
                        prop_assert!(taken.len() <= more as usize);
                        prop_assert!(taken.last().is_none_or(|span| span.last < number));
                    }
                }
                let all: Vec<_> = set.spans().iter().flat_map(|span| span.first..=span.last).collect();
                prop_assert!(all.iter().eq(&model));
                prop_assert!(set.spans().is_sorted_by(|a, b| a.last + 1 < b.first));
                prop_assert_eq!(set.is_empty(), model.is_empty());
                for number in 0..70 {
                    prop_assert_eq!(set.contains(number), model.contains(&number));
                }
            }
        }
    }
}
