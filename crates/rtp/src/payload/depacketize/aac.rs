//! Frames of AAC (RFC 3640 section 3).

use outflow_media::Malformed;
use outflow_media::codec::aac::AudioSpecificConfig;
use outflow_media::codec::bits::BitReader;

use super::arrived::Arrived;
use super::collect::Collector;
use super::unit::DepacketizedUnit;
use crate::limits::AAC_FRAMES_MAX;

/// Bits of the fields of AU headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    pub(super) size: u8,
    pub(super) index: u8,
    pub(super) index_delta: u8,
}

/// Takes frames out of packets, and collects those that are fragmented.
#[derive(Debug)]
pub(super) struct Frames {
    lengths: Lengths,
    /// Ticks of the RTP clock a frame.
    duration: u32,
    pub(super) collector: Collector,
}

/// The AU headers of a packet, read one by one.
struct Headers<'a> {
    bits: BitReader<'a>,
    count: usize,
    /// What stands behind them.
    data: &'a [u8],
}

impl Frames {
    pub(super) fn new(config: &[u8], clock_rate: u32, lengths: Lengths) -> Self {
        let duration = AudioSpecificConfig::parse(config).map_or(1024, |config| {
            let ticks = u64::from(config.frame_samples) * u64::from(clock_rate);
            u32::try_from(ticks / u64::from(config.frequency_hz)).unwrap_or(1024)
        });
        Frames { lengths, duration, collector: Collector::default() }
    }

    pub(super) fn packet(
        &mut self,
        arrived: &mut Arrived<'_>,
        tell: &mut dyn FnMut(DepacketizedUnit),
    ) -> Result<(), Malformed> {
        if !self.collector.goes_on(arrived) {
            self.collector.abandon(arrived.dropped);
        }
        let payload = arrived.payload.clone();
        if self.lengths.size == 0 {
            tell(arrived.whole(payload));
            return Ok(());
        }
        let mut headers = self.headers(&payload)?;
        if headers.count == 1 {
            let (size, _) = self.next(&mut headers, true)?;
            if size > headers.data.len() {
                self.fragment(size, headers.data, arrived, tell);
                return Ok(());
            }
            tell(arrived.whole(payload.slice_ref(&headers.data[..size])));
            return Ok(());
        }
        let (mut rest, mut position) = (headers.data, 0u32);
        for index in 0..headers.count {
            let (size, skipped) = self.next(&mut headers, index == 0)?;
            let (data, behind) = rest.split_at_checked(size).ok_or(bad("frame is longer than the packet"))?;
            rest = behind;
            position = if index == 0 { 0 } else { position.wrapping_add(skipped).wrapping_add(1) };
            let timestamp = arrived.timestamp.wrapping_add(position.wrapping_mul(self.duration));
            tell(DepacketizedUnit { timestamp, data: payload.slice_ref(data), key: true });
        }
        Ok(())
    }

    fn headers<'a>(&self, payload: &'a [u8]) -> Result<Headers<'a>, Malformed> {
        let &[high, low, ref rest @ ..] = payload else { return Err(bad("shorter than its header")) };
        let bits = usize::from(u16::from_be_bytes([high, low]));
        let (headers, data) =
            rest.split_at_checked(bits.div_ceil(8)).ok_or(bad("AU headers are longer than the packet"))?;
        let first = usize::from(self.lengths.size) + usize::from(self.lengths.index);
        let other = usize::from(self.lengths.size) + usize::from(self.lengths.index_delta);
        let count = bits.checked_sub(first).ok_or(bad("no AU header"))? / other + 1;
        if count > AAC_FRAMES_MAX {
            return Err(bad("more frames than a packet may hold"));
        }
        Ok(Headers { bits: BitReader::new(headers), count, data })
    }

    /// Size of the next frame, and how many are left out in front of it (interleaving).
    fn next(&self, headers: &mut Headers<'_>, first: bool) -> Result<(usize, u32), Malformed> {
        let index = if first { self.lengths.index } else { self.lengths.index_delta };
        let size = headers.bits.bits(self.lengths.size.into());
        let index = headers.bits.bits(index.into());
        size.zip(index)
            .and_then(|(size, index)| Some((usize::try_from(size).ok()?, index)))
            .ok_or(bad("AU header is cut off"))
    }

    fn fragment(
        &mut self,
        size: usize,
        data: &[u8],
        arrived: &mut Arrived<'_>,
        tell: &mut dyn FnMut(DepacketizedUnit),
    ) {
        if !self.collector.is_open_at(arrived.timestamp) {
            self.collector.begin(arrived.timestamp);
        }
        self.collector.push(data);
        if self.collector.len() < size && !arrived.marker {
            return;
        }
        if self.collector.len() != size {
            self.collector.spoil();
        }
        self.collector.tell(true, arrived.dropped, tell);
    }
}

fn bad(reason: &'static str) -> Malformed {
    Malformed { format: "AAC payload", offset: 0, reason }
}
