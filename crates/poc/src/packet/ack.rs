//! What was received: packets, when, and how marked.

use core::time::Duration;

use outflow_media::Malformed;
use outflow_media::ecn::MarkCounts;
use outflow_petri::leb128::{Reader, put};

use super::{Arrivals, Spans};

/// An acknowledgement (compare RFC 9000 section 19.3): ranges, µs since the largest of them came, times of
/// arrival, and counts of marks if the frame is of the type that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Packets received, at least one. What was left out before may still be acknowledged later.
    pub packets: Spans<'a>,
    /// How long ago the largest of them was received.
    pub delay: Duration,
    /// When packets were received that were not told of before.
    pub arrivals: Arrivals<'a>,
    /// Marks since the beginning, if any packet had one.
    pub ecn: Option<MarkCounts>,
}

impl<'a> Ack<'a> {
    /// The largest packet number of it.
    pub fn largest(&self) -> u64 {
        self.packets.last().unwrap_or(0)
    }

    pub(super) fn parse(reader: &mut Reader<'a>, has_ecn: bool) -> Result<Self, Malformed> {
        let packets = Spans::parse(reader)?;
        let Some(largest) = packets.last() else {
            return Err(reader.error("an acknowledgement of nothing"));
        };
        let delay = Duration::from_micros(reader.number()?);
        let arrivals = Arrivals::parse(reader, largest)?;
        let mut ecn = None;
        if has_ecn {
            let (ect0, ect1, ce) = (reader.number()?, reader.number()?, reader.number()?);
            ecn = Some(MarkCounts { ect0, ect1, ce });
        }
        Ok(Ack { packets, delay, arrivals, ecn })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        self.packets.emit(out);
        put(out, u64::try_from(self.delay.as_micros()).unwrap_or(u64::MAX));
        self.arrivals.emit(self.largest(), out);
        if let Some(MarkCounts { ect0, ect1, ce }) = self.ecn {
            [ect0, ect1, ce].into_iter().for_each(|count| put(out, count));
        }
    }
}
