//! From text to tracks.

use std::net::IpAddr;

use outflow_media::format::{Codec, ExtensionKind, ExtensionMap, Track};
use sdp_types::{Attribute, Connection, Media};

use super::codec::{codec, static_type};
use super::{Description, LEVELS, MediaDescription, SdpError};
use crate::limits::{SDP_BYTES_MAX, SDP_TRACKS_MAX};

/// Reads a description.
///
/// Only what is needed is looked at, because devices write all else in their own ways: `v=`,
/// `s=`, `c=`, `m=` and `a=` lines. Media over other transports than RTP and SRTP with keys from
/// elsewhere are left out; of several payload types of a media, the first one is taken.
pub fn parse(text: &[u8]) -> Result<Description, SdpError> {
    if text.len() > SDP_BYTES_MAX {
        return Err(SdpError::TooLong(text.len()));
    }
    let session = sdp_types::Session::parse(&needed_lines(text))
        .map_err(|error| SdpError::Syntax(error.to_string()))?;
    let session_source = source_filter(&session.attributes);
    let session_address = session.connection.as_ref().and_then(address);
    let tracks = session.medias.iter().filter(|media| is_rtp(media)).filter_map(|media| {
        Some(MediaDescription {
            track: track(media, &session.attributes)?,
            control: attribute(&media.attributes, "control").map(str::to_owned),
            address: media.connections.first().map_or(session_address, address),
            port: media.port,
            source: source_filter(&media.attributes).or(session_source),
        })
    });
    let media: Vec<_> = tracks.take(SDP_TRACKS_MAX + 1).collect();
    match media.len() {
        0 => Err(SdpError::NoTracks),
        1..=SDP_TRACKS_MAX => Ok(Description {
            name: session.session_name.trim().to_owned(),
            control: attribute(&session.attributes, "control").map(str::to_owned),
            media,
            levels: session.medias.iter().find_map(levels),
        }),
        _ => Err(SdpError::TooManyTracks),
    }
}

/// The lines that are looked at; the parser would refuse the whole for a mistake in any other.
/// Lines without a version get one in front.
pub(super) fn needed_lines(text: &[u8]) -> Vec<u8> {
    let mut lines = b"v=0\r\n".to_vec();
    let mut named = false;
    for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let wanted = match line {
            [b's', b'=', ..] => !std::mem::replace(&mut named, true),
            [b'c' | b'm' | b'a', b'=', _, ..] => true,
            _ => false,
        };
        if wanted {
            // Bytes that are no UTF-8, as in names in other character sets, are replaced.
            lines.extend_from_slice(String::from_utf8_lossy(line).trim_end().as_bytes());
            lines.extend_from_slice(b"\r\n");
        }
    }
    lines
}

/// Digits only: a sign is none.
fn levels(media: &Media) -> Option<u8> {
    let value = attribute(&media.attributes, LEVELS).filter(|value| !value.starts_with('+'))?;
    value.parse().ok().filter(|levels| *levels > 0)
}

fn is_rtp(media: &Media) -> bool {
    let proto = media.proto.to_ascii_uppercase();
    proto == "RTP/AVP" || proto == "RTP/AVPF" || proto.starts_with("RTP/AVP/") || is_srtp(media)
}

/// Encrypted with keys that are not agreed on by the transport (RFC 3711, RFC 5124).
fn is_srtp(media: &Media) -> bool {
    ["RTP/SAVP", "RTP/SAVPF"].iter().any(|proto| media.proto.eq_ignore_ascii_case(proto))
}

/// The first value of an attribute, trimmed; none if it is empty.
pub(super) fn attribute<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|a| a.attribute.eq_ignore_ascii_case(name));
    found.and_then(|a| a.value.as_deref()).map(str::trim).filter(|value| !value.is_empty())
}

/// What an attribute says of a payload type: the rest behind its number.
pub(super) fn of_payload_type<'a>(media: &'a Media, name: &str, payload_type: u8) -> Option<&'a str> {
    let values = media.attributes.iter().filter(|a| a.attribute.eq_ignore_ascii_case(name));
    values
        .filter_map(|a| a.value.as_deref()?.trim().split_once(char::is_whitespace))
        .find(|(number, _)| number.parse() == Ok(payload_type))
        .map(|(_, rest)| rest.trim())
}

/// `NAME/RATE[/CHANNELS]`: the rate is none if it is not said, the channels are 0.
pub(super) fn encoding(map: &str) -> Option<(&str, Option<u32>, u8)> {
    let mut fields = map.split('/').map(str::trim);
    let name = fields.next().filter(|name| !name.is_empty())?;
    let rate = fields.next().and_then(|rate| rate.parse().ok()).filter(|rate| *rate > 0);
    Some((name, rate, fields.next().and_then(|channels| channels.parse().ok()).unwrap_or(0)))
}

fn track(media: &Media, session: &[Attribute]) -> Option<Track> {
    let payload_type: u8 = media.fmt.split_whitespace().next()?.parse().ok().filter(|pt| *pt < 128)?;
    let video = media.media.eq_ignore_ascii_case("video");
    let map = of_payload_type(media, "rtpmap", payload_type).unwrap_or("");
    let known = static_type(payload_type).map(|(name, rate, channels)| (name, Some(rate), channels));
    let (encoding, clock_rate, channels) = encoding(map).or(known).unwrap_or(("", None, 0));
    let fmtp = of_payload_type(media, "fmtp", payload_type).unwrap_or("");
    Some(Track {
        codec: if is_srtp(media) { Codec::Srtp { video } } else { codec(encoding, fmtp, video) },
        payload_type,
        // The rate of all video, and better than none.
        clock_rate: clock_rate.unwrap_or(90_000),
        channels,
        fmtp: fmtp.to_owned(),
        encoding: encoding.to_owned(),
        extensions: extensions(&media.attributes, session),
    })
}

/// The header extensions of a media: its own, and those of the session (RFC 8285 section 5). The first
/// of an identifier counts.
pub(super) fn extensions(media: &[Attribute], session: &[Attribute]) -> Vec<ExtensionMap> {
    let mut maps: Vec<ExtensionMap> = Vec::new();
    let attributes = media.iter().chain(session);
    for attribute in attributes.filter(|a| a.attribute.eq_ignore_ascii_case("extmap")) {
        let map = attribute.value.as_deref().and_then(extension);
        maps.extend(map.filter(|map| maps.iter().all(|known| known.id != map.id)));
    }
    maps
}

/// `ID[/DIRECTION] URI [ATTRIBUTES]`; identifiers above 255 are but offers (RFC 8285 section 7).
fn extension(value: &str) -> Option<ExtensionMap> {
    let mut words = value.trim().splitn(3, char::is_whitespace);
    let (id, uri) = (words.next()?, words.next()?);
    let (id, direction) = id.split_once('/').unwrap_or((id, ""));
    Some(ExtensionMap {
        id: id.parse().ok().filter(|id| *id > 0)?,
        kind: ExtensionKind::of(uri),
        direction: direction.to_owned(),
        attributes: words.next().unwrap_or("").trim().to_owned(),
    })
}

fn address(connection: &Connection) -> Option<IpAddr> {
    let text = connection.connection_address.split('/').next()?;
    text.trim().parse().ok().filter(|ip: &IpAddr| !ip.is_unspecified())
}

/// The source of `incl IN IP4 DESTINATION SOURCE…` (RFC 4570 section 3).
fn source_filter(attributes: &[Attribute]) -> Option<IpAddr> {
    let mut words = attribute(attributes, "source-filter")?.split_whitespace();
    words.next().filter(|mode| mode.eq_ignore_ascii_case("incl"))?;
    words.nth(3)?.parse().ok()
}
