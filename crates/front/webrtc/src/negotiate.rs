//! What of a stream goes to a viewer, by what it offers (RFC 3264; RFC 9429, section 5.3).

use outflow_media::format::{Codec, DEPENDENCY_DESCRIPTOR, ExtensionKind, ExtensionMap, Track};
use outflow_rtp::fmtp;
use outflow_rtp::payload::Splitter;
use outflow_rtp::sdp::{
    Accepted, AcceptedPayload, AcceptedSource, Direction, Offer, OfferedMedia, OfferedPayload,
};

use crate::offered::{NACK, Section, TRANSPORT, extension, feedback, is_usable, offers, transport};
use crate::settings::NAME;
use crate::viewer::{Elements, Protection, Sending};

/// A track of a stream, and the section of an offer that it goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen<'a> {
    media: &'a OfferedMedia,
    payload: &'a OfferedPayload,
    /// The track's number.
    pub(crate) track: u8,
    pub(crate) sending: Sending,
    /// By what repair packets for it go: for one picture, if the viewer takes them and says which packets came.
    pub(crate) protection: Option<Protection>,
}

/// Chooses a track for each section of an offer that has a codec for one. `random` gives numbers of sources.
pub(crate) fn choose<'a>(
    offer: &'a Offer,
    tracks: &[Track],
    mut random: impl FnMut() -> u32,
) -> Vec<(&'a OfferedMedia, Option<Chosen<'a>>)> {
    let (mut taken, mut is_protected) = (vec![false; tracks.len()], false);
    let mut section = |media: &'a OfferedMedia| {
        let receives = matches!(media.direction, Direction::Receive | Direction::SendReceive);
        if !receives || !is_usable(media) {
            return None;
        }
        let free = tracks.iter().enumerate().filter(|(number, _)| !taken[*number]);
        let (number, payload) = free.into_iter().find_map(|(number, track)| {
            let is_video = media.kind.eq_ignore_ascii_case("video");
            let fit = |payload: &&OfferedPayload| fit(track, payload);
            let best = media.payloads.iter().filter(|payload| fit(payload) > 0).rev().max_by_key(fit);
            best.filter(|_| is_video == track.codec.is_video()).map(|payload| (number, payload))
        })?;
        taken[number] = true;
        let repair = payload.repair.filter(|_| offers(payload, NACK)).map(|number| (number, random()));
        let offered = media.extensions.iter().map(|one| (one.id, one.kind.uri()));
        let of_frames = media.mixes.then(|| extension(media, DEPENDENCY_DESCRIPTOR)).flatten();
        let elements = Elements::of(offered, transport(media, payload))
            .describing(described_by(&tracks[number]), of_frames);
        let splitter = Splitter::of(&tracks[number]);
        let sending = Sending {
            payload_type: payload.number,
            ssrc: random(),
            is_video: tracks[number].codec.is_video(),
            repair,
            elements,
            splitter,
        };
        let protected = media.protection().filter(|_| sending.is_video && elements.transport.is_some());
        let protected = protected.filter(|_| !core::mem::replace(&mut is_protected, true));
        let protection =
            protected.map(|by| Protection { payload_type: by.number, ssrc: random(), media: sending.ssrc });
        Some(Chosen { media, payload, track: number as u8, sending, protection })
    };
    offer.media.iter().map(|media| (media, section(media))).collect()
}

/// The stream's number of the header extension by which packets of a track say what their frames need.
fn described_by(track: &Track) -> Option<u8> {
    let describes = |one: &&ExtensionMap| one.kind == ExtensionKind::DependencyDescriptor;
    track.extensions.iter().find(describes).map(|one| one.id)
}

impl Chosen<'_> {
    /// The payload of repair packets, as it was offered.
    fn protected_by(&self) -> Option<AcceptedPayload<'_>> {
        let by = self.media.protection().filter(|_| self.protection.is_some())?;
        let OfferedPayload { number, ref encoding, clock_rate, channels, ref fmtp, .. } = *by;
        let feedback = Some(TRANSPORT).filter(|word| offers(by, word)).into_iter().collect();
        Some(AcceptedPayload { number, repair: None, encoding, clock_rate, channels, fmtp, feedback })
    }
}

/// How well a codec of an offer fits a track; not at all if it is 0.
fn fit(track: &Track, payload: &OfferedPayload) -> u8 {
    if track.clock_rate != payload.clock_rate {
        return 0;
    }
    let same = |name: &str, usual: &str| {
        let of = |text| fmtp::get(text, name).unwrap_or(usual).to_owned();
        of(&track.fmtp).eq_ignore_ascii_case(&of(&payload.fmtp))
    };
    match (&track.codec, &payload.codec) {
        (Codec::H264 { .. }, Codec::H264 { .. }) => h264(track, payload),
        (Codec::H265 { .. }, Codec::H265 { .. }) => u8::from(same("profile-id", "1")),
        (Codec::Vp9, Codec::Vp9) => u8::from(same("profile-id", "0")),
        (Codec::Av1, Codec::Av1) => u8::from(same("profile", "0")),
        (Codec::Vp8, Codec::Vp8) | (Codec::Opus, Codec::Opus) => 1,
        _ => 0,
    }
}

/// Packets of several kinds are sent (RFC 6184, section 6.3). Decoders take more than they announce: another profile is
/// better than none.
fn h264(track: &Track, payload: &OfferedPayload) -> u8 {
    if fmtp::get(&payload.fmtp, "packetization-mode") != Some("1") {
        return 0;
    }
    let profile = |text| fmtp::get(text, "profile-level-id").unwrap_or("42001f").to_ascii_lowercase();
    let (ours, theirs) = (profile(&track.fmtp), profile(&payload.fmtp));
    let alike = |digits: usize| ours.get(..digits).is_some_and(|start| theirs.get(..digits) == Some(start));
    match (alike(4), alike(2)) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 1,
    }
}

impl Section for Chosen<'_> {
    fn accepted<'a>(&'a self, fmtp: &'a str) -> Accepted<'a> {
        let OfferedPayload { number, ref encoding, clock_rate, channels, .. } = *self.payload;
        let is_video = self.media.kind.eq_ignore_ascii_case("video");
        let Sending { ssrc, repair, elements, .. } = self.sending;
        let mut told = if is_video { feedback(self.payload) } else { Vec::new() };
        told.extend(elements.transport.map(|_| TRANSPORT));
        let payload = AcceptedPayload {
            number,
            repair: repair.map(|(number, _)| number),
            encoding,
            clock_rate,
            channels,
            fmtp,
            feedback: told,
        };
        let track = if is_video { "video" } else { "audio" };
        let repair = repair.map(|(_, ssrc)| ssrc);
        let protection = self.protection.map(|by| by.ssrc);
        let source = AcceptedSource { ssrc, repair, protection, cname: NAME, stream: NAME, track };
        Accepted {
            direction: Direction::Send,
            payloads: core::iter::once(payload).chain(self.protected_by()).collect(),
            extensions: elements.accepted().collect(),
            rids: Vec::new(),
            source: Some(source),
        }
    }

    /// As the viewer offered them; of sound with two channels, that both are to be heard.
    fn fmtp(&self) -> String {
        match (&self.payload.codec, self.payload.channels) {
            (Codec::Opus, 2) => {
                fmtp::with(&fmtp::with(&self.payload.fmtp, "stereo", "1"), "sprop-stereo", "1")
            }
            _ => self.payload.fmtp.clone(),
        }
    }
}

/// The codecs of a stream, for people.
pub(crate) fn codecs(tracks: &[Track]) -> String {
    let names: Vec<&str> = tracks.iter().map(|track| track.encoding.as_str()).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use outflow_rtp::sdp::parse;

    use super::*;

    /// What Chromium 156 offers to play, cut to a few of its codecs.
    const OFFER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
        a=ice-ufrag:EsAw\r\n\
        a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\na=fingerprint:sha-256 AA:BB\r\na=setup:actpass\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=recvonly\r\na=rtcp-mux\r\n\
        a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\na=rtpmap:0 PCMU/8000\r\n\
        m=video 9 UDP/TLS/RTP/SAVPF 96 97 103 104 107 108 39 40\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\n\
        a=recvonly\r\n\
        a=rtcp-mux\r\na=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay\r\n\
        a=extmap:4 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
        a=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n\
        a=rtpmap:103 H264/90000\r\na=rtcp-fb:103 goog-remb\r\na=rtcp-fb:103 nack\r\n\
        a=rtcp-fb:103 nack pli\r\n\
        a=fmtp:103 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r\n\
        a=rtpmap:104 rtx/90000\r\na=fmtp:104 apt=103\r\n\
        a=rtpmap:107 H264/90000\r\na=rtcp-fb:107 transport-cc\r\n\
        a=fmtp:107 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=4d001f\r\n\
        a=rtpmap:108 H264/90000\r\n\
        a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=4d001f\r\n\
        a=rtpmap:39 AV1/90000\r\na=fmtp:39 level-idx=5;profile=0;tier=0\r\n";

    fn tracks(lines: &str) -> Vec<Track> {
        let text = format!("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n{lines}");
        let outflow_media::Format::Rtp(tracks) = parse(text.as_bytes()).expect("a description").format()
        else {
            panic!("it is RTP")
        };
        tracks
    }

    fn chosen(lines: &str) -> Vec<Option<(u8, u8)>> {
        let offer = Offer::parse(OFFER.as_bytes()).expect("an offer");
        let all = choose(&offer, &tracks(lines), || 7);
        all.iter().map(|(_, one)| one.map(|one| (one.track, one.sending.payload_type))).collect()
    }

    #[test]
    fn each_section_gets_the_track_that_it_has_the_best_codec_for() {
        let main = "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
            a=fmtp:96 packetization-mode=1; profile-level-id=4d4028\r\n";
        let sound = "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n";
        assert_eq!(chosen(&format!("{main}{sound}")), [Some((1, 111)), Some((0, 108))]);
        assert_eq!(chosen(&main.replace("4d4028", "42c01f")), [None, Some((0, 103))]);
        assert_eq!(
            chosen(&main.replace("4d4028", "640028")),
            [None, Some((0, 103))],
            "the first, rather than none"
        );
        let av1 = "m=video 0 RTP/AVP 98\r\na=rtpmap:98 AV1/90000\r\n";
        assert_eq!(chosen(&format!("{sound}{av1}")), [Some((0, 111)), Some((1, 39))]);
        assert_eq!(chosen("m=audio 0 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"), [None, None]);
    }

    #[test]
    fn of_what_is_offered_that_is_taken_which_is_of_use() {
        let offer = Offer::parse(OFFER.as_bytes()).expect("an offer");
        let tracks = tracks(
            "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\nm=video 0 RTP/AVP 96\r\n\
            a=rtpmap:96 H264/90000\r\n",
        );
        let mut number = 0;
        let all = choose(&offer, &tracks, || {
            number += 1;
            number
        });
        let [sound, picture] = [0, 1].map(|at: usize| all[at].1.expect("both are chosen"));
        let fmtp = [sound, picture].map(|one| one.fmtp());
        assert!(fmtp[0].contains("stereo=1") && fmtp[1].contains("packetization-mode=1"), "{fmtp:?}");
        let accepted = picture.accepted(&fmtp[1]);
        assert_eq!(accepted.payloads[0].feedback, ["nack", "nack pli"]);
        assert_eq!((accepted.payloads[0].repair, accepted.extensions.len()), (Some(104), 1));
        let source = accepted.source.expect("it is sent");
        assert_ne!(Some(source.ssrc), source.repair);
        assert!(sound.sending.repair.is_none() && sound.accepted(&fmtp[0]).payloads[0].feedback.is_empty());
    }

    #[test]
    fn repair_packets_are_for_one_picture_of_a_viewer_that_takes_them_and_tells_what_came() {
        let lines = "a=rtpmap:49 flexfec-03/90000\r\na=fmtp:49 repair-window=10000000\r\n\
            a=rtcp-fb:* transport-cc\r\n";
        let offered = format!("{OFFER}{lines}").replace("108 39 40", "108 39 49");
        let (_, picture) = offered.split_once("m=video").expect("it has a picture");
        let two = format!("{offered}m=video{picture}").replace("BUNDLE 0 1", "BUNDLE 0 1 2");
        let (first, second) = two.split_at(two.rfind("a=mid:1").expect("the second one"));
        let two = format!("{first}{}", second.replacen("a=mid:1", "a=mid:2", 1));
        let picture = "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";
        let tracks =
            tracks(&format!("m=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n{picture}{picture}"));
        let protections = |text: &str| {
            let offer = Offer::parse(text.as_bytes()).expect("an offer");
            let mut number = 0;
            let all = choose(&offer, &tracks, || {
                number += 1;
                number
            });
            let of = |(_, one): &(_, Option<Chosen<'_>>)| {
                let one = one.expect("it is chosen");
                let accepted = one.accepted("");
                let payloads = accepted.payloads.iter().skip(1);
                let payloads: Vec<_> = payloads
                    .map(|by| (by.number, by.encoding.to_owned(), by.fmtp.to_owned(), by.feedback.concat()))
                    .collect();
                let ssrc = accepted.source.and_then(|source| source.protection);
                assert_eq!(ssrc, one.protection.map(|by| by.ssrc));
                assert!(one.protection.is_none_or(|by| by.media == one.sending.ssrc && by.ssrc != by.media));
                payloads
            };
            all.iter().map(of).collect::<Vec<_>>()
        };
        let by = (49, "flexfec-03".to_owned(), "repair-window=10000000".to_owned(), TRANSPORT.to_owned());
        assert_eq!(protections(&two), [vec![], vec![by], vec![]]);
        let untold = offered.replace("a=rtcp-fb:* transport-cc\r\n", "");
        assert_eq!(protections(&untold), [vec![], vec![]]);
        assert_eq!(protections(OFFER), [vec![], vec![]]);
    }
}
