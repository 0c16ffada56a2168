//! Ranges of numbers: packets that were received, units that are given up.
//!
//! How many; of the first one its first number and how many numbers follow in it; of each further one the
//! numbers between the last one and it, and how many follow. The lowest come first.

use core::fmt;

use outflow_media::Malformed;
use outflow_petri::leb128::{Reader, put};
use outflow_petri::limits::NUMBER_MAX;

use super::kind::FORMAT;
use crate::limits::SPANS_MAX;

/// Numbers from the first to the last, both among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The lowest.
    pub first: u64,
    /// The highest, not lower than the first.
    pub last: u64,
}

impl Span {
    /// One number.
    pub const fn of(number: u64) -> Span {
        Span { first: number, last: number }
    }

    /// Whether a number is among them.
    pub const fn contains(&self, number: u64) -> bool {
        self.first <= number && number <= self.last
    }
}

/// At most 32 ranges, apart and in ascending order: of a list, or as they were read.
#[derive(Clone, Copy)]
pub struct Spans<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Listed(&'a [Span]),
    /// What was read without errors, how many, those in front that are left out, and the highest number.
    Read {
        bytes: &'a [u8],
        count: u32,
        skip: u32,
        last: u64,
    },
}

impl<'a> Spans<'a> {
    /// No range.
    pub const NONE: Spans<'static> = Spans(Source::Listed(&[]));

    /// The first ranges of a list, up to 32. They must be ascending and apart; adjoining ones are allowed.
    pub fn new(spans: &'a [Span]) -> Self {
        debug_assert!(spans.iter().all(|span| span.first <= span.last));
        debug_assert!(spans.is_sorted_by(|a, b| a.last < b.first));
        Spans(Source::Listed(&spans[..spans.len().min(SPANS_MAX)]))
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        match self.0 {
            Source::Listed(spans) => spans.len(),
            Source::Read { count, skip, .. } => (count - skip) as usize,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The highest number.
    pub fn last(&self) -> Option<u64> {
        match self.0 {
            Source::Listed(spans) => spans.last().map(|span| span.last),
            Source::Read { count, skip, last, .. } => (skip < count).then_some(last),
        }
    }

    /// The highest `count` ranges, or all.
    pub fn highest(&self, count: usize) -> Self {
        let less = self.len().saturating_sub(count);
        Spans(match self.0 {
            Source::Listed(spans) => Source::Listed(&spans[less..]),
            Source::Read { skip, bytes, count, last } => {
                Source::Read { skip: skip + less as u32, bytes, count, last }
            }
        })
    }

    /// The ranges, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = Span> + use<'a> {
        let (listed, read, skip) = match self.0 {
            Source::Listed(spans) => (spans, None, 0),
            Source::Read { bytes, count, skip, .. } => (&[][..], Some(Decoder::new(bytes, count)), skip),
        };
        listed.iter().copied().chain(read.into_iter().flatten().skip(skip as usize))
    }

    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let count = reader.below(SPANS_MAX + 1, "too many ranges")?;
        let (at, mut next) = (reader.at(), 0_u64);
        for _ in 0..count {
            let (skipped, more) = (reader.number()?, reader.number()?);
            let last = next.checked_add(skipped).and_then(|first| first.checked_add(more));
            next = match last.filter(|last| *last <= NUMBER_MAX) {
                Some(last) => last + 1,
                None => return Err(reader.error("a range that ends too high")),
            };
        }
        Ok(Spans(Source::Read { bytes: reader.since(at), count, skip: 0, last: next.saturating_sub(1) }))
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        put(out, self.len() as u64);
        let mut next = 0;
        for Span { first, last } in self.iter() {
            put(out, first.saturating_sub(next));
            put(out, last.saturating_sub(first));
            next = last.saturating_add(1);
        }
    }
}

/// Ranges from bytes that were read before.
struct Decoder<'a> {
    reader: Reader<'a>,
    left: u32,
    next: u64,
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8], count: u32) -> Self {
        Decoder { reader: Reader::new(FORMAT, bytes), left: count, next: 0 }
    }
}

impl Iterator for Decoder<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        self.left = self.left.checked_sub(1)?;
        let first = self.next + self.reader.number().ok()?;
        let last = first + self.reader.number().ok()?;
        self.next = last + 1;
        Some(Span { first, last })
    }
}

impl PartialEq for Spans<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Spans<'_> {}

impl fmt::Debug for Spans<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
