//! Which packets arrived, and when, by numbers that all packets of a transport share:
//! draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.
//!
//! Messages are written by the library; they are read here: one of thirty bytes may say of 65,535 packets that they
//! are lost, and what is told of it has a bound ([`TRANSPORT_STATUSES_MAX`]).

use outflow_media::{Malformed, Time};
use rtcp_types::prelude::FciParser;
use rtcp_types::{
    Compound, FciFeedbackPacketType, Packet, RtcpParseError, TransportFeedback, Twcc, TwccPacketStatus,
};

use super::compound::{empty, written};
use super::malformed;
use crate::limits::{TRANSPORT_FEEDBACK_BYTES_MAX, TRANSPORT_STATUSES_MAX};

/// Microseconds of a tick of the reference time (section 3.1).
const REFERENCE_TICK_US: u64 = 64_000;
/// Microseconds of a tick of the times between packets (section 3.1.5).
const TICK_US: u64 = 250;
/// Bits of the reference time.
const REFERENCE_MASK: u64 = 0xff_ffff;
/// Bytes of a message of feedback before what is about transport: header, and two sources (RFC 4585, section 6.1).
const HEAD: usize = 12;

/// What became of the packets of a transport, as their receiver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feedback<'a> {
    from: u32,
    media: u32,
    first: u16,
    count: u16,
    reference: u32,
    number: u8,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

impl<'a> Feedback<'a> {
    /// Checks that there are a status and an arrival for all packets that it is about.
    fn new_checked(from: u32, media: u32, data: &'a [u8]) -> Result<Self, Malformed> {
        let wrong = |at: usize, reason| Malformed { format: "RTCP", offset: HEAD + at, reason };
        let Some(([f0, f1, c0, c1, r0, r1, r2, number], rest)) = data.split_first_chunk() else {
            return Err(wrong(data.len(), "shorter than feedback about a transport"));
        };
        let count = u16::from_be_bytes([*c0, *c1]);
        let (mut left, mut chunks, mut deltas) = (count, rest, 0);
        while left > 0 {
            let at = data.len() - chunks.len();
            let (word, behind) =
                chunks.split_first_chunk().ok_or(wrong(at, "packets that no chunk is about"))?;
            let chunk = Chunk::read(*word);
            let told = chunk.left.min(left);
            deltas += chunk.delta_bytes(told).ok_or(wrong(at, "a status that means nothing"))?;
            (left, chunks) = (left - told, behind);
        }
        let (chunks, behind) = rest.split_at(rest.len() - chunks.len());
        let deltas = behind.get(..deltas).ok_or(wrong(data.len(), "arrivals that are not there"))?;
        Ok(Feedback {
            from,
            media,
            first: u16::from_be_bytes([*f0, *f1]),
            count,
            reference: u32::from_be_bytes([0, *r0, *r1, *r2]),
            number: *number,
            chunks,
            deltas,
        })
    }

    /// The SSRC that says it.
    pub fn from(&self) -> u32 {
        self.from
    }

    /// A source of the transport; it means no more than that.
    pub fn media(&self) -> u32 {
        self.media
    }

    /// The number of the first packet that it is about.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// How many packets it is about.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// What arrivals are relative to, by the receiver's clock: 24 bits that wrap, in ticks of 64 ms.
    pub fn reference(&self) -> u32 {
        self.reference
    }

    /// The number of the message, which wraps: where one is missing, a message was lost.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The packets in the order of their numbers, with their arrival in microseconds since the reference time; lost
    /// ones have none. Of a message about more than [`TRANSPORT_STATUSES_MAX`] packets, runs of lost ones are passed
    /// over at the beginning.
    pub fn statuses(&self) -> Statuses<'a> {
        let Feedback { first, count, chunks, deltas, .. } = *self;
        Statuses { next: first, left: count, chunk: Chunk::NONE, chunks, deltas, at_us: 0 }
    }
}

/// The packets that a message is about.
#[derive(Debug, Clone)]
pub struct Statuses<'a> {
    next: u16,
    left: u16,
    chunk: Chunk,
    chunks: &'a [u8],
    deltas: &'a [u8],
    at_us: i64,
}

impl Statuses<'_> {
    /// Goes on with the next chunk; runs of lost packets count only among the newest.
    fn turn(&mut self) -> Option<()> {
        let (word, behind) = self.chunks.split_first_chunk()?;
        (self.chunk, self.chunks) = (Chunk::read(*word), behind);
        if self.chunk.is_lost() {
            let over = self.chunk.left.min(self.left.saturating_sub(TRANSPORT_STATUSES_MAX));
            self.chunk.left -= over;
            self.left -= over;
            self.next = self.next.wrapping_add(over);
        }
        Some(())
    }

    /// Takes the time since the arrival before, which stands in `bytes`.
    fn arrival(&mut self, bytes: usize) -> Option<i64> {
        let (delta, behind) = self.deltas.split_at_checked(bytes)?;
        self.deltas = behind;
        let ticks = match *delta {
            [small] => i64::from(small),
            [high, low] => i64::from(i16::from_be_bytes([high, low])),
            _ => return None,
        };
        self.at_us += ticks * TICK_US.cast_signed();
        Some(self.at_us)
    }
}

impl Iterator for Statuses<'_> {
    type Item = (u16, Option<i64>);

    fn next(&mut self) -> Option<(u16, Option<i64>)> {
        while self.left > 0 && self.chunk.left == 0 {
            self.turn()?;
        }
        self.left = self.left.checked_sub(1)?;
        let sequence = self.next;
        self.next = sequence.wrapping_add(1);
        match self.chunk.take() {
            0 => Some((sequence, None)),
            bytes => Some((sequence, Some(self.arrival(bytes.into())?))),
        }
    }
}

/// Statuses of packets in a row (sections 3.1.2 to 3.1.4). A status is how many bytes its arrival takes: none of a
/// lost packet, one or two of others; three mean nothing.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    /// The next one is in the highest bits.
    statuses: u16,
    /// Bits of each; none where all are alike.
    width: u16,
    left: u16,
}

impl Chunk {
    const NONE: Chunk = Chunk { statuses: 0, width: 0, left: 0 };

    fn read(word: [u8; 2]) -> Chunk {
        let word = u16::from_be_bytes(word);
        if word >> 15 == 0 {
            return Chunk { statuses: word << 1, width: 0, left: word & 0x1fff };
        }
        let width = 1 + (word >> 14 & 1);
        Chunk { statuses: word << 2, width, left: 14 / width }
    }

    /// Whether all are lost, as many as may be.
    fn is_lost(&self) -> bool {
        self.width == 0 && self.statuses >> 14 == 0
    }

    /// Takes the next status out.
    fn take(&mut self) -> u16 {
        let status = if self.width == 1 { self.statuses >> 15 } else { self.statuses >> 14 };
        self.statuses <<= self.width;
        self.left = self.left.saturating_sub(1);
        status
    }

    /// Bytes of the arrivals of the next `count` packets; none if a status means nothing.
    fn delta_bytes(mut self, count: u16) -> Option<usize> {
        if self.width == 0 {
            let status = self.take();
            return (status < 3 || count == 0).then_some(usize::from(status) * usize::from(count));
        }
        (0..count).try_fold(0, |bytes, _| {
            let status = self.take();
            (status < 3).then_some(bytes + usize::from(status))
        })
    }
}

/// The part of a message that is about transport.
struct Part<'a>(&'a [u8]);

impl<'a> FciParser<'a> for Part<'a> {
    const PACKET_TYPE: FciFeedbackPacketType = Twcc::PACKET_TYPE;
    const FCI_FORMAT: u8 = Twcc::FCI_FORMAT;

    fn parse(data: &'a [u8]) -> Result<Self, RtcpParseError> {
        Ok(Part(data))
    }
}

/// Reads a compound packet and tells each message about a transport in it, in its order. Packets of other types are
/// passed over. What was told before the first malformed packet holds.
pub fn read(data: &[u8], mut tell: impl FnMut(Feedback<'_>)) -> Result<(), Malformed> {
    for packet in Compound::parse(data).map_err(|e| malformed(&e))? {
        let Packet::TransportFeedback(feedback) = packet.map_err(|e| malformed(&e))? else { continue };
        let Ok(Part(part)) = feedback.parse_fci() else { continue };
        // The library leaves what fills it up.
        let filled = usize::from(feedback.padding().unwrap_or(0));
        let part = part.len().checked_sub(filled).and_then(|length| part.get(..length));
        let part = part.ok_or_else(|| malformed(&RtcpParseError::InvalidPadding))?;
        tell(Feedback::new_checked(feedback.sender_ssrc(), feedback.media_ssrc(), part)?);
    }
    Ok(())
}

/// Writes messages about a transport, each with the next number.
#[derive(Debug, Clone)]
pub struct Writer {
    ssrc: u32,
    media: u32,
    number: u8,
}

impl Writer {
    /// In the name of `ssrc`, about packets of a transport that has the source `media`.
    pub fn new(ssrc: u32, media: u32) -> Self {
        Writer { ssrc, media, number: 0 }
    }

    /// Tells compound packets that say when the packets from the number `first` on arrived; lost ones have no time.
    /// Of those that are lost behind the last arrival nothing is said: they may still come. A message goes on in
    /// another one where it would become longer than [`TRANSPORT_FEEDBACK_BYTES_MAX`], and where two arrivals lie
    /// further apart than it can say (8 s).
    pub fn write(
        &mut self,
        mut first: u16,
        mut arrivals: &[Option<Time>],
        cname: &str,
        mut tell: impl FnMut(Vec<u8>),
    ) {
        while let Some((reference, statuses)) = statuses(arrivals) {
            let most = Some(TRANSPORT_FEEDBACK_BYTES_MAX);
            let part = Twcc::builder(first, reference, self.number, &statuses, most);
            // It takes one at least; that it goes on must not depend on that.
            let count = part.packet_status_count().clamp(1, arrivals.len());
            let feedback =
                TransportFeedback::builder_owned(part).sender_ssrc(self.ssrc).media_ssrc(self.media);
            tell(written(empty(self.ssrc, cname).add_packet(feedback)));
            self.number = self.number.wrapping_add(1);
            first = first.wrapping_add(count as u16);
            arrivals = &arrivals[count..];
        }
    }
}

/// The reference time of a message about these packets, and as many statuses as one can say; nothing if none arrived.
fn statuses(arrivals: &[Option<Time>]) -> Option<(u32, Vec<TwccPacketStatus>)> {
    let began = arrivals.iter().flatten().next()?;
    let last = arrivals.iter().rposition(Option::is_some)?;
    let reference = began.as_micros() / REFERENCE_TICK_US;
    let mut before = reference * (REFERENCE_TICK_US / TICK_US);
    let mut statuses = Vec::with_capacity(last + 1);
    for arrival in &arrivals[..=last] {
        let Some(at) = arrival else {
            statuses.push(TwccPacketStatus::NotReceived);
            continue;
        };
        let tick = at.as_micros() / TICK_US;
        let Ok(delta) = i16::try_from(tick.cast_signed() - before.cast_signed()) else { break };
        statuses.push(TwccPacketStatus::Received { delta });
        before = tick;
    }
    Some(((reference & REFERENCE_MASK) as u32, statuses))
}

#[cfg(test)]
mod tests;
