//! A track as it goes to a viewer.

use arrayvec::ArrayVec;
use bytes::Bytes;
use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_rtp::payload::Splitter;

use super::kept::Kept;
use super::media::{Elements, Head, Media, Read};
use super::numbers::Numbers;
use crate::limits::PAYLOAD_BYTES_MAX;

/// How a track goes to a viewer, as was agreed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending {
    /// The payload type that the viewer has offered.
    pub(crate) payload_type: u8,
    /// What its packets are from: another number for each viewer.
    pub(crate) ssrc: u32,
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
    /// One whose numbers begin where `random` says.
    pub(super) fn new(sending: Sending, random: u32) -> Self {
        let next_repair = 256 + (random >> 16 & 0x3fff);
        Track { sending, source: None, numbers: Numbers::new(random), kept: Kept::default(), next_repair }
    }

    /// Takes a packet of the stream, as one, or as two if it is too long.
    ///
    /// # Errors
    /// It does not go.
    pub(super) fn take(&mut self, packet: &Bytes) -> Result<ArrayVec<Media, 2>, DropReason> {
        let Read { sequence, ssrc, timestamp, marker, payload } = Read::new(packet)?;
        self.source = Some(ssrc);
        let number = self.numbers.of(sequence).ok_or(DropReason::Late)?;
        if payload.len() <= PAYLOAD_BYTES_MAX {
            return Ok(ArrayVec::from_iter([Media { number, timestamp, marker, payload }]));
        }
        let halves = self.sending.splitter.split(&payload).ok_or(DropReason::Oversized)?;
        let other = self.numbers.another(sequence).ok_or(DropReason::Oversized)?;
        let [one, two] = halves.map(Bytes::from);
        Ok(ArrayVec::from([
            Media { number, timestamp, marker: false, payload: one },
            Media { number: other, timestamp, marker, payload: two },
        ]))
    }

    /// What stands in front of a packet, and how often numbers have come round.
    pub(super) fn head(&self, unsent: &Unsent) -> (Head, u32) {
        let Sending { payload_type, ssrc, repair, .. } = self.sending;
        let (number, first) = (unsent.media.number, unsent.media.number as u16);
        match unsent.repair.zip(repair) {
            Some((number, (payload_type, ssrc))) => {
                let head = Head { payload_type, ssrc, sequence: number as u16, original: Some(first) };
                (head, number >> 16)
            }
            None => (Head { payload_type, ssrc, sequence: first, original: None }, number >> 16),
        }
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
        let number = self.next_repair;
        self.next_repair += 1;
        Some((media, number))
    }
}
