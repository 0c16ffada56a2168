//! Offers of peers that send or receive by WebRTC (RFC 3264, RFC 9429), as far as a relay has to understand them.

use core::fmt;

use outflow_media::format::{Codec, ExtensionMap};
use sdp_types::{Attribute, Media};

use super::codec::codec;
use super::parse::{attribute, encoding, extensions, needed_lines, of_payload_type};
use crate::flexfec;
use crate::limits::{
    OFFER_CREDENTIAL_MAX, OFFER_MEDIA_MAX, OFFER_PAYLOADS_MAX, OFFER_RIDS_MAX, OFFER_SOURCES_MAX,
    SDP_BYTES_MAX,
};

#[cfg(test)]
mod tests;

/// What a peer offers.
#[derive(Clone, PartialEq, Eq)]
pub struct Offer {
    /// `a=ice-ufrag`.
    pub ufrag: String,
    /// `a=ice-pwd`, a secret.
    pub password: String,
    /// Values of `a=fingerprint:sha-256`: of the certificates that the peer may have.
    pub fingerprints: Vec<String>,
    /// Which end begins with DTLS.
    pub setup: Setup,
    /// In their order. There is at least one.
    pub media: Vec<OfferedMedia>,
}

/// Which end begins with DTLS (RFC 4145, section 4; RFC 5763, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// The peer does.
    Active,
    /// The relay is to.
    Passive,
    /// The relay chooses.
    Either,
}

/// A section of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedMedia {
    /// `audio`, `video`, or another word.
    pub kind: String,
    /// `UDP/TLS/RTP/SAVPF`, or another word.
    pub protocol: String,
    /// What stands behind the protocol, which an answer repeats.
    pub formats: String,
    /// `a=mid`; empty if there is none.
    pub mid: String,
    /// It goes by the path that all have in common (RFC 9143), and has not been closed. Of an offer without a group
    /// that is the first.
    pub is_bundled: bool,
    /// What the peer wants to do.
    pub direction: Direction,
    /// Codecs, the preferred one first; those that repeat others stand at those.
    pub payloads: Vec<OfferedPayload>,
    /// Header extensions, of the session, too.
    pub extensions: Vec<ExtensionMap>,
    /// What is sent of one picture at several sizes, by `a=simulcast:send` and `a=rid` (RFC 8853); the first alternative
    /// of each.
    pub rids: Vec<String>,
    /// Sources that are named, each with the one that it is repeated by.
    pub sources: Vec<OfferedSource>,
    /// `a=extmap-allow-mixed`, of the session, too: header extensions of some packets may have longer elements than those
    /// of others (RFC 8285, section 6).
    pub mixes: bool,
    /// `a=rtcp-rsize`: RTCP may come in parts (RFC 5506).
    pub reduced_size: bool,
}

/// What an end does with a media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Sends, and receives.
    SendReceive,
    /// Sends.
    Send,
    /// Receives.
    Receive,
    /// Neither.
    Inactive,
}

/// A codec of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedPayload {
    /// The payload type, below 128.
    pub number: u8,
    /// The payload type by which packets of it are sent once more (RFC 4588).
    pub repair: Option<u8>,
    /// What it is.
    pub codec: Codec,
    /// As `a=rtpmap` has it.
    pub encoding: String,
    /// Ticks a second.
    pub clock_rate: u32,
    /// Of sound; 0 if that is not said.
    pub channels: u8,
    /// `a=fmtp`.
    pub fmtp: String,
    /// `a=rtcp-fb`: `nack`, `nack pli`, `transport-cc`.
    pub feedback: Vec<String>,
}

/// A source of an offer (RFC 5576).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferedSource {
    /// Its SSRC.
    pub ssrc: u32,
    /// That of its packets that are sent once more (`FID`).
    pub repair: Option<u32>,
}

/// Why an offer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// It is longer than [`SDP_BYTES_MAX`].
    #[error("the offer has {0} bytes, more than the {SDP_BYTES_MAX} that are read")]
    TooLong(usize),
    /// A line is not as RFC 8866 wants it.
    #[error("the offer cannot be read: {0}")]
    Syntax(String),
    /// Nothing is offered.
    #[error("the offer has no media (m=)")]
    NoMedia,
    /// It has more than [`OFFER_MEDIA_MAX`] media.
    #[error("the offer has more than {OFFER_MEDIA_MAX} media (m=)")]
    TooManyMedia,
    /// There is no way to find the peer.
    #[error("the offer has no a=ice-ufrag of 4 characters and a=ice-pwd of 22 characters at least")]
    NoCredentials,
    /// There is no way to know the peer.
    #[error("the offer has no a=fingerprint:sha-256")]
    NoFingerprint,
    /// Two ends that only answer never find each other.
    #[error("the offer says a=ice-lite, which the relay is itself")]
    Lite,
}

impl Offer {
    /// Reads an offer.
    ///
    /// What is not understood is passed over. All media are to go by one path: of what describes the path, the first is
    /// taken.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn parse(text: &[u8]) -> Result<Self, OfferError> {
        if text.len() > SDP_BYTES_MAX {
            return Err(OfferError::TooLong(text.len()));
        }
        let session = sdp_types::Session::parse(&needed_lines(text))
            .map_err(|error| OfferError::Syntax(error.to_string()))?;
        match session.medias.len() {
            0 => return Err(OfferError::NoMedia),
            1..=OFFER_MEDIA_MAX => {}
            _ => return Err(OfferError::TooManyMedia),
        }
        let all = || session.medias.iter().map(|media| &media.attributes).chain([&session.attributes]);
        if all().any(|attributes| has(attributes, "ice-lite")) {
            return Err(OfferError::Lite);
        }
        let first = |name| all().find_map(|attributes| attribute(attributes, name));
        let long = |name, least| {
            first(name).filter(|value: &&str| (least..=OFFER_CREDENTIAL_MAX).contains(&value.len()))
        };
        let (ufrag, password) = (long("ice-ufrag", 4), long("ice-pwd", 22));
        let (ufrag, password) = ufrag.zip(password).ok_or(OfferError::NoCredentials)?;
        let mut fingerprints: Vec<_> =
            all().flat_map(|attributes| fingerprints(attributes)).take(OFFER_SOURCES_MAX).collect();
        fingerprints.dedup();
        if fingerprints.is_empty() {
            return Err(OfferError::NoFingerprint);
        }
        let setup = match first("setup") {
            Some("active") => Setup::Active,
            Some("passive") => Setup::Passive,
            _ => Setup::Either,
        };
        let bundle = values(&session.attributes, "group").find_map(|value| value.strip_prefix("BUNDLE"));
        let bundle: Option<Vec<_>> = bundle.map(|mids| mids.split_whitespace().collect());
        // Without a group each has a path of its own, and the relay has one.
        let only = session.medias.iter().position(is_open);
        let is_bundled = |place, media: &Media| match &bundle {
            Some(mids) => is_open(media) && mids.contains(&mid(media)),
            None => only == Some(place),
        };
        let media = session.medias.iter().enumerate();
        let media = media.map(|(place, media)| offered(media, &session.attributes, is_bundled(place, media)));
        Ok(Offer {
            ufrag: ufrag.to_owned(),
            password: password.to_owned(),
            fingerprints,
            setup,
            media: media.collect(),
        })
    }
}

impl OfferedMedia {
    /// By what the peer takes [repair packets](crate::flexfec) of this media; none if it takes none.
    pub fn protection(&self) -> Option<&OfferedPayload> {
        let is_it = |payload: &&OfferedPayload| {
            payload.encoding.eq_ignore_ascii_case(flexfec::ENCODING)
                && payload.clock_rate == flexfec::CLOCK_RATE
        };
        self.payloads.iter().find(is_it)
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Offer { ufrag, fingerprints, setup, media, password: _ } = self;
        let mut shown = f.debug_struct("Offer");
        shown.field("ufrag", ufrag).field("fingerprints", fingerprints).field("setup", setup);
        shown.field("media", media).finish_non_exhaustive()
    }
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.attribute.eq_ignore_ascii_case(name))
}

/// All values of an attribute, trimmed.
fn values<'a>(attributes: &'a [Attribute], name: &'a str) -> impl Iterator<Item = &'a str> {
    let found = attributes.iter().filter(move |attribute| attribute.attribute.eq_ignore_ascii_case(name));
    found.filter_map(|attribute| attribute.value.as_deref()).map(str::trim)
}

fn fingerprints(attributes: &[Attribute]) -> impl Iterator<Item = String> {
    values(attributes, "fingerprint").filter_map(|value| {
        let (hash, fingerprint) = value.split_once(char::is_whitespace)?;
        hash.eq_ignore_ascii_case("sha-256").then(|| fingerprint.trim().to_owned())
    })
}

fn mid(media: &Media) -> &str {
    attribute(&media.attributes, "mid").unwrap_or("")
}

/// Whether it has not been closed.
fn is_open(media: &Media) -> bool {
    media.port != 0 || has(&media.attributes, "bundle-only")
}

fn offered(media: &Media, session: &[Attribute], is_bundled: bool) -> OfferedMedia {
    OfferedMedia {
        kind: media.media.clone(),
        protocol: media.proto.clone(),
        formats: media.fmt.clone(),
        mid: mid(media).to_owned(),
        is_bundled,
        direction: direction(&media.attributes).or(direction(session)).unwrap_or(Direction::SendReceive),
        payloads: payloads(media),
        extensions: extensions(&media.attributes, session),
        rids: rids(&media.attributes),
        sources: sources(&media.attributes),
        mixes: [&media.attributes, session].into_iter().any(|of| has(of, "extmap-allow-mixed")),
        reduced_size: has(&media.attributes, "rtcp-rsize"),
    }
}

fn direction(attributes: &[Attribute]) -> Option<Direction> {
    attributes.iter().find_map(|attribute| match attribute.attribute.as_str() {
        "sendrecv" => Some(Direction::SendReceive),
        "sendonly" => Some(Direction::Send),
        "recvonly" => Some(Direction::Receive),
        "inactive" => Some(Direction::Inactive),
        _ => None,
    })
}

fn payloads(media: &Media) -> Vec<OfferedPayload> {
    let is_video = media.media.eq_ignore_ascii_case("video");
    let mut payloads: Vec<OfferedPayload> = Vec::new();
    let mut repairs: Vec<(u8, u8)> = Vec::new();
    let numbers = media.fmt.split_whitespace().filter_map(|number| number.parse::<u8>().ok());
    for number in numbers.filter(|number| *number < 128).take(OFFER_PAYLOADS_MAX) {
        let map = of_payload_type(media, "rtpmap", number).and_then(encoding);
        let Some((encoding, Some(clock_rate), channels)) = map else { continue };
        let fmtp = of_payload_type(media, "fmtp", number).unwrap_or("");
        if encoding.eq_ignore_ascii_case("rtx") {
            let apt = fmtp.split(';').find_map(|part| part.trim().strip_prefix("apt="));
            repairs.extend(apt.and_then(|of| of.parse().ok()).map(|of| (of, number)));
            continue;
        }
        let feedback = values(&media.attributes, "rtcp-fb").filter_map(|value| {
            let (of, word) = value.split_once(char::is_whitespace)?;
            (of == "*" || of.parse() == Ok(number)).then(|| word.trim().to_owned())
        });
        payloads.push(OfferedPayload {
            number,
            repair: None,
            codec: codec(encoding, fmtp, is_video),
            encoding: encoding.to_owned(),
            clock_rate,
            channels,
            fmtp: fmtp.to_owned(),
            feedback: feedback.take(OFFER_PAYLOADS_MAX).collect(),
        });
    }
    for payload in &mut payloads {
        payload.repair = repairs.iter().find(|(of, _)| *of == payload.number).map(|(_, number)| *number);
    }
    payloads
}

/// `send 0;1,2;~3`, of those that `a=rid` names.
fn rids(attributes: &[Attribute]) -> Vec<String> {
    let mut words = attribute(attributes, "simulcast").unwrap_or("").split_whitespace();
    let sent = words.position(|word| word == "send").and_then(|_| words.next()).unwrap_or("");
    let first = |list: &'_ str| list.split(',').next().map(|rid| rid.trim_start_matches('~').to_owned());
    let named = |rid: &String| {
        values(attributes, "rid").any(|value| {
            let mut words = value.split_whitespace();
            words.next() == Some(rid) && words.next() == Some("send")
        })
    };
    sent.split(';').filter_map(first).filter(named).take(OFFER_RIDS_MAX).collect()
}

fn sources(attributes: &[Attribute]) -> Vec<OfferedSource> {
    let mut sources: Vec<OfferedSource> = Vec::new();
    let pairs = |word: &str| -> Vec<(u32, u32)> {
        let pairs = values(attributes, "ssrc-group").filter_map(|value| {
            let mut words = value.strip_prefix(word)?.split_whitespace().map(str::parse);
            Some((words.next()?.ok()?, words.next()?.ok()?))
        });
        pairs.take(OFFER_SOURCES_MAX).collect()
    };
    let (pairs, protections) = (pairs("FID"), pairs("FEC-FR"));
    let named = values(attributes, "ssrc").filter_map(|value| value.split_whitespace().next()?.parse().ok());
    for ssrc in named {
        let is_known = sources.iter().any(|source| source.ssrc == ssrc);
        let repairs = pairs.iter().chain(&protections).any(|(_, repair)| *repair == ssrc);
        if !is_known && !repairs && sources.len() < OFFER_SOURCES_MAX {
            let repair = pairs.iter().find(|(of, _)| *of == ssrc).map(|(_, repair)| *repair);
            sources.push(OfferedSource { ssrc, repair });
        }
    }
    sources
}
