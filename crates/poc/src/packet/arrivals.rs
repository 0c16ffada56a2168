//! When packets arrived, in ticks of 1/8 ms: what congestion control by delay needs.
//!
//! RFC 8888 has a time for each packet in units of 1/1024 s, draft-smith-quic-receive-ts runs of differences.
//! Here, how many; of the newest its distance from the largest number, and its time since the receiver
//! began; of each one before it twice the difference of time, plus one if its number is not the one before,
//! and then the difference of numbers: 2·d down, or 2·d − 1 up. So an arrival takes a byte, if all is in
//! order and no pause is of 8 ms or more.

use core::fmt;
use core::time::Duration;

use outflow_media::Malformed;
use outflow_petri::leb128::{Reader, put};
use outflow_petri::limits::NUMBER_MAX;

use super::kind::FORMAT;
use crate::limits::ARRIVALS_MAX;

/// What times of arrival are counted in.
pub const TICK: Duration = Duration::from_micros(125);

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number.
    pub number: u64,
    /// When: ticks since the receiver began, rounded down.
    pub ticks: u64,
}

impl Arrival {
    /// When, since the receiver began.
    pub const fn time(&self) -> Duration {
        Duration::from_micros(self.ticks.saturating_mul(125))
    }
}

/// At most 64 arrivals, the newest first: of a list, or as they were read.
#[derive(Clone, Copy)]
pub struct Arrivals<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    /// In the order in which they came.
    Listed(&'a [Arrival]),
    /// What was read without errors, behind how many, and the largest number that is acknowledged with them.
    Read { bytes: &'a [u8], count: u32, largest: u64 },
}

impl<'a> Arrivals<'a> {
    /// None.
    pub const NONE: Arrivals<'static> = Arrivals(Source::Listed(&[]));

    /// The last ones of a list, up to 64. It must be in the order in which they came.
    pub fn new(arrivals: &'a [Arrival]) -> Self {
        debug_assert!(arrivals.is_sorted_by_key(|arrival| arrival.ticks));
        Arrivals(Source::Listed(arrivals)).newest(ARRIVALS_MAX)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self.0 {
            Source::Listed(arrivals) => arrivals.len(),
            Source::Read { count, .. } => count as usize,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest `count`, or all.
    pub fn newest(&self, count: usize) -> Self {
        let kept = self.len().min(count);
        Arrivals(match self.0 {
            Source::Listed(arrivals) => Source::Listed(&arrivals[arrivals.len() - kept..]),
            Source::Read { bytes, largest, .. } => Source::Read { bytes, count: kept as u32, largest },
        })
    }

    /// The arrivals, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = Arrival> + use<'a> {
        let (listed, read) = match self.0 {
            Source::Listed(arrivals) => (arrivals, None),
            Source::Read { bytes, count, largest } => {
                (&[][..], Some(Decoder::new(Reader::new(FORMAT, bytes), count, largest)))
            }
        };
        let read = read.into_iter().flatten().map_while(Result::ok);
        listed.iter().rev().copied().chain(read)
    }

    pub(super) fn parse(reader: &mut Reader<'a>, largest: u64) -> Result<Self, Malformed> {
        let count = reader.below(ARRIVALS_MAX + 1, "too many times of arrival")?;
        let at = reader.at();
        let mut decoder = Decoder::new(*reader, count, largest);
        for arrival in &mut decoder {
            arrival?;
        }
        *reader = decoder.reader;
        Ok(Arrivals(Source::Read { bytes: reader.since(at), count, largest }))
    }

    pub(super) fn emit(&self, largest: u64, out: &mut Vec<u8>) {
        put(out, self.len() as u64);
        let mut newer: Option<Arrival> = None;
        for arrival in self.iter() {
            let Some(last) = newer.replace(arrival) else {
                put(out, largest.saturating_sub(arrival.number));
                put(out, arrival.ticks);
                continue;
            };
            let is_before = arrival.number.checked_add(1) == Some(last.number);
            put(out, 2 * last.ticks.saturating_sub(arrival.ticks) + u64::from(!is_before));
            if !is_before {
                put(
                    out,
                    match last.number.checked_sub(arrival.number) {
                        Some(down) => 2 * down,
                        None => 2 * (arrival.number - last.number) - 1,
                    },
                );
            }
        }
    }
}

/// Reads arrivals, up to the first error.
struct Decoder<'a> {
    reader: Reader<'a>,
    left: u32,
    largest: u64,
    newer: Option<Arrival>,
}

impl<'a> Decoder<'a> {
    fn new(reader: Reader<'a>, count: u32, largest: u64) -> Self {
        Decoder { reader, left: count, largest, newer: None }
    }

    fn read(&mut self) -> Result<Arrival, Malformed> {
        let first = self.reader.number()?;
        let (number, ticks) = match self.newer {
            None => (self.largest.checked_sub(first), Some(self.reader.number()?)),
            Some(newer) => {
                let number = if first % 2 == 0 {
                    newer.number.checked_sub(1)
                } else {
                    let distance = self.reader.number()?;
                    if distance % 2 == 0 {
                        newer.number.checked_sub(distance / 2)
                    } else {
                        newer.number.checked_add(distance / 2 + 1)
                    }
                };
                (number, newer.ticks.checked_sub(first / 2))
            }
        };
        let number = number.filter(|number| *number <= self.largest.min(NUMBER_MAX));
        let number = number.ok_or_else(|| self.reader.error("an arrival of no packet"))?;
        let ticks = ticks.ok_or_else(|| self.reader.error("an arrival before the beginning"))?;
        Ok(Arrival { number, ticks })
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<Arrival, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let arrival = self.read();
        self.newer = arrival.ok();
        if arrival.is_err() {
            self.left = 0;
        }
        Some(arrival)
    }
}

impl PartialEq for Arrivals<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Arrivals<'_> {}

impl fmt::Debug for Arrivals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
