//! What the datagrams of a flow are, which a capture does not say.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use outflow_media::{Format, Track};
use outflow_packet::limits::TRACKS_MAX;
use outflow_rtp::sdp::MediaDescription;
use outflow_rtp::{RtpHeader, is_rtcp};
use outflow_ts::PACKET_BYTES;
use outflow_ts::packet::check_aligned;

use super::flow::FlowKind;
use super::gather::Recorded;
use super::guess;

/// Steps of one in the sequence numbers of a source, one behind the other, that show that they are some.
const STEPS_IN_SEQUENCE: u8 = 2;

/// Transport packets in all that show that the sync bytes are some.
const SYNCS_MIN: usize = 4;

/// Whose packets are a track: a source, and one of its payload types.
pub(super) type Origin = (u32, u8);

/// What a flow is.
#[derive(Debug)]
pub(super) enum Class {
    /// A transport stream.
    Ts,
    /// A transport stream in RTP.
    TsInRtp {
        /// Where its packets are from.
        origin: Origin,
        /// The session description says so.
        is_described: bool,
    },
    /// RTP.
    Rtp {
        /// By the place of the track.
        origins: Vec<Origin>,
        tracks: Vec<Track>,
        /// Some of them are as the session description says.
        is_described: bool,
    },
    /// Anything else.
    Data,
}

impl Class {
    /// What these are, which the session description says of media that they may be.
    pub(super) fn of(packets: &[Recorded<'_>], media: &[&MediaDescription]) -> Self {
        if is_ts(packets.iter().map(|packet| packet.payload)) {
            return Class::Ts;
        }
        let sources = Sources::of(packets, media);
        let is_described = |(_, payload_type): &Origin| describes(media, *payload_type).is_some();
        let mut origins = sources.origins;
        // Those that are described are tracks in any case.
        origins.sort_by_key(|origin| !is_described(origin));
        origins.truncate(TRACKS_MAX);
        let of =
            |origin: Origin| packets.iter().filter(move |packet| origin_of(packet.payload) == Some(origin));
        let carries_ts =
            |origin: &&Origin| is_ts(of(**origin).filter_map(|packet| rtp_payload(packet.payload)));
        if let Some(origin) = origins.iter().find(carries_ts) {
            return Class::TsInRtp { origin: *origin, is_described: is_described(origin) };
        }
        if origins.is_empty() {
            return Class::Data;
        }
        let track = |origin: &Origin| match describes(media, origin.1) {
            Some(media) => media.track.clone(),
            None => guess::track(origin.1, of(*origin)),
        };
        let tracks = origins.iter().map(track).collect();
        Class::Rtp { is_described: origins.iter().any(is_described), origins, tracks }
    }

    pub(super) const fn kind(&self) -> FlowKind {
        match self {
            Class::Ts | Class::TsInRtp { .. } => FlowKind::Ts,
            Class::Rtp { .. } => FlowKind::Rtp,
            Class::Data => FlowKind::Data,
        }
    }

    pub(super) fn format(&self) -> Option<Format> {
        match self {
            Class::Ts | Class::TsInRtp { .. } => Some(Format::Ts),
            Class::Rtp { tracks, .. } => Some(Format::Rtp(tracks.clone())),
            Class::Data => None,
        }
    }

    /// Whether packets of it can be read: of RTP, by a reader of its codec, or as sound.
    pub(super) fn is_known(&self) -> bool {
        match self {
            Class::Ts | Class::TsInRtp { .. } => true,
            Class::Rtp { tracks, is_described, .. } => *is_described || tracks.iter().any(guess::is_told),
            Class::Data => false,
        }
    }

    /// Whether it is what the session description says.
    pub(super) const fn is_described(&self) -> bool {
        matches!(self, Class::TsInRtp { is_described: true, .. } | Class::Rtp { is_described: true, .. })
    }

    /// The track of a packet, and what of it the track's reader reads; `None` if it is of none.
    pub(super) fn track<'a>(&self, payload: &'a [u8]) -> Option<(u8, &'a [u8])> {
        match self {
            Class::Ts => check_aligned(payload).ok().map(|()| (0, payload)),
            Class::TsInRtp { origin, .. } => {
                let carried = rtp_payload(payload)?;
                (origin_of(payload) == Some(*origin)).then_some((0, carried))
            }
            Class::Rtp { origins, .. } => {
                let origin = origin_of(payload)?;
                let track = origins.iter().position(|known| *known == origin)?;
                Some((u8::try_from(track).ok()?, payload))
            }
            Class::Data => None,
        }
    }
}

/// Whether packets of this media come from there to here. Those that were agreed on elsewhere (RTSP) may come
/// from anywhere.
pub(super) fn is_to(media: &MediaDescription, source: SocketAddr, destination: SocketAddr) -> bool {
    // An address that is no group is often the sender's own.
    let other_group = media.address.is_some_and(|ip| ip.is_multicast() && ip != destination.ip());
    let other_source = media.source.is_some_and(|ip| ip != source.ip());
    (media.port == 0 || media.port == destination.port()) && !other_group && !other_source
}

/// Whether the first datagram of a flow may be one of media.
pub(super) fn may_be_media(payload: &[u8]) -> bool {
    check_aligned(payload).is_ok() || is_rtcp(payload) || origin_of(payload).is_some()
}

fn describes<'a>(media: &[&'a MediaDescription], payload_type: u8) -> Option<&'a MediaDescription> {
    media.iter().copied().find(|media| media.track.payload_type == payload_type)
}

/// Where a packet is from if it is RTP, of which nothing but the header is looked at.
fn origin_of(payload: &[u8]) -> Option<Origin> {
    // The padding of an encrypted packet cannot be read.
    let header = RtpHeader::new_encrypted(payload).ok().filter(|_| !is_rtcp(payload))?;
    Some((header.ssrc(), header.payload_type()))
}

/// What a packet of RTP carries.
fn rtp_payload(packet: &[u8]) -> Option<&[u8]> {
    RtpHeader::new_checked(packet).ok().map(|header| header.payload())
}

/// Whether at least half of the datagrams are whole transport packets, and there are enough.
fn is_ts<'a>(payloads: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut all, mut aligned, mut packets) = (0_usize, 0_usize, 0_usize);
    for payload in payloads {
        all += 1;
        if check_aligned(payload).is_ok() {
            aligned += 1;
            packets += payload.len() / PACKET_BYTES;
        }
    }
    packets >= SYNCS_MIN && aligned >= all.div_ceil(2)
}

/// The sources of RTP in a flow.
#[derive(Debug, Default)]
struct Sources {
    /// By the first packet from there.
    origins: Vec<Origin>,
}

/// A source, by its packets.
#[derive(Debug)]
struct Source {
    last: u16,
    /// Steps of one up to the last packet.
    steps: u8,
    is_valid: bool,
    payload_types: u128,
}

impl Sources {
    /// Those whose packets come in sequence, or as they are described.
    fn of(packets: &[Recorded<'_>], media: &[&MediaDescription]) -> Self {
        let mut sources: BTreeMap<u32, Source> = BTreeMap::new();
        let mut seen: Vec<Origin> = Vec::new();
        for packet in packets {
            let Some((ssrc, payload_type)) = origin_of(packet.payload) else { continue };
            let Ok(header) = RtpHeader::new_encrypted(packet.payload) else { continue };
            let number = header.sequence();
            let source = sources.entry(ssrc).or_insert(Source {
                last: number,
                steps: 0,
                is_valid: false,
                payload_types: 0,
            });
            source.step(number);
            let bit = 1 << payload_type;
            if source.payload_types & bit == 0 {
                source.payload_types |= bit;
                source.is_valid |= describes(media, payload_type).is_some();
                seen.push((ssrc, payload_type));
            }
        }
        let is_valid = |(ssrc, _): &Origin| sources.get(ssrc).is_some_and(|source| source.is_valid);
        Sources { origins: seen.into_iter().filter(is_valid).collect() }
    }
}

impl Source {
    fn step(&mut self, number: u16) {
        match number.wrapping_sub(self.last) {
            // The same once more, as where a capture has a packet coming in and going out.
            0 => return,
            1 => self.steps = self.steps.saturating_add(1),
            _ => self.steps = 0,
        }
        self.last = number;
        self.is_valid |= self.steps >= STEPS_IN_SEQUENCE;
    }
}
