//! Answers to [offers](super::Offer) (RFC 3264, RFC 9429): all media by one path, at which the relay waits.

use core::fmt::Write as _;

use super::offer::{Direction, OfferedMedia, OfferedPayload};

/// What a relay answers.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    /// Of the session, below 2⁶³; the same in all answers of a session.
    pub id: u64,
    /// One more in each answer of a session.
    pub version: u64,
    /// `a=ice-ufrag` of the relay.
    pub ufrag: &'a str,
    /// `a=ice-pwd` of the relay.
    pub password: &'a str,
    /// Value of `a=fingerprint:sha-256` of the relay.
    pub fingerprint: &'a str,
    /// Whether the relay begins with DTLS: where the peer says that it is to.
    pub active: bool,
    /// Lines of `a=`: where the relay is.
    pub candidates: &'a [String],
    /// All media of the offer, in their order, each with what is accepted of it, if anything is: a codec at least.
    pub media: &'a [(&'a OfferedMedia, Option<Accepted<'a>>)],
}

/// What is accepted of a media.
#[derive(Debug, Clone)]
pub struct Accepted<'a> {
    /// What the relay does with it.
    pub direction: Direction,
    /// Codecs, the preferred one first.
    pub payloads: Vec<AcceptedPayload<'a>>,
    /// Header extensions: identifier and URI, as offered.
    pub extensions: Vec<(u8, &'a str)>,
    /// Sizes of a picture that are taken (`a=rid`).
    pub rids: Vec<&'a str>,
    /// What the relay sends by, if it does.
    pub source: Option<AcceptedSource<'a>>,
}

/// A codec that is accepted, by the number that it was offered with.
#[derive(Debug, Clone)]
pub struct AcceptedPayload<'a> {
    /// The payload type.
    pub number: u8,
    /// That of packets that are sent once more.
    pub repair: Option<u8>,
    /// As it was offered.
    pub encoding: &'a str,
    /// As it was offered.
    pub clock_rate: u32,
    /// As it was offered; 0 if that was not said.
    pub channels: u8,
    /// The relay's own; empty if there is nothing to say.
    pub fmtp: &'a str,
    /// What of the feedback that was offered is taken, or given.
    pub feedback: Vec<&'a str>,
}

/// A source of the relay's.
#[derive(Debug, Clone, Copy)]
pub struct AcceptedSource<'a> {
    /// Its SSRC.
    pub ssrc: u32,
    /// That of its packets that are sent once more.
    pub repair: Option<u32>,
    /// That of [repair packets](crate::flexfec) for it.
    pub protection: Option<u32>,
    /// The same for all sources that are played together (RFC 3550, section 6.5.1).
    pub cname: &'a str,
    /// What the peer's stream is called (RFC 8830).
    pub stream: &'a str,
    /// And its track.
    pub track: &'a str,
}

impl Answer<'_> {
    /// Writes it.
    pub fn emit(&self) -> String {
        let mut text = String::with_capacity(2048);
        let accepted =
            self.media.iter().filter(|(media, accepted)| accepted.is_some() && !media.mid.is_empty());
        let bundle: String = accepted.map(|(media, _)| format!(" {}", media.mid)).collect();
        let (id, version) = (self.id, self.version);
        line(&mut text, format_args!("v=0"));
        line(&mut text, format_args!("o=- {id} {version} IN IP4 0.0.0.0"));
        line(&mut text, format_args!("s=-"));
        line(&mut text, format_args!("t=0 0"));
        if !bundle.is_empty() {
            line(&mut text, format_args!("a=group:BUNDLE{bundle}"));
        }
        line(&mut text, format_args!("a=ice-lite"));
        let mut candidates = self.candidates;
        for (media, accepted) in self.media {
            match taken(accepted) {
                // Those of the first are those of all (RFC 9143, section 7.3).
                Some(accepted) => {
                    self.section(&mut text, media, accepted, core::mem::take(&mut candidates));
                }
                None => refused(&mut text, media),
            }
        }
        text
    }

    fn section(
        &self,
        text: &mut String,
        media: &OfferedMedia,
        accepted: &Accepted<'_>,
        candidates: &[String],
    ) {
        let numbers: String = accepted
            .payloads
            .iter()
            .flat_map(|payload| core::iter::once(payload.number).chain(payload.repair))
            .map(|number| format!(" {number}"))
            .collect();
        line(text, format_args!("m={} 9 {}{numbers}", media.kind, media.protocol));
        line(text, format_args!("c=IN IP4 0.0.0.0"));
        mid(text, media);
        line(text, format_args!("a={}", word(accepted.direction)));
        line(text, format_args!("a=ice-ufrag:{}", self.ufrag));
        line(text, format_args!("a=ice-pwd:{}", self.password));
        line(text, format_args!("a=fingerprint:sha-256 {}", self.fingerprint));
        line(text, format_args!("a=setup:{}", if self.active { "active" } else { "passive" }));
        for candidate in candidates {
            line(text, format_args!("a={candidate}"));
        }
        if !candidates.is_empty() {
            line(text, format_args!("a=end-of-candidates"));
        }
        line(text, format_args!("a=rtcp-mux"));
        if media.reduced_size {
            line(text, format_args!("a=rtcp-rsize"));
        }
        if media.mixes {
            line(text, format_args!("a=extmap-allow-mixed"));
        }
        accepted.payloads.iter().for_each(|of| payload(text, of));
        for (id, uri) in &accepted.extensions {
            line(text, format_args!("a=extmap:{id} {uri}"));
        }
        for rid in &accepted.rids {
            line(text, format_args!("a=rid:{rid} recv"));
        }
        if !accepted.rids.is_empty() {
            line(text, format_args!("a=simulcast:recv {}", accepted.rids.join(";")));
        }
        accepted.source.iter().for_each(|of| source(text, of));
    }
}

/// What is accepted, if there is a codec: without one a section cannot be written.
fn taken<'a, 'b>(accepted: &'b Option<Accepted<'a>>) -> Option<&'b Accepted<'a>> {
    accepted.as_ref().filter(|accepted| !accepted.payloads.is_empty())
}

/// A section that is not taken: one format has to stand there, whichever (RFC 3264, section 6). There are peers, pion
/// among them, that fail at one without its `a=rtpmap`.
fn refused(text: &mut String, media: &OfferedMedia) {
    let OfferedMedia { kind, protocol, formats, payloads, .. } = media;
    match payloads.first() {
        Some(first) => line(text, format_args!("m={kind} 0 {protocol} {}", first.number)),
        None => line(text, format_args!("m={kind} 0 {protocol} {formats}")),
    }
    line(text, format_args!("c=IN IP4 0.0.0.0"));
    mid(text, media);
    line(text, format_args!("a=inactive"));
    if let Some(OfferedPayload { number, encoding, clock_rate, channels, .. }) = payloads.first() {
        map(text, (*number, encoding, *clock_rate, *channels));
    }
}

/// A payload type, with its encoding, clock rate and channels.
fn map(text: &mut String, (number, encoding, clock_rate, channels): (u8, &str, u32, u8)) {
    match channels {
        0 => line(text, format_args!("a=rtpmap:{number} {encoding}/{clock_rate}")),
        _ => line(text, format_args!("a=rtpmap:{number} {encoding}/{clock_rate}/{channels}")),
    }
}

fn payload(text: &mut String, payload: &AcceptedPayload<'_>) {
    let AcceptedPayload { number, encoding, clock_rate, channels, fmtp, .. } = payload;
    map(text, (*number, encoding, *clock_rate, *channels));
    if !fmtp.is_empty() {
        line(text, format_args!("a=fmtp:{number} {fmtp}"));
    }
    for feedback in &payload.feedback {
        line(text, format_args!("a=rtcp-fb:{number} {feedback}"));
    }
    if let Some(repair) = payload.repair {
        line(text, format_args!("a=rtpmap:{repair} rtx/{clock_rate}"));
        line(text, format_args!("a=fmtp:{repair} apt={number}"));
    }
}

fn source(text: &mut String, source: &AcceptedSource<'_>) {
    let AcceptedSource { ssrc, repair, protection, cname, stream, track } = source;
    line(text, format_args!("a=msid:{stream} {track}"));
    if let Some(repair) = repair {
        line(text, format_args!("a=ssrc-group:FID {ssrc} {repair}"));
    }
    // RFC 5956, section 4.3.
    if let Some(protection) = protection {
        line(text, format_args!("a=ssrc-group:FEC-FR {ssrc} {protection}"));
    }
    for ssrc in core::iter::once(ssrc).chain(repair).chain(protection) {
        line(text, format_args!("a=ssrc:{ssrc} cname:{cname}"));
    }
}

fn mid(text: &mut String, media: &OfferedMedia) {
    if !media.mid.is_empty() {
        line(text, format_args!("a=mid:{}", media.mid));
    }
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::SendReceive => "sendrecv",
        Direction::Send => "sendonly",
        Direction::Receive => "recvonly",
        Direction::Inactive => "inactive",
    }
}

fn line(text: &mut String, line: core::fmt::Arguments<'_>) {
    let _ = write!(text, "{line}\r\n");
}
