//! Offers as peers write them, and what is answered.

use proptest::prelude::*;

use super::*;
use crate::sdp::{Accepted, AcceptedPayload, AcceptedSource, Answer};

const PATH: &str = "a=ice-ufrag:4ZcD\r\na=ice-pwd:2/1muCWoOi3uLifh0NuRHlLo\r\na=ice-options:trickle\r\n\
    a=fingerprint:sha-256 AB:CD\r\na=setup:actpass\r\n";

/// A player in a browser.
fn player() -> String {
    format!(
        "v=0\r\no=- 8403615332048243445 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
         a=extmap-allow-mixed\r\na=msid-semantic: WMS\r\n\
         m=audio 9 UDP/TLS/RTP/SAVPF 111 9\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n\
         {PATH}a=mid:0\r\n\
         a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=recvonly\r\na=rtcp-mux\r\na=rtcp-rsize\r\n\
         a=rtpmap:111 opus/48000/2\r\na=rtcp-fb:111 transport-cc\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n\
         a=rtpmap:9 G722/8000\r\n\
         m=video 9 UDP/TLS/RTP/SAVPF 96 97 102 103\r\nc=IN IP4 0.0.0.0\r\n{PATH}a=mid:1\r\na=recvonly\r\n\
         a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
         a=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
         a=rtcp-fb:* transport-cc\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=rtpmap:102 H264/90000\r\n\
         a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r\n\
         a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\n"
    )
}

/// A publisher with three sizes of a picture, one of which has an alternative.
fn simulcast() -> String {
    format!(
        "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n{PATH}a=group:LS 0 1\r\na=group:BUNDLE 1\r\n\
         m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:96 H264/90000\r\n\
         a=rid:h send\r\na=rid:m send\r\na=rid:l send pt=96\r\na=rid:x recv\r\n\
         a=simulcast:send h;m,x;~l;x;z\r\n\
         a=ssrc-group:FID 5 6\r\na=ssrc:5 cname:x\r\na=ssrc:5 msid:a b\r\na=ssrc:6 cname:x\r\n\
         a=ssrc:7 cname:x\r\n\
         m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\n"
    )
}

fn parsed(text: &str) -> Offer {
    Offer::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_players_offer_is_read() {
    let offer = parsed(&player());
    assert_eq!((&offer.ufrag[..], &offer.password[..]), ("4ZcD", "2/1muCWoOi3uLifh0NuRHlLo"));
    assert_eq!((&offer.fingerprints[..], offer.setup), (&["AB:CD".to_owned()][..], Setup::Either));
    let [sound, picture] = &offer.media[..] else { panic!("{offer:?}") };
    assert_eq!((&sound.kind[..], &sound.mid[..], sound.direction), ("audio", "0", Direction::Receive));
    assert_eq!((sound.is_bundled, sound.reduced_size, picture.reduced_size), (true, true, false));
    let [opus, g722] = &sound.payloads[..] else { panic!("{sound:?}") };
    assert_eq!((opus.number, &opus.codec, opus.clock_rate, opus.channels), (111, &Codec::Opus, 48_000, 2));
    assert_eq!(
        (&opus.fmtp[..], &opus.feedback[..]),
        ("minptime=10;useinbandfec=1", &["transport-cc".into()][..])
    );
    assert_eq!((g722.number, g722.channels), (9, 0));
    let [vp8, h264] = &picture.payloads[..] else { panic!("{picture:?}") };
    assert_eq!((vp8.number, vp8.repair, &vp8.codec), (96, Some(97), &Codec::Vp8));
    assert_eq!(vp8.feedback, ["nack", "nack pli", "transport-cc"]);
    assert_eq!(
        (h264.number, h264.repair, &h264.feedback[..]),
        (102, Some(103), &["transport-cc".into()][..])
    );
    assert!(h264.fmtp.contains("profile-level-id=42001f"));
    assert_eq!(picture.extensions[0].id, 3);
}

#[test]
fn a_publishers_sizes_and_sources_are_read() {
    let offer = parsed(&simulcast());
    let [picture, data] = &offer.media[..] else { panic!("{offer:?}") };
    assert_eq!(
        (picture.direction, &picture.rids[..]),
        (Direction::Send, &["h", "m", "l"].map(str::to_owned)[..])
    );
    let [first, second] = picture.sources[..] else { panic!("{picture:?}") };
    assert_eq!((first.ssrc, first.repair, second.ssrc, second.repair), (5, Some(6), 7, None));
    assert_eq!((picture.is_bundled, data.is_bundled), (true, false));
    assert!(data.payloads.is_empty());
}

#[test]
fn without_a_group_there_is_one_media() {
    let offer = parsed(&player().replace("a=group:BUNDLE 0 1\r\n", ""));
    assert_eq!(offer.media.iter().map(|media| media.is_bundled).collect::<Vec<_>>(), [true, false]);
    let offer = parsed(&player().replace("m=audio 9", "m=audio 0"));
    assert_eq!(offer.media.iter().map(|media| media.is_bundled).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn what_a_relay_cannot_go_without_is_named() {
    let whole = player();
    let without =
        |line: &str| whole.lines().filter(|other| !other.starts_with(line)).collect::<Vec<_>>().join("\r\n");
    for (text, error) in [
        (without("a=ice-ufrag"), OfferError::NoCredentials),
        (without("a=ice-pwd"), OfferError::NoCredentials),
        (whole.replace("2/1muCWoOi3uLifh0NuRHlLo", "short"), OfferError::NoCredentials),
        (without("a=fingerprint"), OfferError::NoFingerprint),
        (whole.replace("sha-256", "sha-1"), OfferError::NoFingerprint),
        (whole.replace("a=recvonly", "a=ice-lite"), OfferError::Lite),
        (whole[..whole.find("m=").expect("media")].to_owned(), OfferError::NoMedia),
        (whole.clone() + &"m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n".repeat(15), OfferError::TooManyMedia),
        ("x".repeat(SDP_BYTES_MAX + 1), OfferError::TooLong(SDP_BYTES_MAX + 1)),
    ] {
        assert_eq!(Offer::parse(text.as_bytes()), Err(error));
    }
}

#[test]
fn a_password_is_not_shown() {
    assert!(!format!("{:?}", parsed(&player())).contains("2/1mu"));
}

fn accepted(payload: &OfferedPayload) -> AcceptedPayload<'_> {
    AcceptedPayload {
        number: payload.number,
        repair: payload.repair,
        encoding: &payload.encoding,
        clock_rate: payload.clock_rate,
        channels: payload.channels,
        fmtp: "packetization-mode=1",
        feedback: vec!["nack", "nack pli"],
    }
}

#[test]
fn an_answer_has_a_section_for_each_of_the_offer() {
    let offer = parsed(&player());
    let payload = accepted(&offer.media[1].payloads[1]);
    let source = AcceptedSource {
        ssrc: 5,
        repair: Some(6),
        protection: Some(7),
        cname: "c",
        stream: "live",
        track: "video",
    };
    let picture = Accepted {
        direction: Direction::Send,
        payloads: vec![payload],
        extensions: vec![(3, "urn:x")],
        rids: Vec::new(),
        source: Some(source),
    };
    let candidates = ["candidate:1 1 udp 2130706431 192.0.2.7 8189 typ host".to_owned()];
    let answer = Answer {
        id: 7,
        version: 1,
        ufrag: "relay",
        password: "0123456789012345678901",
        fingerprint: "EF:01",
        active: false,
        candidates: &candidates,
        media: &[(&offer.media[0], None), (&offer.media[1], Some(picture))],
    };
    let text = answer.emit();
    assert_eq!(
        text.replace("\r\n", "\n"),
        "v=0\no=- 7 1 IN IP4 0.0.0.0\ns=-\nt=0 0\na=group:BUNDLE 1\na=ice-lite\n\
         m=audio 0 UDP/TLS/RTP/SAVPF 111\nc=IN IP4 0.0.0.0\na=mid:0\na=inactive\na=rtpmap:111 opus/48000/2\n\
         m=video 9 UDP/TLS/RTP/SAVPF 102 103\nc=IN IP4 0.0.0.0\na=mid:1\na=sendonly\na=ice-ufrag:relay\n\
         a=ice-pwd:0123456789012345678901\na=fingerprint:sha-256 EF:01\na=setup:passive\n\
         a=candidate:1 1 udp 2130706431 192.0.2.7 8189 typ host\na=end-of-candidates\na=rtcp-mux\n\
         a=extmap-allow-mixed\n\
         a=rtpmap:102 H264/90000\na=fmtp:102 packetization-mode=1\na=rtcp-fb:102 nack\n\
         a=rtcp-fb:102 nack pli\n\
         a=rtpmap:103 rtx/90000\na=fmtp:103 apt=102\na=extmap:3 urn:x\na=msid:live video\n\
         a=ssrc-group:FID 5 6\na=ssrc-group:FEC-FR 5 7\n\
         a=ssrc:5 cname:c\na=ssrc:6 cname:c\na=ssrc:7 cname:c\n"
    );
    assert_eq!(Offer::parse(text.as_bytes()), Err(OfferError::Lite), "it can be read");
    let other = parsed(&text.replace("a=ice-lite\r\n", ""));
    assert_eq!((other.ufrag, other.setup, other.media.len()), ("relay".into(), Setup::Passive, 2));
    assert_eq!(other.media[1].sources, [OfferedSource { ssrc: 5, repair: Some(6) }]);
}

#[test]
fn what_a_player_takes_repair_packets_by_is_read() {
    assert_eq!(parsed(&player()).media[1].protection(), None);
    let offered = player().replace("97 102 103", "97 102 49 103")
        + "a=rtpmap:49 flexfec-03/90000\r\na=fmtp:49 repair-window=10000000\r\n";
    let offer = parsed(&offered);
    let protection = offer.media[1].protection().expect("it is offered");
    assert_eq!((protection.number, &*protection.fmtp), (49, "repair-window=10000000"));
    assert_eq!(protection.feedback, ["transport-cc"]);
    let other = parsed(&offered.replace("flexfec-03", "flexfec"));
    assert_eq!(other.media[1].protection(), None, "RFC 8627");
}

#[test]
fn the_sizes_that_are_taken_are_answered() {
    let offer = parsed(&simulcast());
    let rids = offer.media[0].rids.iter().map(String::as_str).collect();
    let (payloads, extensions) = (vec![accepted(&offer.media[0].payloads[0])], Vec::new());
    let picture = Accepted { direction: Direction::Receive, payloads, extensions, rids, source: None };
    let answer = Answer {
        id: 7,
        version: 1,
        ufrag: "relay",
        password: "0123456789012345678901",
        fingerprint: "EF:01",
        active: true,
        candidates: &[],
        media: &[(&offer.media[0], Some(picture)), (&offer.media[1], None)],
    };
    let text = answer.emit();
    assert!(text.contains("a=rid:m recv\r\n") && text.contains("a=simulcast:recv h;m;l\r\n"), "{text}");
    assert!(text.contains("m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n"), "{text}");
    assert!(text.contains("a=setup:active\r\n") && !text.contains("end-of-candidates"), "{text}");
}

proptest! {
    #[test]
    fn whatever_is_offered_is_read_without_a_panic_and_what_is_answered_is_an_answer(
        cuts in proptest::collection::vec((0_usize..2000, 0_usize..40, "[ -~]{0,12}"), 0..6),
        which in any::<bool>(),
    ) {
        let mut text = if which { player() } else { simulcast() };
        for (at, length, with) in cuts {
            let at = at.min(text.len());
            text.replace_range(at..(at + length).min(text.len()), &with);
        }
        if let Ok(offer) = Offer::parse(text.as_bytes()) {
            let media: Vec<_> = offer.media.iter().map(|media| (media, None)).collect();
            let answer = Answer {
                id: 1,
                version: 1,
                ufrag: "x",
                password: "y",
                fingerprint: "z",
                active: false,
                candidates: &[],
                media: &media,
            };
            let lines = answer.emit().matches("\r\nm=").count();
            prop_assert_eq!(lines, offer.media.len());
        }
    }
}
