//! A track as it goes to a viewer.

use arrayvec::ArrayVec;
use bytes::Bytes;
use outflow_engine::PacketHead;
use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_rtp::payload::Splitter;

use super::Undelivered;
use super::kept::Kept;
use super::media::{Elements, Head, Media, Read};
use super::numbers::Numbers;
use crate::limits::PAYLOAD_BYTES_MAX;
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
    /// The number of the next packet that is sent once more.
    next_repair: u32,
}

/// A packet that is to go.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) track: usize,
    pub(super) media: Media,
    /// It is sent once more, by this number.
    pub(super) repair: Option<u32>,
    /// The viewer is catching up: its picture is shown at once.
    pub(super) at_once: bool,
}

impl Track {
    /// One whose numbers begin where `random` says, with these parameter sets.
    pub(super) fn new(sending: Sending, sets: Option<Bytes>, random: u32) -> Self {
        let next_repair = 256 + (random >> 16 & 0x3fff);
        let (numbers, kept) = (Numbers::new(random), Kept::default());
        Track { sending, source: None, sets, key_at: None, numbers, kept, next_repair }
    }

    /// As it goes on in another process. Packets that could be sent once more stay here.
    pub(super) fn save(&self, number: u8) -> SavedTrack {
        let Sending { payload_type, ssrc, is_video, repair, elements, splitter } = self.sending;
        let (first, newest, given) = self.numbers.save();
        SavedTrack {
            number,
            payload_type,
            ssrc,
            is_video,
            repair,
            delay: elements.delay,
            transport: elements.transport,
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
        let SavedTrack { delay, transport, first, newest, given, source, key_at, next_repair, .. } = saved;
        let sending = Sending {
            payload_type: saved.payload_type,
            ssrc: saved.ssrc,
            is_video: saved.is_video,
            repair: saved.repair,
            elements: Elements { delay, transport },
            splitter: Splitter::restore(saved.splitter),
        };
        let sets = saved.sets.map(|sets| Bytes::from(Vec::from(sets)));
        let (numbers, kept) = (Numbers::resume((first, newest, given)), Kept::default());
        Track { sending, source, sets, key_at, numbers, kept, next_repair }
    }

    /// Takes a packet of the stream: as one, or as two if it is too long, behind parameter sets where a key frame begins.
    ///
    /// # Errors
    /// It does not go.
    pub(super) fn take(
        &mut self,
        packet: &Bytes,
        head: &PacketHead,
    ) -> Result<ArrayVec<Media, 3>, DropReason> {
        let Read { sequence, ssrc, timestamp, marker, payload } = Read::new(packet)?;
        self.source = Some(ssrc);
        let mut number = self.numbers.of(sequence).ok_or(DropReason::Late)?;
        let mut all = ArrayVec::new();
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
            all.push(Media { number, timestamp, marker: false, payload: sets });
            number = next;
        }
        if payload.len() <= PAYLOAD_BYTES_MAX {
            all.push(Media { number, timestamp, marker, payload });
            return Ok(all);
        }
        let halves = self.sending.splitter.split(&payload).ok_or(DropReason::Oversized)?;
        let other = self.numbers.another(sequence).ok_or(DropReason::Oversized)?;
        let [one, two] = halves.map(Bytes::from);
        all.push(Media { number, timestamp, marker: false, payload: one });
        all.push(Media { number: other, timestamp, marker, payload: two });
        Ok(all)
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
        packet: &Bytes,
        goes: impl FnOnce(u32) -> Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let Read { sequence, timestamp, .. } = Read::new(packet)?;
        goes(timestamp).inspect_err(|_| self.numbers.leave_out(sequence))
    }

    /// Parameter sets of a rendition, which hold from here on.
    ///
    /// # Errors
    /// It is no packet of RTP.
    pub(super) fn remember(&mut self, packet: &Bytes) -> Result<(), Undelivered> {
        let Read { payload, .. } = Read::new(packet).map_err(Undelivered::Dropped)?;
        self.sets = Some(payload);
        Ok(())
    }

    /// What stands in front of a packet, and how often numbers have come round.
    pub(super) fn head(&self, unsent: &Unsent) -> (Head, u32) {
        let Sending { payload_type, ssrc, repair, .. } = self.sending;
        let first = unsent.media.number;
        let (number, original, (payload_type, ssrc)) = match unsent.repair.zip(repair) {
            Some((number, by)) => (number, Some(first as u16), by),
            None => (first, None, (payload_type, ssrc)),
        };
        let head = Head { payload_type, ssrc, sequence: number as u16, original, transport: None };
        (head, number >> 16)
    }

    /// A packet is sent: it is kept, if it can be sent once more.
    pub(super) fn sent(&mut self, now: Time, unsent: Unsent) {
        if unsent.repair.is_none() && self.sending.repair.is_some() {
            self.kept.add(now, unsent.media);
        }
    }

    /// A packet that the viewer lacks, and the number by which it is sent once more.
    pub(super) fn repeat(&mut self, now: Time, sequence: u16) -> Option<(Media, u32)> {
        let media = self.kept.again(now, sequence)?;
        Some((media, self.repair_number()))
    }

    /// A packet that the viewer has, and the number by which it is sent once more: for a probe.
    pub(super) fn filler(&mut self) -> Option<(Media, u32)> {
        let media = self.kept.large()?.clone();
        Some((media, self.repair_number()))
    }

    /// Bytes of the payload of a [`filler`](Self::filler); none if there is no packet.
    pub(super) fn filler_bytes(&self) -> Option<usize> {
        self.kept.large().map(|media| media.payload.len())
    }

    fn repair_number(&mut self) -> u32 {
        self.next_repair += 1;
        self.next_repair - 1
    }
}
