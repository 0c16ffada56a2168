//! Presentation and decoding times of a track's units.

use bytes::Bytes;
use outflow_media::Codec;
use outflow_media::codec::annex_b::Units;
use outflow_media::codec::{h264, h265, sps};
use outflow_rtp::payload::depacketize::DepacketizedUnit;

use crate::clock::Stamp;
use crate::order::DecodeOrder;

/// Bytes of a key frame in which a sequence parameter set is looked for.
const LOOKED_AT: usize = 1024;
/// The reordering of video that does not say how far it goes: a pyramid of B frames.
pub(super) const USUAL_DEPTH: u8 = 2;

/// How the decoding times of a track come about.
#[derive(Debug)]
pub(super) enum Times {
    /// Frames are decoded in the order in which they are presented.
    InOrder(Option<Last>),
    /// The depth of reordering is known beforehand.
    Ordered(DecodeOrder),
    /// It is told by parameter sets, which this reads.
    FromParameters { order: DecodeOrder, depth_of: fn(&[u8]) -> Option<u8> },
}

/// The last unit of a track without reordering.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
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

impl Times {
    pub(super) fn of(codec: &Codec) -> Self {
        let told = |sps: &Option<Bytes>, depth_of: fn(&[u8]) -> Option<u8>| {
            let depth = sps.as_deref().and_then(depth_of);
            Times::FromParameters { order: DecodeOrder::new(depth.unwrap_or(0)), depth_of }
        };
        match codec {
            Codec::H264 { sps, .. } => told(sps, h264_depth),
            Codec::H265 { sps, .. } => told(sps, h265_depth),
            Codec::MpegVideo => Times::Ordered(DecodeOrder::new(1)),
            _ => Times::InOrder(None),
        }
    }

    /// Presentation and decoding time of a unit.
    pub(super) fn next(&mut self, unit: &DepacketizedUnit, stamp: Stamp) -> (i64, i64) {
        match self {
            Times::InOrder(last) => {
                let next = Last::next(*last, stamp.ticks);
                *last = Some(next);
                (next.time, next.time)
            }
            Times::Ordered(order) => ordered(order, stamp),
            Times::FromParameters { order, depth_of } => {
                if unit.key {
                    order.raise(parameter_depth(&unit.data, *depth_of));
                }
                ordered(order, stamp)
            }
        }
    }
}

fn ordered(order: &mut DecodeOrder, stamp: Stamp) -> (i64, i64) {
    if stamp.leapt {
        order.restart();
    }
    order.next(stamp.ticks)
}

pub(super) fn h264_depth(unit: &[u8]) -> Option<u8> {
    unit.first().filter(|header| h264::is_sps(**header))?;
    Some(sps::h264_reorder(unit).unwrap_or(USUAL_DEPTH))
}

pub(super) fn h265_depth(unit: &[u8]) -> Option<u8> {
    unit.first().filter(|header| h265::is_sps(**header))?;
    Some(sps::h265_reorder(unit).unwrap_or(USUAL_DEPTH))
}

/// The depth that the sequence parameter set in front of a key frame tells.
pub(super) fn parameter_depth(data: &[u8], depth_of: fn(&[u8]) -> Option<u8>) -> u8 {
    let head = data.get(..LOOKED_AT).unwrap_or(data);
    Units::of(head).find_map(depth_of).unwrap_or(USUAL_DEPTH)
}
