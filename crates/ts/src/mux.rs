//! Access units of several tracks into one transport stream.

mod parameters;
mod save;
mod stream;

use bytes::{Buf, Bytes, BytesMut};
use outflow_media::{AccessUnit, Malformed, Track};

pub use self::save::SavedMux;
use self::stream::Stream;
use super::DATAGRAM_BYTES;
use super::clock::{PTS_HZ, PTS_MODULUS, pcr_distance, pts_after, pts_distance, wrapped};
use super::packet::{Header, PACKET_BYTES};
use super::pes::PesHeader;
use super::psi::{PAT_PID, emit_packets, emit_pat, emit_pmt};
use crate::limits::MUX_TRACKS_MAX;

const PROGRAMME: u16 = 1;
const PMT_PID: u16 = 0x1000;
/// The PID of the first track; the others follow.
const FIRST_PID: u16 = 0x100;

/// PAT and PMT are repeated after this many ticks of 90 kHz: 100 ms (ETSI TR 101 290 asks for 500).
const TABLES_EVERY: i64 = PTS_HZ as i64 / 10;
/// The clock is sent with every frame, if this has passed: 10 ms.
const CLOCK_WITH_FRAMES: i64 = PTS_HZ as i64 / 100;
/// It is sent alone, between frames, after 40 ms (ISO/IEC 13818-1 section 2.7.2 asks for 100).
const CLOCK_ALONE: i64 = PTS_HZ as i64 / 25;
/// Time that goes back by more than a second does so because it began again.
const BACKWARDS: i64 = -(PTS_HZ as i64);

/// How far the clock is behind the decoding times, in ticks of 90 kHz: 200 ms. So much may tracks
/// be apart when they are pushed, and so long may a large frame take to arrive.
pub const CLOCK_DELAY: u64 = PTS_HZ / 5;

/// Memory is taken in blocks, so that small access units share them.
const BLOCK_BYTES: usize = 64 << 10;

/// None of the tracks can be carried in a transport stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "none of the tracks ({tracks}) can be carried in MPEG-TS; H.264, H.265, MPEG video, AAC, MPEG audio and Opus can"
)]
pub struct UnsupportedCodec {
    /// What the tracks are ([`Track::name`]).
    pub tracks: String,
}

/// Puts access units into transport stream packets.
///
/// There is one programme. PAT and PMT stand before every key frame, and at least every 100 ms;
/// the clock is on the PID of the first video, or else of the first track, [`CLOCK_DELAY`] behind
/// the decoding times (time stamps below that are fine: the clock wraps). Access unit delimiters
/// and parameter sets are added where H.264 and H.265 need them in a transport stream
/// (section 2.14).
#[derive(Debug)]
pub struct TsMux {
    /// By track; `None` for what is left out.
    streams: Vec<Option<Stream>>,
    /// The track whose packets carry the clock.
    clock_track: usize,
    has_video: bool,
    pat: Vec<u8>,
    pmt: Vec<u8>,
    version: u8,
    pat_continuity: u8,
    pmt_continuity: u8,
    tables_at: Option<u64>,
    clock_at: Option<u64>,
    /// PES header and what is inserted behind it, used again for every access unit.
    header: BytesMut,
    inserted: BytesMut,
}

impl TsMux {
    /// A transport stream of these tracks, without those that it cannot carry.
    ///
    /// # Errors
    /// It can carry none of them.
    pub fn new(tracks: &[Track]) -> Result<Self, UnsupportedCodec> {
        let mut pids = FIRST_PID..FIRST_PID + MUX_TRACKS_MAX as u16;
        let streams: Vec<_> = tracks.iter().map(|track| Stream::new(track, &mut pids)).collect();
        let carried = |(_, s): &(usize, &Option<Stream>)| s.is_some();
        let video = |(_, s): &(usize, &Option<Stream>)| s.as_ref().is_some_and(Stream::is_video);
        let video = streams.iter().enumerate().find(video);
        let Some((clock_track, _)) = video.or_else(|| streams.iter().enumerate().find(carried)) else {
            let names: Vec<_> = tracks.iter().map(Track::name).collect();
            return Err(UnsupportedCodec { tracks: names.join(", ") });
        };
        let mut mux = TsMux {
            has_video: video.is_some(),
            streams,
            clock_track,
            pat: emit_pat(1, 0, PROGRAMME, PMT_PID),
            pmt: Vec::new(),
            version: 0,
            pat_continuity: 0,
            pmt_continuity: 0,
            tables_at: None,
            clock_at: None,
            header: BytesMut::new(),
            inserted: BytesMut::new(),
        };
        mux.describe();
        Ok(mux)
    }

    /// Whether the track at this index is carried.
    pub fn carries(&self, track: usize) -> bool {
        self.streams.get(track).is_some_and(Option::is_some)
    }

    /// Adds the packets of an access unit to `out`. Those of a track that is not carried are
    /// passed over. Its track is the index among those given to [`TsMux::new`].
    ///
    /// # Errors
    /// The access unit is empty, is not what its codec says, or is too large to be carried.
    pub fn push(&mut self, unit: &AccessUnit, out: &mut TsOut) -> Result<(), Malformed> {
        let Some(Some(stream)) = self.streams.get_mut(unit.track) else { return Ok(()) };
        self.inserted.clear();
        let described = stream.stream_type();
        let lead = stream.prepare(unit, &mut self.inserted)?;
        let (lead, rest) = unit.data.split_at(lead);
        let bytes = unit.data.len() + self.inserted.len();
        self.header.clear();
        let length = if stream.is_video() { None } else { Some(bytes) };
        let (pts, dts) = (wrapped(unit.pts), wrapped(unit.dts));
        PesHeader::emit(stream.stream_id(), pts, dts, length, &mut self.header)?;
        if stream.stream_type() != described {
            self.version = (self.version + 1) & 0x1f;
            self.tables_at = None;
            self.describe();
        }
        out.make_room(bytes + self.header.len());
        self.tables(unit, out);
        let pcr = self.clock(unit, out);
        let (header, inserted) = (self.header.split(), self.inserted.split());
        let mut payload = (&header[..]).chain(lead).chain(&inserted[..]).chain(rest);
        self.packets(unit, pcr, &mut payload, out);
        // Their memory is free again.
        self.header = header;
        self.inserted = inserted;
        Ok(())
    }

    /// The packets of a PES packet.
    fn packets(
        &mut self,
        unit: &AccessUnit,
        pcr: Option<(u64, bool)>,
        payload: &mut impl Buf,
        out: &mut TsOut,
    ) {
        let main = unit.track == self.clock_track;
        let Some(Some(stream)) = self.streams.get_mut(unit.track) else { return };
        let mut header = Header {
            pid: stream.pid(),
            unit_start: true,
            random_access: unit.key && (main || stream.is_video()),
            discontinuity: pcr.is_some_and(|(_, restarts)| restarts),
            pcr: pcr.map(|(pcr, _)| pcr),
            ..Header::default()
        };
        while payload.has_remaining() {
            header.continuity = stream.next_continuity();
            header.emit(&mut out.packets, payload);
            header = Header { pid: header.pid, ..Header::default() };
        }
    }

    /// Sends PAT and PMT if it is time.
    fn tables(&mut self, unit: &AccessUnit, out: &mut TsOut) {
        let joint = unit.key && self.has_video && unit.track == self.clock_track;
        let dts = wrapped(unit.dts);
        if !joint && !passed(self.tables_at, dts, TABLES_EVERY) {
            return;
        }
        self.tables_at = Some(dts);
        emit_packets(&self.pat, PAT_PID, &mut self.pat_continuity, &mut out.packets);
        emit_packets(&self.pmt, PMT_PID, &mut self.pmt_continuity, &mut out.packets);
    }

    /// The clock that the unit's first packet is to carry, and whether it begins again with it. If
    /// the unit is of another track, sends it alone if it is time.
    fn clock(&mut self, unit: &AccessUnit, out: &mut TsOut) -> Option<(u64, bool)> {
        let main = unit.track == self.clock_track;
        let every = if main { CLOCK_WITH_FRAMES } else { CLOCK_ALONE };
        let dts = wrapped(unit.dts);
        if !passed(self.clock_at, dts, every) {
            return None;
        }
        let clock = |dts| pts_after(dts, PTS_MODULUS - CLOCK_DELAY) * 300;
        let pcr = clock(dts);
        let restarts = self.clock_at.is_some_and(|last| pcr_distance(clock(last), pcr) < 0);
        self.clock_at = Some(dts);
        if main {
            return Some((pcr, restarts));
        }
        if let Some(Some(stream)) = self.streams.get(self.clock_track) {
            let header = Header {
                pid: stream.pid(),
                continuity: stream.last_continuity(),
                discontinuity: restarts,
                pcr: Some(pcr),
                ..Header::default()
            };
            header.emit(&mut out.packets, &mut &[][..]);
        }
        None
    }

    /// Makes the PMT.
    fn describe(&mut self) {
        let carried = self.streams.iter().flatten();
        let streams: Vec<_> = carried.map(Stream::describe).collect();
        let clock =
            self.streams.get(self.clock_track).and_then(Option::as_ref).map_or(FIRST_PID, Stream::pid);
        // MUX_TRACKS_MAX sees to it that there is room.
        self.pmt = emit_pmt(PROGRAMME, self.version, clock, &streams).unwrap_or_default();
    }
}

/// Whether `ticks` have passed since `last`, or time began again.
fn passed(last: Option<u64>, now: u64, ticks: i64) -> bool {
    last.is_none_or(|last| {
        let since = pts_distance(last, now);
        since >= ticks || since < BACKWARDS
    })
}

/// The packets that [`TsMux`] made, to be taken as datagrams.
///
/// Taken after every access unit, so that none of them waits, and so that key frames begin
/// datagrams.
#[derive(Debug, Default)]
pub struct TsOut {
    packets: BytesMut,
}

impl TsOut {
    /// The next datagram of at most seven packets; `None` when all were taken.
    pub fn next_datagram(&mut self) -> Option<Bytes> {
        let bytes = self.packets.len().min(DATAGRAM_BYTES);
        (bytes > 0).then(|| self.packets.split_to(bytes).freeze())
    }

    /// Makes room for a PES packet of `bytes` bytes, with tables before it.
    fn make_room(&mut self, bytes: usize) {
        const BODY: usize = 176;
        let needed = (bytes / BODY + 16) * PACKET_BYTES;
        if self.packets.capacity() - self.packets.len() < needed {
            self.packets.reserve(needed.max(BLOCK_BYTES));
        }
    }
}

#[cfg(test)]
mod tests;
