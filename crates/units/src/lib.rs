//! RTP tracks into one transport stream.

mod clock;
pub mod limits;
mod order;

use bytes::Bytes;
use outflow_media::codec::{h264, h265, sps};
use outflow_media::format::{Codec, Track};
use outflow_media::{Format, Time};
use outflow_rtp::RtpHeader;
use outflow_rtp::payload::depacketize::{DepacketizedUnit, Depacketizer, Dropped};
use outflow_ts::{AccessUnit, TsMux, TsOut, UnsupportedCodec};

use self::clock::Clocks;
use self::order::DecodeOrder;

/// Where time stamps begin again.
const PTS_MODULUS: i64 = 1 << 33;
/// Bytes of a key frame in which a sequence parameter set is looked for.
const LOOKED_AT: usize = 1024;
/// The reordering of video that does not say how far it goes: a pyramid of B frames.
const USUAL_DEPTH: u8 = 2;

/// Puts the access units of RTP tracks into transport stream packets.
///
/// Tracks that a transport stream cannot carry are passed over. The tracks' clocks are brought
/// together by their sender reports, and until those come by the arrival of their first packets.
/// Decoding times are worked out from the depth of reordering that the parameter sets tell, or
/// else from what is seen.
#[derive(Debug)]
pub struct RtpToTs {
    tracks: Vec<Option<Input>>,
    clocks: Clocks,
    mux: TsMux,
    made: TsOut,
    refused: u64,
}

/// One track that is carried.
#[derive(Debug)]
struct Input {
    depacketizer: Depacketizer,
    times: Times,
}

/// How the decoding times of a track come about.
#[derive(Debug)]
enum Times {
    /// Frames are decoded in the order in which they are presented.
    InOrder(Option<Last>),
    /// The depth of reordering is known beforehand.
    Ordered(DecodeOrder),
    /// It is told by parameter sets, which this reads.
    Told { order: DecodeOrder, depth_of: fn(&[u8]) -> Option<u8> },
}

/// The last unit of a track without reordering.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Its stamp, and the time that it got.
    stamp: i64,
    time: i64,
    /// How far units lie apart.
    apart: i64,
}

impl Last {
    /// The next unit. Where a sender report moves a track back, it gets there by units that lie half as
    /// far apart as usual: coarser clocks than this one still tell them from each other.
    fn next(last: Option<Last>, stamp: i64) -> Last {
        let Some(last) = last else { return Last { stamp, time: stamp, apart: 1 } };
        let apart = if stamp > last.stamp { stamp - last.stamp } else { last.apart };
        Last { stamp, time: stamp.max(last.time + (last.apart.min(apart) / 2).max(1)), apart }
    }
}

impl RtpToTs {
    /// A transport stream of these tracks.
    ///
    /// # Errors
    /// It can carry none of them.
    pub fn new(tracks: &[Track]) -> Result<Self, UnsupportedCodec> {
        let mux = TsMux::new(tracks)?;
        let main = usize::from(Format::Rtp(tracks.to_vec()).main_track());
        let input = |(index, track): (usize, &Track)| {
            let depacketizer = Depacketizer::new(track).filter(|_| mux.carries(index))?;
            Some(Input { depacketizer, times: Times::of(&track.codec) })
        };
        Ok(RtpToTs {
            tracks: tracks.iter().enumerate().map(input).collect(),
            clocks: Clocks::new(tracks.iter().map(|track| track.clock_rate), main),
            mux,
            made: TsOut::default(),
            refused: 0,
        })
    }

    /// Whether the track at this index is carried.
    pub fn carries(&self, track: usize) -> bool {
        self.tracks.get(track).is_some_and(Option::is_some)
    }

    /// Takes one RTP packet, header included, and gives the datagrams that it completes, each of
    /// one to seven transport stream packets.
    pub fn push(&mut self, track: u8, packet: &Bytes, arrived: Time, out: &mut impl FnMut(Bytes)) {
        let index = usize::from(track);
        let RtpToTs { tracks, clocks, mux, made, refused } = self;
        let Some(Some(input)) = tracks.get_mut(index) else { return };
        if !clocks.has_begun(index)
            && let Ok(header) = RtpHeader::new_checked(packet)
        {
            clocks.stamp(index, header.timestamp(), arrived);
        }
        let Input { depacketizer, times } = input;
        depacketizer.handle(packet.clone(), |unit| {
            let stamp = clocks.stamp(index, unit.timestamp, arrived);
            let (pts, dts) = times.next(&unit, stamp);
            let unit = AccessUnit {
                track: index,
                pts: wrapped(pts),
                dts: wrapped(dts),
                key: unit.key,
                data: &unit.data,
            };
            if mux.push(unit, made).is_err() {
                *refused += 1;
            }
            while let Some(datagram) = made.next_datagram() {
                out(datagram);
            }
        });
    }

    /// A sender report of a track came: the same moment as NTP time and as RTP timestamp. It is
    /// not believed if its timestamp is far from what arrives.
    pub fn sender_report(&mut self, track: u8, ntp: u64, rtp: u32, now: Time) {
        self.clocks.sender_report(usize::from(track), ntp, rtp, now);
    }

    /// What was dropped, of all tracks. Units that the transport stream cannot carry count as
    /// malformed.
    pub fn dropped(&self) -> Dropped {
        let begin = Dropped { malformed: self.refused, ..Dropped::default() };
        self.tracks.iter().flatten().fold(begin, |sum, input| {
            let dropped = input.depacketizer.dropped();
            Dropped {
                incomplete: sum.incomplete + dropped.incomplete,
                too_large: sum.too_large + dropped.too_large,
                late: sum.late + dropped.late,
                malformed: sum.malformed + dropped.malformed,
            }
        })
    }
}

impl Times {
    fn of(codec: &Codec) -> Self {
        let told = |sps: &Option<Bytes>, depth_of: fn(&[u8]) -> Option<u8>| {
            let depth = sps.as_deref().and_then(depth_of);
            Times::Told { order: DecodeOrder::new(depth.unwrap_or(0)), depth_of }
        };
        match codec {
            Codec::H264 { sps, .. } => told(sps, h264_depth),
            Codec::H265 { sps, .. } => told(sps, h265_depth),
            Codec::MpegVideo => Times::Ordered(DecodeOrder::new(1)),
            _ => Times::InOrder(None),
        }
    }

    /// Presentation and decoding time of a unit.
    fn next(&mut self, unit: &DepacketizedUnit, stamp: clock::Stamp) -> (i64, i64) {
        match self {
            Times::InOrder(last) => {
                let next = Last::next(*last, stamp.ticks);
                *last = Some(next);
                (next.time, next.time)
            }
            Times::Ordered(order) => ordered(order, stamp),
            Times::Told { order, depth_of } => {
                if unit.key {
                    order.raise(parameter_depth(&unit.data, *depth_of));
                }
                ordered(order, stamp)
            }
        }
    }
}

fn ordered(order: &mut DecodeOrder, stamp: clock::Stamp) -> (i64, i64) {
    if stamp.leapt {
        order.restart();
    }
    order.next(stamp.ticks)
}

fn h264_depth(unit: &[u8]) -> Option<u8> {
    unit.first().filter(|header| h264::is_sps(**header))?;
    Some(sps::h264_reorder(unit).unwrap_or(USUAL_DEPTH))
}

fn h265_depth(unit: &[u8]) -> Option<u8> {
    unit.first().filter(|header| h265::is_sps(**header))?;
    Some(sps::h265_reorder(unit).unwrap_or(USUAL_DEPTH))
}

/// The depth that the sequence parameter set in front of a key frame tells.
fn parameter_depth(data: &[u8], depth_of: fn(&[u8]) -> Option<u8>) -> u8 {
    let head = data.get(..LOOKED_AT).unwrap_or(data);
    let starts = head.windows(3).enumerate().filter(|(_, window)| *window == [0, 0, 1]);
    let mut depths = starts.filter_map(|(at, _)| depth_of(head.get(at + 3..)?));
    depths.next().unwrap_or(USUAL_DEPTH)
}

fn wrapped(ticks: i64) -> u64 {
    ticks.rem_euclid(PTS_MODULUS).unsigned_abs()
}

#[cfg(test)]
mod tests;
