//! A track as a publisher sends it.

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_rtp::rtcp::{ReportBlock, SenderReport};
use outflow_rtp::{Placement, Reception, RtpHeader};

use super::missing::Missing;

/// How a track comes, or a layer of one (simulcast), as was agreed on.
#[derive(Debug, Clone)]
pub(crate) struct Receiving {
    /// The number of the track.
    pub(crate) track: u8,
    /// Which layer of it, if it comes in several.
    pub(crate) layer: Option<Layer>,
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

/// A layer of a track: the same in one of several qualities (RFC 8853).
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    /// The number of the layer, as they were offered.
    pub(crate) number: u8,
    /// What its packets say that they are of, ...
    pub(crate) rid: String,
    /// ... in this header extension (RFC 8852), ...
    pub(crate) extension: u8,
    /// ... and in this one where they are sent once more.
    pub(crate) repaired: Option<u8>,
}

impl Layer {
    fn is_named(&self, header: &RtpHeader<'_>, extension: u8) -> bool {
        header.extension(extension).is_some_and(|rid| rid == self.rid.as_bytes())
    }
}

#[derive(Debug)]
pub(super) struct Arriving {
    receiving: Receiving,
    reception: Option<Reception>,
    missing: Missing,
    /// What packets that are sent once more are from, of a layer.
    repairs: Option<u32>,
}

impl Arriving {
    pub(super) fn new(receiving: Receiving) -> Self {
        Arriving { receiving, reception: None, missing: Missing::default(), repairs: None }
    }

    /// The track.
    pub(super) fn track(&self) -> u8 {
        self.receiving.track
    }

    /// The number of the layer, if it is one of several.
    pub(super) fn layer(&self) -> Option<u8> {
        self.receiving.layer.as_ref().map(|layer| layer.number)
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
        if kind == self.receiving.payload_type && self.is_of_layer(header) {
            // What has no payload only fills the way.
            (!header.payload().is_empty()).then_some(())?;
            self.note(now, header.ssrc(), (header.sequence(), header.timestamp()));
            return Some(Bytes::copy_from_slice(packet));
        }
        let repairs = Some(kind) == self.receiving.repair && self.repairs_layer(header);
        let source = self.source().filter(|_| repairs)?;
        let (original, payload) = header.payload().split_first_chunk::<2>()?;
        let mut whole = BytesMut::from(&packet[..header.payload_offset()]);
        whole.extend_from_slice(payload);
        // What filled the packet up is left out.
        whole[0] &= !0x20;
        outflow_rtp::set_payload_type(&mut whole, self.receiving.payload_type);
        outflow_rtp::set_sequence(&mut whole, u16::from_be_bytes(*original));
        outflow_rtp::set_ssrc(&mut whole, source);
        // Browsers fill their way up with packets that have come already.
        let was_missing = self.missing.came(u16::from_be_bytes(*original));
        (was_missing && !payload.is_empty()).then(|| whole.freeze())
    }

    /// Whether a packet is of this layer: those behind the first need not say so.
    fn is_of_layer(&self, header: &RtpHeader<'_>) -> bool {
        let Some(layer) = &self.receiving.layer else { return true };
        self.source() == Some(header.ssrc()) || layer.is_named(header, layer.extension)
    }

    /// Whether a packet that is sent once more is of this layer. It says so in an extension of its own (RFC 8852, section
    /// 3.2), or, as pion has it, where the packet itself did.
    fn repairs_layer(&mut self, header: &RtpHeader<'_>) -> bool {
        let Some(layer) = &self.receiving.layer else { return true };
        let mut places = layer.repaired.into_iter().chain([layer.extension]);
        if places.any(|extension| layer.is_named(header, extension)) {
            self.repairs = Some(header.ssrc());
        }
        self.repairs == Some(header.ssrc())
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
            Placement::Late => drop(self.missing.came(sequence)),
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
