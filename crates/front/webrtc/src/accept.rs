//! What a publisher offers, and what of it is taken (RFC 3264; RFC 9429, section 5.3).

use outflow_media::format::{Codec, ExtensionKind, ExtensionMap, Track};
use outflow_rtp::fmtp;
use outflow_rtp::sdp::{Accepted, AcceptedPayload, Direction, Offer, OfferedMedia, OfferedPayload};

use crate::ingest::{Layer, Receiving};
use crate::offered::{NACK, Section, TRANSPORT, extension, feedback, is_usable, offers, transport};

/// A section of an offer that becomes a track.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'a> {
    media: &'a OfferedMedia,
    payload: &'a OfferedPayload,
    /// How many of the layers that are offered; none of a track without.
    layers: usize,
}

/// The header extension that says of which layer a packet is (RFC 8852).
const LAYER: &str = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id";

/// And of one that is sent once more.
const REPAIRED_LAYER: &str = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id";

/// Takes a track of each section that is sent with a codec that is known: the first of them. Of one that is sent in
/// several layers, it takes the first `layers_max`, one at least, if packets say of which they are.
pub(crate) fn take(offer: &Offer, layers_max: usize) -> Vec<(&OfferedMedia, Option<Taken<'_>>)> {
    let section = |media: &'_ OfferedMedia| {
        let sends = matches!(media.direction, Direction::Send | Direction::SendReceive);
        (sends && is_usable(media)).then(|| media.payloads.iter().position(is_known)).flatten()
    };
    let layers = |media: &OfferedMedia| if extension(media, LAYER).is_some() { media.rids.len() } else { 0 };
    let taken = |media| {
        let layers = layers(media).min(layers_max.max(1));
        section(media).map(|at| Taken { media, payload: &media.payloads[at], layers })
    };
    offer.media.iter().map(|media| (media, taken(media))).collect()
}

fn is_known(payload: &OfferedPayload) -> bool {
    match payload.codec {
        // Units of pictures come one after the other (RFC 6184, section 6).
        Codec::H264 { .. } => fmtp::get(&payload.fmtp, "packetization-mode") != Some("2"),
        Codec::H265 { .. } | Codec::Vp8 | Codec::Vp9 | Codec::Av1 | Codec::Opus => true,
        _ => false,
    }
}

/// Where layers are said.
fn is_of_use(extension: &ExtensionMap) -> bool {
    matches!(extension.kind, ExtensionKind::DependencyDescriptor | ExtensionKind::FrameMarking)
}

impl Taken<'_> {
    /// The track of the stream.
    pub(crate) fn track(&self) -> Track {
        let OfferedPayload { number, ref codec, ref encoding, clock_rate, channels, ref fmtp, .. } =
            *self.payload;
        Track {
            codec: codec.clone(),
            payload_type: number,
            clock_rate,
            channels,
            fmtp: fmtp.clone(),
            encoding: encoding.clone(),
            extensions: self.media.extensions.iter().filter(|one| is_of_use(one)).cloned().collect(),
        }
    }

    /// How it comes, as this track: each layer, if it comes in several.
    pub(crate) fn receiving(&self, track: u8) -> Vec<Receiving> {
        let OfferedPayload { number, repair, clock_rate, .. } = *self.payload;
        let (repeats, transport) = (offers(self.payload, NACK), transport(self.media, self.payload));
        let receiving =
            Receiving { track, layer: None, payload_type: number, repair, repeats, transport, clock_rate };
        let layers = (0..).zip(self.rids()).filter_map(|(number, rid)| {
            let (named, repaired) = (extension(self.media, LAYER)?, extension(self.media, REPAIRED_LAYER));
            Some(Layer { number, rid: rid.to_owned(), extension: named, repaired })
        });
        let layers: Vec<_> =
            layers.map(|layer| Receiving { layer: Some(layer), ..receiving.clone() }).collect();
        if layers.is_empty() { vec![receiving] } else { layers }
    }

    /// How many layers are taken; 1 if it has none.
    pub(crate) fn layers(&self) -> usize {
        self.layers.max(1)
    }

    /// How many it is sent in.
    pub(crate) fn offered_layers(&self) -> usize {
        self.media.rids.len().max(1)
    }

    fn rids(&self) -> impl Iterator<Item = &str> {
        self.media.rids.iter().map(String::as_str).take(self.layers)
    }
}

impl Section for Taken<'_> {
    fn accepted<'a>(&'a self, fmtp: &'a str) -> Accepted<'a> {
        let OfferedPayload { number, repair, ref encoding, clock_rate, channels, .. } = *self.payload;
        let transport = transport(self.media, self.payload);
        let feedback = feedback(self.payload).into_iter().chain(transport.map(|_| TRANSPORT)).collect();
        let payload = AcceptedPayload { number, repair, encoding, clock_rate, channels, fmtp, feedback };
        let says_layer = |one: &ExtensionMap| matches!(one.kind.uri(), LAYER | REPAIRED_LAYER);
        let is_taken = |one: &&ExtensionMap| {
            is_of_use(one) || Some(one.id) == transport || (self.layers > 0 && says_layer(one))
        };
        let extensions = self.media.extensions.iter().filter(is_taken);
        Accepted {
            direction: Direction::Receive,
            payloads: vec![payload],
            extensions: extensions.map(|one| (one.id, one.kind.uri())).collect(),
            rids: self.rids().collect(),
            source: None,
        }
    }

    /// As the publisher offered them; of sound with two channels, that both are wanted.
    fn fmtp(&self) -> String {
        match (&self.payload.codec, self.payload.channels) {
            (Codec::Opus, 2) => fmtp::with(&self.payload.fmtp, "stereo", "1"),
            _ => self.payload.fmtp.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OBS offers, with a preferred codec that is not known.
    const OFFER: &str = "v=0\r\no=rtc 1 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
        a=group:LS 0 1\r\n\
        a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\na=fingerprint:sha-256 AA:BB\r\n\
        a=setup:actpass\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\n\
        a=rtpmap:111 opus/48000/2\r\n\
        a=fmtp:111 minptime=10;useinbandfec=1;stereo=1;sprop-stereo=1\r\n\
        m=video 9 UDP/TLS/RTP/SAVPF 95 96 97\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\n\
        a=rtpmap:95 VP10/90000\r\n\
        a=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\na=rtcp-fb:96 goog-remb\r\n\
        a=fmtp:96 profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1\r\n\
        a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid\r\n\
        a=extmap:7 https://aomediacodec.github.io/av1-rtp-spec/\
        #dependency-descriptor-rtp-header-extension\r\n\
        a=extmap:5 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
        a=rid:a send\r\na=rid:b send\r\na=simulcast:send a;b\r\n";

    #[test]
    fn of_each_section_the_first_codec_that_is_known_becomes_a_track() {
        let offer = Offer::parse(OFFER.as_bytes()).expect("an offer");
        let taken = take(&offer, 1);
        let [sound, picture] = [0, 1].map(|at: usize| taken[at].1.expect("both are taken"));
        assert_eq!((sound.track().codec, sound.track().channels), (Codec::Opus, 2));
        let track = picture.track();
        assert_eq!((track.payload_type, track.encoding.as_str(), track.extensions.len()), (96, "H264", 1));
        let [
            Receiving {
                payload_type: 96, repair: Some(97), repeats: true, transport: None, layer: None, ..
            },
        ] = &picture.receiving(1)[..]
        else {
            panic!("{:?}", picture.receiving(1))
        };
        let fmtp = picture.fmtp();
        let accepted = picture.accepted(&fmtp);
        assert_eq!(accepted.payloads[0].feedback, ["nack", "nack pli"]);
        assert_eq!(
            (accepted.rids.len(), accepted.extensions.len()),
            (0, 1),
            "packets do not say their layer"
        );
        let tells = OFFER.replace("a=rtcp-fb:96 goog-remb", "a=rtcp-fb:96 transport-cc");
        let tells = Offer::parse(tells.as_bytes()).expect("an offer");
        let picture = take(&tells, 1)[1].1.expect("it is taken");
        let accepted = picture.accepted(&fmtp);
        assert_eq!(accepted.payloads[0].feedback, ["nack", "nack pli", "transport-cc"]);
        assert_eq!((picture.receiving(1)[0].transport, accepted.extensions.len()), (Some(5), 2));
        let plays = OFFER.replace("sendonly", "recvonly");
        let plays = Offer::parse(plays.as_bytes()).expect("an offer");
        assert!(take(&plays, 1).iter().all(|(_, taken)| taken.is_none()), "it sends nothing");
    }

    #[test]
    fn as_many_layers_are_taken_as_there_is_place_for() {
        let says = "a=extmap:8 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n\
            a=extmap:9 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id\r\na=rid:a send\r\n";
        let text = OFFER.replace("a=rid:a send\r\n", says).replace("send a;b", "send b;a");
        let offer = Offer::parse(text.as_bytes()).expect("an offer");
        let of = |max: usize| {
            let picture = take(&offer, max)[1].1.expect("it is taken");
            let layers = picture.receiving(1).into_iter().map(|one| one.layer.map(|layer| layer.rid));
            let rids = picture.accepted("").rids.iter().map(|rid| (*rid).to_owned()).collect::<Vec<_>>();
            (layers.collect::<Vec<_>>(), rids, picture.accepted("").extensions.len())
        };
        let both = ["b", "a"].map(str::to_owned);
        assert_eq!(of(3), (both.clone().map(Some).to_vec(), both.to_vec(), 3));
        let first = "b".to_owned();
        assert_eq!(of(1), (vec![Some(first.clone())], vec![first], 3));
        let silent = Offer::parse(OFFER.as_bytes()).expect("an offer");
        assert_eq!(take(&silent, 3)[1].1.expect("it is taken").layers(), 1, "its packets do not say");
    }
}
