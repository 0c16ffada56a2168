//! Which packets go down which way.

use std::sync::Arc;

use outflow_rtp::payload::PrioritiesRead;
use outflow_rtp::{HEADER, is_rtcp};

use super::closed::Closed;
use super::described::{Described, Reader};
use super::mark::Mark;
use crate::layers::{Level, MaxLayer};
use crate::limits::TRACKS_MAX;

/// The ways down of what one source sends to a group, and how far each of its tracks is there.
#[derive(Debug, Default)]
pub struct Ways {
    ways: Vec<Way>,
    described: Arc<Described>,
    /// Tracks that have said layers, the one that was last used last.
    pub(super) tracks: Vec<Track>,
}

/// A way down, by a number of the caller's.
#[derive(Debug, Clone, Copy)]
struct Way {
    to: u32,
    level: Level,
    /// What of a track goes there to begin with.
    begins: MaxLayer,
}

/// A track is known by its port and its source (SSRC).
#[derive(Debug)]
pub(super) struct Track {
    id: (u16, u32),
    /// What its packets are, if they do not say it.
    reader: Option<Box<Reader>>,
    /// In the order of the ways.
    states: Vec<State>,
}

/// How far a track is on a way.
#[derive(Debug, Clone, Copy)]
struct State {
    max_layer: MaxLayer,
    closed: Closed,
}

/// A packet as it goes down a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its sequence number there.
    pub sequence: u16,
    /// The RTP marker stands there where it did not: the picture ends here.
    pub ends: bool,
}

impl Sent {
    /// Whether that is not as the packet came.
    pub fn changes(self, packet: &[u8]) -> bool {
        let number = self.sequence.to_be_bytes();
        packet.get(2..4) != Some(&number) || self.ends && packet.get(1).is_some_and(|byte| byte & 0x80 == 0)
    }
}

impl State {
    fn judge(&mut self, level: Level, sequence: u16, mark: Option<Mark>) -> Option<Sent> {
        let Some(mark) = mark else {
            let sequence = self.closed.next(sequence, true)?;
            return Some(Sent { sequence, ends: false });
        };
        let tag = mark.tag();
        if self.closed.is_new(sequence) {
            let has = self.max_layer.grown(level, &tag);
            self.max_layer = has.from(level.of(mark.layers), &tag, mark.opens_all);
        }
        let sequence = self.closed.next(sequence, self.max_layer.takes(mark.layer))?;
        Some(Sent { sequence, ends: self.max_layer.is_up_to(mark.ends) })
    }
}

impl Ways {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ways.len()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        self.ways.iter().map(|way| way.to)
    }

    /// These are the ways from now on, with the level that is wanted there. One that was there goes on from what it
    /// has. Another one begins with the base, and more where that can be decoded; or with all, if that is what went
    /// there up to now.
    pub fn set(&mut self, wanted: impl IntoIterator<Item = (u32, Level)>, had_all: impl Fn(u32) -> bool) {
        let before = core::mem::take(&mut self.ways);
        let mut from = Vec::new();
        for (to, level) in wanted {
            let known = before.iter().position(|way| way.to == to);
            let begins = match known {
                Some(at) => before[at].begins,
                None if had_all(to) => MaxLayer::ALL,
                None => MaxLayer::up_to(0),
            };
            from.push(known);
            self.ways.push(Way { to, level, begins });
        }
        for track in &mut self.tracks {
            let states = from.iter().zip(&self.ways);
            let state = |(known, way): (&Option<usize>, &Way)| {
                known.map_or_else(|| State::begin(way), |at| track.states[at])
            };
            track.states = states.map(state).collect();
        }
    }

    /// Tracks that begin from now on are described by this.
    pub fn describe(&mut self, described: Arc<Described>) {
        self.described = described;
    }

    /// A track, by its port and its source, is this far on each way, as another filter says that had it up to now; on
    /// others it begins. If it is described, its packets of a payload type were read this far.
    pub fn resume(
        &mut self,
        id: (u16, u32),
        reading: Option<(u8, PrioritiesRead)>,
        state: impl Fn(u32) -> Option<(MaxLayer, Closed)>,
    ) {
        self.tracks.retain(|track| track.id != id);
        let resumed = |way: &Way| match state(way.to) {
            Some((max_layer, closed)) => State { max_layer, closed },
            None => State::begin(way),
        };
        let states = self.ways.iter().map(resumed).collect();
        let reader = reading.map(|(payload_type, read)| Box::new(Reader::resume(payload_type, read)));
        self.add(Track { id, reader, states });
    }

    /// Says to which ways a packet goes that is sent to this port, and what changes in it there: nothing if it says no
    /// layer, nor is of a track that does.
    pub fn judge(&mut self, port: u16, packet: &[u8], mut each: impl FnMut(u32, Option<Sent>)) {
        let Some(header) = packet.first_chunk::<HEADER>().filter(|_| !is_rtcp(packet)) else {
            return self.ways.iter().for_each(|way| each(way.to, None));
        };
        let mark = Mark::read(packet);
        let [_, _, high, low, _, _, _, _, ssrc @ ..] = *header;
        let id = (port, u32::from_be_bytes(ssrc));
        let at = self.tracks.iter().rposition(|track| track.id == id);
        let Some(at) = at.or_else(|| self.begin(id, packet[1] & 0x7f, mark)) else {
            return self.ways.iter().for_each(|way| each(way.to, None));
        };
        self.tracks[at..].rotate_left(1);
        let Some(track) = self.tracks.last_mut() else { return };
        let mark = mark.or_else(|| track.reader.as_mut()?.read(packet));
        for (way, state) in self.ways.iter().zip(&mut track.states) {
            if let Some(sent) = state.judge(way.level, u16::from_be_bytes([high, low]), mark) {
                each(way.to, Some(sent));
            }
        }
    }

    /// A track begins, if it is known what its packets are; in place of the one that was not used for longest where
    /// there are too many.
    fn begin(&mut self, id: (u16, u32), payload_type: u8, mark: Option<Mark>) -> Option<usize> {
        let reader = if mark.is_some() { None } else { Some(self.described.reader(id.0, payload_type)?) };
        self.add(Track { id, reader, states: self.ways.iter().map(State::begin).collect() });
        Some(self.tracks.len() - 1)
    }

    fn add(&mut self, track: Track) {
        if self.tracks.len() >= TRACKS_MAX {
            self.tracks.remove(0);
        }
        self.tracks.push(track);
    }
}

impl State {
    fn begin(way: &Way) -> Self {
        State { max_layer: way.begins, closed: Closed::default() }
    }
}
