//! A track as a publisher sends it.

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_rtp::rtcp::{ReportBlock, SenderReport};
use outflow_rtp::{Placement, Reception, RtpHeader};

use super::missing::Missing;

/// How a track comes, as was agreed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receiving {
    /// The payload type of its packets.
    pub(crate) payload_type: u8,
    /// That of packets that are sent once more; none if the publisher repeats the packets themselves.
    pub(crate) repair: Option<u8>,
    /// Whether it can be asked for packets once more.
    pub(crate) repeats: bool,
    /// The header extension with the number that a packet has among all of the transport, if it is told which came.
    pub(crate) transport: Option<u8>,
    pub(crate) clock_rate: u32,
}

#[derive(Debug)]
pub(super) struct Arriving {
    receiving: Receiving,
    reception: Option<Reception>,
    missing: Missing,
}

impl Arriving {
    pub(super) fn new(receiving: Receiving) -> Self {
        Arriving { receiving, reception: None, missing: Missing::default() }
    }

    /// What its packets are from, once one has come.
    pub(super) fn source(&self) -> Option<u32> {
        self.reception.as_ref().map(Reception::ssrc)
    }

    /// The number that a packet of this track has among all of the transport.
    pub(super) fn transport_number(&self, header: &RtpHeader<'_>) -> Option<u16> {
        let kind = header.payload_type();
        let is_own = kind == self.receiving.payload_type || Some(kind) == self.receiving.repair;
        let number = header.extension(self.receiving.transport.filter(|_| is_own)?)?;
        number.try_into().ok().map(u16::from_be_bytes)
    }

    /// Takes a packet, if it is of this track: as the stream gets it.
    pub(super) fn take(&mut self, now: Time, header: &RtpHeader<'_>, packet: &[u8]) -> Option<Bytes> {
        let kind = header.payload_type();
        if kind == self.receiving.payload_type {
            // What has no payload only fills the way.
            (!header.payload().is_empty()).then_some(())?;
            self.note(now, header.ssrc(), (header.sequence(), header.timestamp()));
            return Some(Bytes::copy_from_slice(packet));
        }
        let source = self.source().filter(|_| Some(kind) == self.receiving.repair)?;
        let (original, payload) = header.payload().split_first_chunk::<2>()?;
        let mut whole = BytesMut::from(&packet[..header.payload_offset()]);
        whole.extend_from_slice(payload);
        // What filled the packet up is left out.
        whole[0] &= !0x20;
        outflow_rtp::set_payload_type(&mut whole, self.receiving.payload_type);
        outflow_rtp::set_sequence(&mut whole, u16::from_be_bytes(*original));
        outflow_rtp::set_ssrc(&mut whole, source);
        self.missing.came(u16::from_be_bytes(*original));
        (!payload.is_empty()).then(|| whole.freeze())
    }

    fn note(&mut self, now: Time, ssrc: u32, (sequence, timestamp): (u16, u32)) {
        let clock_rate = self.receiving.clock_rate;
        if self.source() != Some(ssrc) {
            self.missing = Missing::default();
            self.reception = None;
        }
        let reception = self.reception.get_or_insert_with(|| Reception::new(ssrc, clock_rate));
        match reception.packet(sequence, timestamp, now) {
            Placement::Next { lost } if lost > 0 && self.receiving.repeats => {
                self.missing.add(now, sequence, lost)
            }
            Placement::Next { .. } | Placement::Stray => {}
            Placement::Late => self.missing.came(sequence),
            Placement::Restart => self.missing = Missing::default(),
        }
    }

    /// A sender report. Answers whether it is about this track.
    pub(super) fn hear(&mut self, now: Time, report: &SenderReport) -> bool {
        let own = self.reception.as_mut().filter(|reception| reception.ssrc() == report.ssrc);
        own.map(|reception| reception.sender_report(report.ntp, now)).is_some()
    }

    /// What has come of it.
    pub(super) fn report(&mut self, now: Time) -> Option<ReportBlock> {
        Some(self.reception.as_mut()?.report(now))
    }

    /// When packets are to be asked for.
    pub(super) fn due(&self) -> Option<Time> {
        self.missing.due()
    }

    /// The source, and what is to be asked of it now, if anything is.
    pub(super) fn ask(&mut self, now: Time) -> Option<(u32, Vec<u16>)> {
        let source = self.source()?;
        let numbers = self.missing.ask(now);
        (!numbers.is_empty()).then_some((source, numbers))
    }
}
