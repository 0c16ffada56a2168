//! Access units of H.264 and H.265, as byte streams (Annex B of both).

use bytes::{Bytes, BytesMut};
use outflow_media::Malformed;
use outflow_media::codec::{Unit, h264 as h264_codec, h265 as h265_codec};
use outflow_media::format::{Codec, Track};
use outflow_media::frames::Frames;
use outflow_media::limits::PARAMETER_SET_BYTES_MAX;

use super::super::reader::{Payload, classify};
use super::super::{Piece, h264, h265};
use super::arrived::Arrived;
use super::collect::Collector;
use super::unit::{DepacketizedUnit, Dropped};

const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// Collects NAL units.
#[derive(Debug)]
pub(super) struct NalUnits {
    payload: Payload,
    pub(super) collector: Collector,
    frames: Frames,
    /// The newest parameter sets, with start codes.
    sets: BytesMut,
    /// The current unit has a sequence parameter set of its own.
    has_sps: bool,
    /// A fragmented NAL unit has begun and not ended.
    in_fragment: bool,
}

impl NalUnits {
    /// Begins with the parameter sets of the description.
    pub(super) fn new(track: &Track) -> Self {
        let mut sets = BytesMut::new();
        let mut keep = |set: &Option<Bytes>| {
            for set in set.iter().filter(|set| set.len() <= PARAMETER_SET_BYTES_MAX / 4) {
                sets.extend_from_slice(&START_CODE);
                sets.extend_from_slice(set);
            }
        };
        match &track.codec {
            Codec::H264 { sps, pps } => [sps, pps].into_iter().for_each(&mut keep),
            Codec::H265 { vps, sps, pps } => [vps, sps, pps].into_iter().for_each(&mut keep),
            _ => {}
        }
        NalUnits {
            payload: Payload::of(track),
            collector: Collector::default(),
            frames: Frames::new(),
            sets,
            has_sps: false,
            in_fragment: false,
        }
    }

    pub(super) fn packet(
        &mut self,
        arrived: &mut Arrived<'_>,
        tell: &mut dyn FnMut(DepacketizedUnit),
    ) -> Result<(), Malformed> {
        if arrived.gap {
            self.in_fragment = false;
        }
        if !self.collector.goes_on(arrived) {
            self.finish(arrived.dropped, tell);
            self.begin(arrived.timestamp);
        }
        let payload = arrived.payload.clone();
        let taken = match self.payload {
            Payload::H265 { order_numbers } => h265::pieces(&payload, order_numbers, |p| self.piece(p)),
            _ => h264::pieces(&payload, |p| self.piece(p)),
        };
        // Some devices mark every parameter set.
        if arrived.marker && self.frames.is_known() {
            if taken.is_err() {
                self.collector.spoil();
            }
            self.finish(arrived.dropped, tell);
        }
        taken
    }

    /// Ends the current unit, and tells it if nothing of it is missing. Parameter sets without a
    /// picture are kept for the next one.
    pub(super) fn finish(&mut self, dropped: &mut Dropped, tell: &mut dyn FnMut(DepacketizedUnit)) {
        if self.in_fragment {
            self.collector.spoil();
            self.in_fragment = false;
        }
        let Some((timestamp, data)) = self.collector.finish(dropped) else { return };
        if !self.frames.is_known() {
            return;
        }
        let key = self.frames.current().key;
        let data = if key && !self.has_sps && !self.sets.is_empty() {
            Bytes::from([&self.sets[..], &data].concat())
        } else {
            data
        };
        tell(DepacketizedUnit { timestamp, data, key });
    }

    fn begin(&mut self, timestamp: u32) {
        self.collector.begin(timestamp);
        self.frames.begin(Some(timestamp));
        self.has_sps = false;
        self.in_fragment = false;
    }

    fn piece(&mut self, piece: Piece<'_>) {
        let (unit, starts) = classify(self.payload, piece);
        // The first slice that comes must be the first of its picture.
        if let Unit::Slice(slice) = unit
            && !self.frames.is_known()
            && !(starts && slice.starts_picture)
        {
            self.collector.spoil();
        }
        self.frames.unit(unit);
        match piece {
            Piece::Whole(bytes) => {
                self.end_fragment();
                match unit {
                    Unit::Delimiter => return,
                    Unit::Parameters { .. } => self.keep(bytes),
                    _ => {}
                }
                self.collector.push(&START_CODE);
                self.collector.push(bytes);
            }
            Piece::Fragment { header, data, first, last } => {
                if first {
                    self.end_fragment();
                    self.collector.push(&START_CODE);
                    self.collector.push(header.bytes());
                } else if !self.in_fragment {
                    self.collector.spoil();
                }
                self.collector.push(data);
                self.in_fragment = !last;
            }
        }
    }

    /// Another NAL unit begins: one that is still open lacks its end.
    fn end_fragment(&mut self) {
        if self.in_fragment {
            self.collector.spoil();
            self.in_fragment = false;
        }
    }

    fn keep(&mut self, set: &[u8]) {
        let header = set.first().copied().unwrap_or(0);
        let (starts_sets, is_sps) = match self.payload {
            Payload::H265 { .. } => (h265_codec::is_vps(header), h265_codec::is_sps(header)),
            _ => (h264_codec::is_sps(header), h264_codec::is_sps(header)),
        };
        // The first of the sets of a new access unit replaces those of earlier ones.
        if starts_sets && !self.has_sps {
            self.sets.clear();
        }
        self.has_sps |= is_sps;
        let known = self.sets.windows(set.len()).any(|window| window == set);
        if !known && self.sets.len() + START_CODE.len() + set.len() <= PARAMETER_SET_BYTES_MAX {
            self.sets.extend_from_slice(&START_CODE);
            self.sets.extend_from_slice(set);
        }
    }
}
