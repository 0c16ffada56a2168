//! Elementary streams of a transport stream into access units.

use bytes::Bytes;
use outflow_media::codec::annex_b::Units;
use outflow_media::codec::{h264, h265, opus};
use outflow_media::frames::Frames;
use outflow_media::{AccessUnit, Time};
use outflow_rtp::payload::depacketize::Dropped;
use outflow_ts::clock::pts_distance;
use outflow_ts::{Coding, OpusPackets, Pes, PesDropped, TsDemux};

use crate::clock::{Clocks, START, TICKS};
use crate::framing::Framing;

/// Bytes of a NAL unit that say what it is.
const HEAD: usize = 64;

/// Puts the access units of chosen elementary streams together, with times that do not wrap.
///
/// A PES packet of video holds one access unit; one of sound any number of frames, those of AAC with their ADTS headers.
/// The time of the stream is taken as it is as long as it goes on; where it leaps by more than ten seconds from what
/// arrival says, it goes on from there.
#[derive(Debug)]
pub struct FromTs {
    demux: TsDemux,
    /// The one of the stream.
    clocks: Clocks,
    tracks: Vec<Track>,
    malformed: u64,
}

#[derive(Debug)]
struct Track {
    coding: Coding,
    holds: Holds,
    /// Something is missing in front of its next unit.
    is_behind_gap: bool,
    /// Presentation and decoding time of its last unit.
    last: Option<(i64, i64)>,
}

/// What PES packets hold.
#[derive(Debug)]
enum Holds {
    /// An access unit.
    Picture,
    /// Packets of Opus.
    Opus,
    /// Frames, wherever they are cut.
    Frames(Framing),
}

impl FromTs {
    /// Of the first elementary stream of each of these codings; they are the tracks of the units.
    pub fn new(chosen: impl IntoIterator<Item = Coding>) -> Self {
        let track = |coding| Track { coding, holds: Holds::of(coding), is_behind_gap: false, last: None };
        let tracks: Vec<_> = chosen.into_iter().map(track).collect();
        FromTs {
            demux: TsDemux::new(tracks.iter().map(|track| track.coding)),
            clocks: Clocks::new([TICKS as u32].into_iter(), 0),
            tracks,
            malformed: 0,
        }
    }

    /// The packets of the tables that hold for what comes next; nothing if they are known already.
    pub fn begin(&mut self, preamble: &[u8]) {
        self.demux.begin(preamble);
    }

    /// What comes next does not follow what came.
    pub fn break_off(&mut self) {
        self.demux.break_off();
        for track in &mut self.tracks {
            if let Holds::Frames(framing) = &mut track.holds {
                framing.break_off();
            }
        }
    }

    /// A moment, and the time of the timeline then; nothing before the first unit.
    pub fn clock(&self) -> Option<(Time, i64)> {
        Some((self.clocks.began()?, START))
    }

    /// Takes a datagram, and gives the units that are complete by it: whether something is missing in front of each.
    pub fn push(&mut self, datagram: &[u8], arrived: Time, out: &mut impl FnMut(AccessUnit, bool)) {
        let FromTs { demux, clocks, tracks, malformed } = self;
        demux.push(datagram, &mut |pes| {
            let Some(track) = tracks.get_mut(pes.stream) else { return };
            let Some((pts, dts)) = track.times(&pes, clocks, arrived) else { return *malformed += 1 };
            let unit = |pts, dts, key, data| AccessUnit { track: pes.stream, pts, dts, key, data };
            let Track { coding, holds, is_behind_gap, .. } = track;
            *is_behind_gap |= pes.is_behind_gap;
            let mut tell = |unit| out(unit, core::mem::take(is_behind_gap));
            let mut sound = |data, at| tell(unit(at, at, true, data));
            match holds {
                Holds::Picture => {
                    let key = is_key(*coding, &pes.data);
                    tell(unit(pts, dts, key, pes.data));
                }
                Holds::Opus => *malformed += u64::from(opus_packets(pes.data, pts, &mut sound)),
                Holds::Frames(framing) => {
                    if pes.is_behind_gap {
                        framing.break_off();
                    }
                    let told = pes.pts.map(|_| pts);
                    *malformed += u64::from(framing.push(pes.data, told, &mut sound));
                }
            }
        });
    }

    /// What was dropped; what holds no packets of its codec is malformed.
    pub fn dropped(&self) -> Dropped {
        let PesDropped { incomplete, too_large, malformed } = self.demux.dropped();
        Dropped { incomplete, too_large, late: 0, malformed: malformed + self.malformed }
    }
}

impl Track {
    /// Presentation and decoding time of what a PES packet holds; nothing of one that goes on with what was before the
    /// first.
    fn times(&mut self, pes: &Pes, clocks: &mut Clocks, arrived: Time) -> Option<(i64, i64)> {
        let Some(pts) = pes.pts else { return self.last };
        // The lower 32 bits are enough to count on.
        let stamp = clocks.stamp(0, pts as u32, arrived);
        let ahead = pes.dts.map_or(0, |dts| pts_distance(dts, pts).clamp(0, TICKS * 10));
        let grows = self.last.filter(|_| !stamp.leapt).map_or(i64::MIN, |(_, last)| last + 1);
        let dts = (stamp.ticks - ahead).max(grows);
        self.last = Some((stamp.ticks.max(dts), dts));
        self.last
    }
}

impl Holds {
    fn of(coding: Coding) -> Self {
        match coding {
            Coding::Audio("Opus") => Holds::Opus,
            Coding::Audio("AAC") => Holds::Frames(Framing::adts()),
            Coding::Audio("MPEG audio") => Holds::Frames(Framing::mpeg()),
            _ => Holds::Picture,
        }
    }
}

/// Gives the packets of Opus that a PES packet of this time holds. Returns whether something in it is none.
fn opus_packets(data: Bytes, pts: i64, out: &mut impl FnMut(Bytes, i64)) -> bool {
    let (mut packets, mut at) = (OpusPackets::of(data), pts);
    for packet in packets.by_ref() {
        let ticks = opus::samples(&packet).map_or(0, |samples| i64::from(samples) * TICKS / 48_000);
        out(packet, at);
        at += ticks;
    }
    packets.is_damaged()
}

/// Whether decoding can start at an access unit, by what stands in front of its first slice, and that.
fn is_key(coding: Coding, data: &Bytes) -> bool {
    let mut frames = Frames::new();
    for unit in Units::of(data) {
        let head = unit.get(..HEAD).unwrap_or(unit);
        frames.unit(match coding {
            Coding::H265 => h265::classify(head),
            _ => h264::classify(head),
        });
        if frames.is_known() {
            break;
        }
    }
    frames.current().key
}
