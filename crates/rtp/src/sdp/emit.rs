//! From a format to text.

use std::net::IpAddr;

use sdp_types::{Attribute, Connection, Media, MediaType, Origin, TransportProto};

use outflow_media::format::{Codec, ExtensionMap, Format, Track};

/// The static payload type of a transport stream (RFC 3551 section 6).
const MP2T: u8 = 33;

/// What a description says besides the tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// Name of the session; an empty one is written as a dash.
    pub name: &'a str,
    /// Number that stays the same as long as the stream does.
    pub id: u64,
    /// Number that grows when the description changes.
    pub version: u64,
    /// Address of the machine that describes.
    pub origin: IpAddr,
    /// Where the media are sent; the unspecified address if that is agreed on elsewhere.
    pub destination: IpAddr,
    /// Time to live of an IPv4 multicast destination.
    pub ttl: Option<u8>,
    /// UDP ports of the tracks, in their order; those that are missing are 0.
    pub ports: &'a [u16],
    /// Write `a=control:` attributes, `*` for the session and `trackID=n` for track `n`, counted
    /// from 0 (RFC 2326 appendix C.1.1).
    pub controls: bool,
    /// How many quality levels the stream has; 0 if that is not to be said ([`super::LEVELS`]).
    pub levels: u8,
}

/// The description of a stream. A transport stream is one media, RTP payload type 33.
pub fn emit(format: &Format, session: &Session<'_>) -> String {
    let name = session.name.trim();
    let name = if name.is_empty() { "-" } else { name };
    let origin = Origin::with_ip_addr(session.id, session.version, session.origin);
    let mut description = sdp_types::Session::new(origin, name);
    let ttl = session.ttl.filter(|_| session.destination.is_multicast());
    description.connection = Some(Connection::from_ip_addr_ttl(session.destination, ttl));
    description.attributes.push(Attribute::with_value("tool", "outflow"));
    if session.controls {
        description.attributes.push(Attribute::with_value("control", "*"));
        description.attributes.push(Attribute::with_value("range", "npt=now-"));
    }
    description.medias = match format {
        Format::Ts => vec![transport_stream()],
        Format::Rtp(tracks) => tracks.iter().map(media).collect(),
        // No RTP payload: only receivers by plain UDP get it.
        Format::Images | Format::Data => Vec::new(),
    };
    if let Some(main) = description.medias.get_mut(usize::from(format.main_track()))
        && session.levels > 0
    {
        main.attributes.push(Attribute::with_value(super::LEVELS, session.levels.to_string()));
    }
    for (index, media) in description.medias.iter_mut().enumerate() {
        media.port = session.ports.get(index).copied().unwrap_or(0);
        if session.controls {
            media.attributes.push(Attribute::with_value("control", format!("trackID={index}")));
        }
    }
    let mut text = Vec::new();
    description.write(&mut text).expect("writing to memory does not fail");
    String::from_utf8_lossy(&text).into_owned()
}

fn transport_stream() -> Media {
    let mut media = Media::new(MediaType::Video, 0, TransportProto::RtpAvp, MP2T);
    media.attributes.push(Attribute::with_value("rtpmap", "33 MP2T/90000"));
    media
}

fn media(track: &Track) -> Media {
    let number = track.payload_type;
    let transport = match track.codec {
        Codec::Srtp { .. } => TransportProto::RtpSavp,
        _ => TransportProto::RtpAvp,
    };
    let mut media = Media::new(media_type(track), 0, transport, number);
    if !track.encoding.is_empty() {
        let channels = match track.channels {
            0 => String::new(),
            channels => format!("/{channels}"),
        };
        let map = format!("{number} {}/{}{channels}", track.encoding, track.clock_rate);
        media.attributes.push(Attribute::with_value("rtpmap", map));
    }
    if !track.fmtp.is_empty() {
        media.attributes.push(Attribute::with_value("fmtp", format!("{number} {}", track.fmtp)));
    }
    let maps = track.extensions.iter().map(|map| Attribute::with_value("extmap", extension(map)));
    media.attributes.extend(maps);
    if !track.extensions.is_empty() {
        // Both forms of elements may come: long ones need the longer form (RFC 8285 section 6).
        media.attributes.push(Attribute::new("extmap-allow-mixed"));
    }
    media
}

fn extension(map: &ExtensionMap) -> String {
    let ExtensionMap { id, kind, direction, attributes } = map;
    let slash = if direction.is_empty() { "" } else { "/" };
    format!("{id}{slash}{direction} {} {attributes}", kind.uri()).trim_end().to_owned()
}

/// Vendor formats, such as the metadata of cameras, are neither sound nor picture.
fn media_type(track: &Track) -> MediaType {
    let is_vendor = track.encoding.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("vnd."));
    match &track.codec {
        codec if codec.is_video() => MediaType::Video,
        Codec::Other { .. } if is_vendor => MediaType::Application,
        _ => MediaType::Audio,
    }
}
