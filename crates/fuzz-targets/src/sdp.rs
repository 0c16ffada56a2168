//! Session descriptions.

use std::net::{IpAddr, Ipv4Addr};

use outflow_rtp::sdp;
use outflow_rtp::sdp::{Accepted, AcceptedPayload, Answer, Direction, Offer, Session};

/// What is read is written, and must be read again as the same tracks.
pub(crate) fn sdp(data: &[u8]) {
    let Ok(read) = sdp::parse(data) else { return };
    let session = Session {
        name: &read.name,
        id: 1,
        version: 1,
        origin: IpAddr::V4(Ipv4Addr::LOCALHOST),
        destination: read.media[0].address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        ttl: Some(1),
        ports: &[5004, 5006],
        controls: true,
        levels: read.levels.unwrap_or(0),
    };
    let format = read.format();
    let written = sdp::emit(&format, &session);
    let again = sdp::parse(written.as_bytes()).expect("what was written can be read");
    assert_eq!(again.format().tracks(), format.tracks(), "{written}");
    assert_eq!(again.levels, read.levels, "{written}");
}

/// An offer of WebRTC is read, all of it is accepted, and the answer is one.
pub(crate) fn offer(data: &[u8]) {
    let Ok(offer) = Offer::parse(data) else { return };
    let accepted = offer.media.iter().map(|media| {
        let payloads = media.payloads.iter().map(|payload| AcceptedPayload {
            number: payload.number,
            repair: payload.repair,
            encoding: &payload.encoding,
            clock_rate: payload.clock_rate,
            channels: payload.channels,
            fmtp: &payload.fmtp,
            feedback: payload.feedback.iter().map(String::as_str).collect(),
        });
        let accepted = Accepted {
            direction: Direction::SendReceive,
            payloads: payloads.collect(),
            extensions: media.extensions.iter().map(|map| (map.id, map.kind.uri())).collect(),
            rids: media.rids.iter().map(String::as_str).collect(),
            source: None,
        };
        (media, (media.is_bundled && !media.payloads.is_empty()).then_some(accepted))
    });
    let media: Vec<_> = accepted.collect();
    let answer = Answer {
        id: 1,
        version: 1,
        ufrag: &offer.ufrag,
        password: &offer.password,
        fingerprint: &offer.fingerprints[0],
        active: false,
        candidates: &[],
        media: &media,
    };
    // A peer that is no relay reads it like an offer.
    let text = answer.emit().replacen("a=ice-lite\r\n", "", 1);
    let is_any = media.iter().any(|(_, accepted)| accepted.is_some());
    let again = match Offer::parse(text.as_bytes()) {
        Ok(again) => again,
        Err(error) => return assert!(!is_any || text.len() > 60_000, "{error}: {text}"),
    };
    assert_eq!(again.media.len(), offer.media.len(), "{text}");
    for (again, (media, accepted)) in again.media.iter().zip(&media) {
        assert_eq!(again.is_bundled, accepted.is_some(), "{text}");
        if again.is_bundled {
            assert_eq!(again.payloads.len(), media.payloads.len(), "{text}");
        }
    }
}
