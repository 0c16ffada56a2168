//! A transport stream in a file, as it is sent: datagrams of seven packets, when the programme's clock says.

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_ts::clock::{PCR_HZ, pcr_distance};
use outflow_ts::packet::{NULL_PID, PACKET_BYTES, Packet, SYNC};
use outflow_ts::{TsFramer, TsReader};

use super::classify::Class;
use super::error::CaptureError;
use super::flow::{CapturedFlow, CapturedPacket, FlowKind};
use super::tagging::Tagger;
use crate::limits::CLOCK_STEP_SECONDS_MAX;

/// Bytes of the headers of IPv4 and UDP.
const HEADER_BYTES: usize = 28;

/// A packet behind its time of arrival (M2TS, BDAV).
const TIMED_PACKET_BYTES: usize = 192;

/// Sync bytes in a row that show what a file is.
const SYNCS: usize = 4;

/// The one flow of the file.
pub(super) fn flow(bytes: &Bytes, name: String) -> Result<CapturedFlow, CaptureError> {
    let Some(bytes) = packets(bytes) else { return Err(CaptureError::UnknownFormat { name }) };
    let mut framer = TsFramer::default();
    framer.push(bytes);
    let datagrams: Vec<Bytes> = std::iter::from_fn(|| framer.next_datagram()).collect();
    let Some(clock) = Clock::of(&datagrams) else { return Err(CaptureError::NoClock { name }) };
    let (class, mut before) = (Class::Ts, 0);
    let mut tagger = Tagger::new(&class);
    let packets = datagrams.iter().map(|datagram| {
        let at = clock.at(before).saturating_sub(clock.at(0)).max(0).unsigned_abs();
        before += (datagram.len() / PACKET_BYTES) as u64;
        CapturedPacket {
            at: Time::from_nanos(u64::try_from(u128::from(at) * 1_000 / 27).unwrap_or(u64::MAX)),
            bytes: datagram.len() + HEADER_BYTES,
            tag: tagger.tag(&class, datagram),
        }
    });
    let packets = packets.collect();
    Ok(CapturedFlow {
        name,
        kind: FlowKind::Ts,
        carries: tagger.describe(&class),
        format: class.format(),
        packets,
        not_understood: tagger.not_understood,
        cut_off: 0,
    })
}

/// The bytes of the packets; `None` if there are none.
fn packets(bytes: &Bytes) -> Option<Bytes> {
    let is_spaced = |from: usize, bytes_each: usize| {
        let syncs = bytes.iter().skip(from).step_by(bytes_each).take(SYNCS);
        bytes.len() >= from + bytes_each * (SYNCS - 1) && syncs.filter(|byte| **byte == SYNC).count() == SYNCS
    };
    let ahead = TIMED_PACKET_BYTES - PACKET_BYTES;
    if is_spaced(ahead, TIMED_PACKET_BYTES) {
        let timed = bytes.chunks_exact(TIMED_PACKET_BYTES);
        return Some(
            timed.flat_map(|packet| packet.iter().skip(ahead)).copied().collect::<BytesMut>().freeze(),
        );
    }
    // A recording may begin in the middle of a packet.
    (0..PACKET_BYTES).any(|from| is_spaced(from, PACKET_BYTES)).then(|| bytes.clone())
}

/// When packets are due.
#[derive(Debug)]
struct Clock {
    /// The numbers of packets, and their times in ticks of 27 MHz; two at least, both going up.
    knots: Vec<(u64, u64)>,
}

impl Clock {
    /// By the clock references of the programme whose frames are told; `None` if there are less than two.
    fn of(datagrams: &[Bytes]) -> Option<Self> {
        let mut reader = TsReader::default();
        for datagram in datagrams {
            // What cannot be read says nothing of the time.
            let _ = reader.read(datagram);
        }
        let mut pid = reader.programme().map(|programme| programme.pcr_pid).filter(|pid| *pid != NULL_PID);
        let mut clock = Clock { knots: Vec::new() };
        let mut last = None;
        let packets = datagrams.iter().flat_map(|datagram| datagram.chunks_exact(PACKET_BYTES));
        for (index, packet) in (0_u64..).zip(packets) {
            let Ok(packet) = Packet::new_checked(packet) else { continue };
            let Some(pcr) = packet.adaptation().pcr().filter(|_| !packet.transport_error()) else { continue };
            if *pid.get_or_insert(packet.pid()) == packet.pid() {
                let breaks = packet.adaptation().discontinuity();
                clock.reference(
                    index,
                    last.replace(pcr).filter(|_| !breaks).map(|last| pcr_distance(last, pcr)),
                );
            }
        }
        (clock.knots.len() > 1).then_some(clock)
    }

    /// A packet has a clock reference, so much behind the last one, if that was of the same clock.
    fn reference(&mut self, index: u64, step: Option<i64>) {
        const STEP_MAX: u64 = CLOCK_STEP_SECONDS_MAX * PCR_HZ;
        let step = step.and_then(|step| u64::try_from(step).ok()).filter(|step| *step <= STEP_MAX);
        let next = match (self.knots.as_slice(), step) {
            ([.., last], Some(step)) => (index, last.1.saturating_add(step)),
            // It goes on at the rate that it had.
            ([.., before, last], None) => {
                let ticks = u128::from(last.1 - before.1) * u128::from(index - last.0);
                (index, last.1.saturating_add((ticks / u128::from(last.0 - before.0)) as u64))
            }
            (_, _) => {
                // No rate was known up to here: it is that behind it.
                self.knots.clear();
                (index, 0)
            }
        };
        self.knots.push(next);
    }

    /// When a packet is due: on a line between the references around it, or the two next to it.
    fn at(&self, index: u64) -> i64 {
        let behind = self.knots.partition_point(|(known, _)| *known <= index).clamp(1, self.knots.len() - 1);
        let [from, to] = [self.knots[behind - 1], self.knots[behind]];
        let part = i128::from(to.1 - from.1) * (i128::from(index) - i128::from(from.0));
        let at = i128::from(from.1) + part / i128::from(to.0 - from.0);
        i64::try_from(at).unwrap_or(i64::MAX)
    }
}
