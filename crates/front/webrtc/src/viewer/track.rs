//! A track as it goes to a viewer.

use arrayvec::ArrayVec;
use bytes::Bytes;
use outflow_engine::{PacketHead, Recent};
use outflow_media::Time;
use outflow_media::importance::Importance;
use outflow_packet::DropReason;
use outflow_rtp::payload::Splitter;

use super::described::{Described, Frames};
use super::kept::{Kept, Origin, Part};
use super::media::{Elements, Head, Media, Read};
use super::numbers::Numbers;
use super::undelivered::Undelivered;
use crate::limits::{DESCRIPTOR_BYTES_SPARE, PAYLOAD_BYTES_MAX};
use crate::saved::SavedTrack;

/// How a track goes to a viewer, as was agreed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending {
    /// The payload type that the viewer has offered.
    pub(crate) payload_type: u8,
    /// What its packets are from: another number for each viewer.
    pub(crate) ssrc: u32,
    /// It is a picture: what the way carries is said of it.
    pub(crate) is_video: bool,
    /// By which packets are sent once more: payload type and SSRC.
    pub(crate) repair: Option<(u8, u32)>,
    pub(crate) elements: Elements,
    /// How packets go that are too long for the way.
    pub(crate) splitter: Splitter,
}

#[derive(Debug)]
pub(super) struct Track {
    /// The stream's number of it.
    pub(super) number: u8,
    pub(super) sending: Sending,
    /// What the stream's packets of it are from, once one has come.
    pub(super) source: Option<u32>,
    /// Parameter sets of the description, or of the rendition, as a payload: they stand in front of each key frame, as
    /// browsers know no others.
    sets: Option<Bytes>,
    /// When the newest key frame is shown that they were put in front of.
    key_at: Option<u32>,
    numbers: Numbers,
    kept: Kept,
    frames: Frames,
    /// The number of the next packet that is sent once more.
    next_repair: u32,
}

/// A packet that is to go.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) track: usize,
    pub(super) media: Media,
    pub(super) way: Sent,
    /// The viewer is catching up: its picture is shown at once.
    pub(super) at_once: bool,
}

/// For the first time, or not.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sent {
    /// It was made of this, and can be made once more.
    First(Origin),
    /// By this number.
    Again(u32),
}

impl Track {
    /// One whose numbers begin where `random` says, with these parameter sets.
    pub(super) fn new(number: u8, (sending, sets): (Sending, Option<Bytes>), random: u32) -> Self {
        let next_repair = 256 + (random >> 16 & 0x3fff);
        let (numbers, kept) = (Numbers::new(random), Kept::default());
        let frames = Frames::default();
        Track { number, sending, source: None, sets, key_at: None, numbers, kept, frames, next_repair }
    }

    /// As it goes on in another process. Packets that could be sent once more stay here.
    pub(super) fn save(&self) -> SavedTrack {
        let Sending { payload_type, ssrc, is_video, repair, elements, splitter } = self.sending;
        let (first, newest, given) = self.numbers.save();
        SavedTrack {
            number: self.number,
            payload_type,
            ssrc,
            is_video,
            repair,
            delay: elements.delay,
            transport: elements.transport,
            descriptor: elements.descriptor,
            frames: self.frames.save(),
            splitter: splitter.save(),
            source: self.source,
            sets: self.sets.as_deref().map(|sets| sets.to_vec().into()),
            key_at: self.key_at,
            first,
            newest,
            given,
            next_repair: self.next_repair,
        }
    }

    /// It goes on there.
    pub(super) fn resume(saved: SavedTrack) -> Self {
        let SavedTrack {
            number,
            delay,
            transport,
            descriptor,
            first,
            newest,
            given,
            source,
            key_at,
            next_repair,
            ..
        } = saved;
        let sending = Sending {
            payload_type: saved.payload_type,
            ssrc: saved.ssrc,
            is_video: saved.is_video,
            repair: saved.repair,
            elements: Elements { delay, transport, descriptor },
            splitter: Splitter::restore(saved.splitter),
        };
        let sets = saved.sets.map(|sets| Bytes::from(Vec::from(sets)));
        let (numbers, kept) = (Numbers::resume((first, newest, given)), Kept::default());
        let frames = Frames::resume(saved.frames);
        Track { number, sending, source, sets, key_at, numbers, kept, frames, next_repair }
    }

    /// Reads a packet of the stream.
    fn read(&self, packet: Bytes) -> Result<Read, DropReason> {
        Read::new(packet, self.sending.elements.descriptor.map(|(id, _)| id))
    }

    /// Takes a packet of the stream, which has this number among those that were given: as one, or as two if it is too
    /// long, behind parameter sets where a key frame begins. `ends`: nothing of its picture goes behind it.
    ///
    /// # Errors
    /// It does not go.
    pub(super) fn take(
        &mut self,
        (packet, given): (Bytes, u32),
        head: &PacketHead,
        ends: bool,
    ) -> Result<ArrayVec<(Media, Sent), 3>, DropReason> {
        let is_lowest = Importance::of_rank(head.worth.rank).layer() == 0;
        let of = |part| Sent::First(Origin { packet: given, part, ends, is_lowest });
        let Read { sequence, ssrc, timestamp, marker, payload, descriptor } = self.read(packet)?;
        let marker = marker || ends;
        self.source = Some(ssrc);
        let mut all = ArrayVec::new();
        let mut number = self.numbers.of(sequence).ok_or(DropReason::Late)?;
        let is_newest = self.numbers.is_newest(sequence);
        let described = descriptor.and_then(|value| self.frames.take(value, number, is_newest));
        if head.is_preamble {
            // They stand in front of this one already.
            (self.sets, self.key_at) = (Some(payload.clone()), Some(timestamp));
        }
        let is_key = head.worth.is_key();
        let begins = is_key && self.key_at != Some(timestamp);
        if is_key {
            self.key_at = Some(timestamp);
        }
        if let Some(sets) = self.sets.clone().filter(|_| begins)
            && let Some(next) = self.numbers.another(sequence)
        {
            let described = described.as_ref().map(Described::first_half);
            let media = Media { number, timestamp, marker: false, payload: sets, described };
            all.push((media, of(Part::Sets)));
            number = next;
        }
        let bytes = payload.len() + described.as_ref().map_or(0, Described::len);
        if payload.len() <= PAYLOAD_BYTES_MAX && bytes <= PAYLOAD_BYTES_MAX + DESCRIPTOR_BYTES_SPARE {
            all.push((Media { number, timestamp, marker, payload, described }, of(Part::Whole)));
            return Ok(all);
        }
        let halves = self.sending.splitter.split(&payload).ok_or(DropReason::Oversized)?;
        let other = self.numbers.another(sequence).ok_or(DropReason::Oversized)?;
        let [one, two] = halves.map(Bytes::from);
        let said = described.as_ref().map(Described::first_half);
        let first = Media { number, timestamp, marker: false, payload: one, described: said };
        let said = described.as_ref().map(Described::second_half);
        let second = Media { number: other, timestamp, marker, payload: two, described: said };
        all.extend([(first, of(Part::First)), (second, of(Part::Second))]);
        Ok(all)
    }

    /// The packet of this number once more, if what it was made of is still there.
    fn once_more(&self, recent: &Recent, (number, origin): (u32, Origin)) -> Option<Media> {
        let packet = recent.get(origin.packet)?.clone();
        let Read { timestamp, marker, payload, descriptor, .. } = self.read(packet).ok()?;
        let described = descriptor.and_then(|value| self.frames.again(value, number));
        let half = |second: bool| {
            let [one, two] = self.sending.splitter.split(&payload)?;
            Some(Bytes::from(if second { two } else { one }))
        };
        let (payload, is_last) = match origin.part {
            Part::Whole => (payload, true),
            Part::Sets => (self.sets.clone()?, false),
            Part::First => (half(false)?, false),
            Part::Second => (half(true)?, true),
        };
        let described = described.map(|whole| match origin.part {
            Part::Whole => whole,
            Part::Sets | Part::First => whole.first_half(),
            Part::Second => whole.second_half(),
        });
        let marker = (marker || origin.ends) && is_last;
        Some(Media { number, timestamp, marker, payload, described })
    }

    /// Whether the picture that is shown then is the newest key frame.
    pub(super) fn is_key(&self, timestamp: u32) -> bool {
        self.key_at == Some(timestamp)
    }

    /// Its own source, and the stream's, once a packet has come: what is said of it names them.
    pub(super) fn ends(&self) -> Option<(u32, u32)> {
        Some((self.sending.ssrc, self.source?))
    }

    /// Leaves a packet out, if one of its timestamp does not go: the viewer misses nothing.
    ///
    /// # Errors
    /// It is left out, for this reason.
    pub(super) fn leave_out(
        &mut self,
        packet: Bytes,
        goes: impl FnOnce(u32) -> Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let Read { sequence, timestamp, .. } = Read::new(packet, None)?;
        goes(timestamp).inspect_err(|_| self.numbers.leave_out(sequence))
    }

    /// Parameter sets of a rendition, which hold from here on.
    ///
    /// # Errors
    /// It is no packet of RTP.
    pub(super) fn remember(&mut self, packet: Bytes) -> Result<(), Undelivered> {
        let Read { payload, .. } = Read::new(packet, None).map_err(Undelivered::Dropped)?;
        self.sets = Some(payload);
        Ok(())
    }

    /// What stands in front of a packet, and how often numbers have come round.
    pub(super) fn head(&self, unsent: &Unsent) -> (Head, u32) {
        let Sending { payload_type, ssrc, repair, .. } = self.sending;
        let first = unsent.media.number;
        let (number, original, (payload_type, ssrc)) = match (unsent.way, repair) {
            (Sent::Again(number), Some(by)) => (number, Some(first as u16), by),
            _ => (first, None, (payload_type, ssrc)),
        };
        let head = Head { payload_type, ssrc, sequence: number as u16, original, transport: None };
        (head, number >> 16)
    }

    /// See [`Peer::warm`](outflow_engine::message::Peer::warm).
    pub(super) fn warm(&self) -> usize {
        self.kept.warm() ^ usize::from(self.sets.is_some()) ^ self.next_repair as usize
    }

    /// A packet is sent. It is known what it was made of, if it can be sent once more.
    pub(super) fn sent(&mut self, now: Time, unsent: &Unsent) {
        if let Sent::First(origin) = unsent.way
            && self.sending.repair.is_some()
        {
            self.kept.add(now, unsent.media.number, origin);
        }
    }

    /// A packet that the viewer lacks, unless it is on its way again.
    pub(super) fn missed(&self, now: Time, recent: &Recent, sequence: u16) -> Option<Media> {
        self.once_more(recent, self.kept.missed(now, sequence)?)
    }

    /// Whether all layers need a packet that the viewer lacks.
    pub(super) fn is_base(&self, sequence: u16) -> bool {
        self.kept.is_base(sequence)
    }

    /// It is sent once more, by the number that this answers.
    pub(super) fn repeat(&mut self, now: Time, number: u32) -> u32 {
        self.kept.again(now, number);
        self.repair_number()
    }

    /// A packet that the viewer has, the largest of the newest, and the number by which it is sent once more: for a probe.
    pub(super) fn filler(&mut self, recent: &Recent) -> Option<(Media, u32)> {
        let media = self.large(recent)?;
        Some((media, self.repair_number()))
    }

    /// Bytes of the payload of a [`filler`](Self::filler); none if there is no packet.
    pub(super) fn filler_bytes(&self, recent: &Recent) -> Option<usize> {
        self.large(recent).map(|media| media.payload.len())
    }

    fn large(&self, recent: &Recent) -> Option<Media> {
        let bytes = |origin: Origin| recent.get(origin.packet).map_or(0, Bytes::len);
        let whole = self.kept.newest().filter(|(_, origin)| origin.part == Part::Whole);
        self.once_more(recent, whole.max_by_key(|(_, origin)| bytes(*origin))?)
    }

    fn repair_number(&mut self) -> u32 {
        self.next_repair += 1;
        self.next_repair - 1
    }
}
