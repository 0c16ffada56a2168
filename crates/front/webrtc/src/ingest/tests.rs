//! Publishers with a browser at the other end, without a network.

use core::time::Duration;

use outflow_rtp::PlainHeader;
use outflow_rtp::rtcp::{Report, SenderReport, transport_cc};
use outflow_srtp::{Opener, Sealer};
use outflow_webrtc::testing::Browser;

use super::*;
use crate::limits::{ASK_AFTER, ASK_AGAIN};

const SOURCE: u32 = 1000;
const REPAIR: u32 = 2000;

const TRACKS: [Receiving; 2] = [
    Receiving {
        track: 0,
        layer: None,
        payload_type: 111,
        repair: None,
        repeats: false,
        transport: None,
        clock_rate: 48_000,
    },
    Receiving {
        track: 1,
        layer: None,
        payload_type: 96,
        repair: Some(97),
        repeats: true,
        transport: Some(5),
        clock_rate: 90_000,
    },
];

fn place() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 40_000))
}

struct Scene {
    now: Time,
    ingest: Ingest,
    browser: Browser,
    srtp: Option<(Sealer, Opener)>,
    told: Vec<Output>,
    /// RTCP that it was sent.
    heard: Vec<Report>,
    /// What it was told of its transport: packets, and which of them came.
    arrived: Vec<(u16, bool)>,
}

impl Scene {
    /// A publisher of a sound and a picture that has come.
    fn new() -> Self {
        Scene::of(&TRACKS)
    }

    fn of(tracks: &[Receiving]) -> Self {
        let now = Time::from_millis(10_000);
        let (browser, session) = Browser::with_session(now);
        let gateways = Arc::new(Gateways::new(place()));
        let ingest = Ingest::new(now, (session, gateways, Restarts::default()), 9, tracks);
        let (told, heard, arrived) = (Vec::new(), Vec::new(), Vec::new());
        let mut scene = Scene { now, ingest, browser, srtp: None, told, heard, arrived };
        let check = scene.browser.check();
        scene.hand(&check);
        scene.srtp = scene.browser.srtp();
        assert_eq!(core::mem::take(&mut scene.told), [Output::Valid(place())]);
        scene
    }

    fn hand(&mut self, datagram: &[u8]) {
        self.ingest.handle_datagram(self.now, place(), &mut datagram.to_vec());
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(output) = self.ingest.poll() {
            let Output::Send(to, mut bytes) = output else {
                self.told.push(output);
                continue;
            };
            assert_eq!(to, place());
            match &mut self.srtp {
                Some((_, opener)) if bytes[0] >= 128 => {
                    let length = opener.open_control(&mut bytes).expect("it is sealed");
                    rtcp::read(&bytes[..length], |report| self.heard.push(report)).expect("RTCP");
                    let arrived = |feedback: transport_cc::Feedback<'_>| {
                        self.arrived.extend(feedback.statuses().map(|(number, at)| (number, at.is_some())));
                    };
                    transport_cc::read(&bytes[..length], arrived).expect("RTCP");
                }
                _ => self.browser.handle_datagram(self.now, &bytes),
            }
        }
        for datagram in self.browser.sends() {
            self.hand(&datagram);
        }
    }

    fn sends(&mut self, payload_type: u8, (ssrc, sequence): (u32, u16), payload: &[u8]) {
        self.sends_with((payload_type, ssrc, sequence), &[], payload);
    }

    /// With a header extension: its number, and what stands in it.
    fn sends_with(
        &mut self,
        (payload_type, ssrc, sequence): (u8, u32, u16),
        of: &[(u8, &[u8])],
        payload: &[u8],
    ) {
        let header = PlainHeader { marker: true, payload_type, sequence, timestamp: 5, ssrc };
        let mut packet = header.emit().to_vec();
        for (id, bytes) in of {
            packet[0] |= 0x10;
            packet.extend_from_slice(&[0xbe, 0xde, 0, 1, id << 4 | (bytes.len() as u8 - 1)]);
            packet.extend_from_slice(bytes);
            packet.resize(20, 0);
        }
        packet.extend_from_slice(payload);
        self.srtp.as_ref().expect("it is there").0.seal(&mut packet, 0, 0).expect("RTP");
        self.hand(&packet);
    }

    /// The packets that came since this was asked last: track, sequence number, SSRC, payload type, payload.
    fn came(&mut self) -> Vec<(u8, u16, u32, u8, Vec<u8>)> {
        let media = core::mem::take(&mut self.told).into_iter().map(|output| match output {
            Output::Media(None, track, packet) => {
                let read = RtpHeader::new_checked(&packet).expect("RTP");
                (track, read.sequence(), read.ssrc(), read.payload_type(), read.payload().to_vec())
            }
            other => panic!("{other:?}"),
        });
        media.collect()
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.ingest.handle_timeout(self.now);
        self.settle();
    }

    fn lost(&mut self) -> Vec<(u32, Vec<u16>)> {
        let lost = core::mem::take(&mut self.heard).into_iter().filter_map(|report| match report {
            Report::Lost { from: 9, media, numbers } => Some((media, numbers)),
            _ => None,
        });
        lost.collect()
    }
}

#[test]
fn what_comes_goes_on_and_what_is_missing_is_asked_for_and_put_back() {
    let mut scene = Scene::new();
    scene.sends(111, (500, 1), b"sound");
    scene.sends(96, (SOURCE, 10), b"a");
    scene.sends(96, (SOURCE, 13), b"d");
    scene.sends(98, (SOURCE, 14), b"of another codec");
    let expected = [
        (0, 1, 500, 111, b"sound".to_vec()),
        (1, 10, SOURCE, 96, b"a".to_vec()),
        (1, 13, SOURCE, 96, b"d".to_vec()),
    ];
    assert_eq!(scene.came(), expected);
    assert_eq!(scene.lost(), []);
    scene.pass(ASK_AFTER);
    assert_eq!(scene.lost(), [(SOURCE, vec![11, 12])]);
    scene.sends(97, (REPAIR, 1), &[0, 11, b'b']);
    scene.sends(97, (REPAIR, 2), &[0]);
    assert_eq!(scene.came(), [(1, 11, SOURCE, 96, b"b".to_vec())]);
    scene.pass(ASK_AGAIN);
    assert_eq!(scene.lost(), [(SOURCE, vec![12])]);
    scene.sends(96, (SOURCE, 12), b"c");
    scene.came();
    scene.pass(ASK_AGAIN);
    assert_eq!(scene.lost(), []);
    scene.sends(111, (500, 5), b"sound");
    scene.pass(ASK_AFTER);
    assert_eq!(scene.lost(), [], "it has not offered to send sound once more");
}

#[test]
fn it_is_told_what_came_and_that_a_key_frame_is_wanted() {
    let mut scene = Scene::new();
    scene.ingest.want_key_frame(0, 1);
    scene.settle();
    assert_eq!(scene.heard, [], "nothing has come of it");
    for sequence in [1, 2, 4] {
        scene.sends(96, (SOURCE, sequence), b"x");
    }
    let report = SenderReport { ssrc: SOURCE, ntp: 7 << 32, rtp: 5, packets: 4, octets: 4 };
    let mut bytes = rtcp::sender_report(&report, "x");
    let plain = bytes.clone();
    scene.srtp.as_mut().expect("it is there").0.seal_control(&mut bytes).expect("RTCP");
    scene.told.clear();
    scene.hand(&bytes);
    assert_eq!(scene.told, [Output::Rtcp(None, 1, plain.into())]);
    scene.pass(REPORT_EVERY);
    let blocks: Vec<_> = core::mem::take(&mut scene.heard)
        .into_iter()
        .filter_map(|report| match report {
            Report::Block { block, .. } => Some((block.ssrc, block.lost, block.highest, block.lsr)),
            _ => None,
        })
        .collect();
    assert_eq!(blocks, [(SOURCE, 1, 4, 7 << 16)]);
    scene.ingest.want_key_frame(0, 1);
    scene.settle();
    assert!(scene.heard.contains(&Report::KeyFrame { from: 9, media: SOURCE }), "{:?}", scene.heard);
}

#[test]
fn a_source_that_begins_again_is_not_asked_for_what_was_before() {
    let mut scene = Scene::new();
    scene.sends(96, (SOURCE, 10), b"a");
    scene.sends(96, (SOURCE, 20), b"b");
    scene.sends(96, (SOURCE + 1, 500), b"c");
    scene.pass(ASK_AFTER);
    assert_eq!(scene.lost(), []);
    scene.sends(97, (REPAIR, 1), &[1, 244, b'd']);
    assert_eq!(scene.came().last().map(|came| (came.1, came.2)), Some((500, SOURCE + 1)));
}

#[test]
fn its_end_is_told() {
    let mut scene = Scene::new();
    scene.browser.close();
    scene.settle();
    assert!(
        matches!(&scene.told[..], [Output::Ended(why)] if why.contains("closed by the peer")),
        "{:?}",
        scene.told
    );
    let mut scene = Scene::new();
    scene.ingest.close(scene.now);
    scene.settle();
    assert!(scene.browser.is_closed());
}

#[test]
fn it_is_told_which_packets_of_its_transport_came() {
    let mut scene = Scene::new();
    let mut sequence = 0;
    let mut sends = |number: u16, (payload_type, ssrc): (u8, u32), payload: &[u8]| {
        sequence += 1;
        scene.sends_with((payload_type, ssrc, sequence), &[(5, &number.to_be_bytes())], payload);
    };
    // One of the picture, one that only fills the way, one that is sent once more; of the sound nothing was agreed on.
    sends(65_535, (96, SOURCE), b"a");
    sends(0, (96, SOURCE), b"");
    sends(3, (97, REPAIR), &[0, 9, b'b']);
    sends(4, (111, 500), b"sound");
    assert_eq!(scene.arrived, []);
    scene.pass(Duration::from_millis(100));
    assert_eq!(scene.arrived, [(65_535, true), (0, true), (1, false), (2, false), (3, true)]);
    scene.pass(Duration::from_secs(1));
    assert_eq!(scene.arrived.len(), 5, "nothing new is said");
}

/// A sound, and a picture in two layers: as browsers have it, the better one last.
fn in_layers() -> Vec<Receiving> {
    let [sound, picture] = TRACKS;
    let layer = |number: u8, rid: &str| {
        let layer = Layer { number, rid: rid.to_owned(), extension: 8, repaired: Some(9) };
        Receiving { layer: Some(layer), ..picture.clone() }
    };
    vec![sound.clone(), layer(0, "l"), layer(1, "h")]
}

#[test]
fn layers_are_told_apart_and_the_best_is_the_first() {
    let mut scene = Scene::of(&in_layers());
    let (low, high) = (SOURCE, SOURCE + 1);
    scene.sends(111, (500, 1), b"sound");
    scene.sends(96, (low, 9), b"it does not say of which layer it is");
    scene.sends_with((96, low, 10), &[(8, b"l")], b"small");
    assert_eq!(scene.told.len(), 1, "sound does not wait: {:?}", scene.told);
    scene.sends_with((96, high, 20), &[(8, b"h")], b"a larger picture");
    // From then on they are known by their sources.
    scene.sends(96, (high, 21), b"B");
    scene.sends(96, (low, 12), b"b");
    let came = |told: Vec<Output>| {
        let came = told.into_iter().map(|output| match output {
            Output::Media(quality, track, packet) => {
                let read = RtpHeader::new_checked(&packet).expect("RTP");
                (quality, track, read.sequence())
            }
            other => panic!("{other:?}"),
        });
        came.collect::<Vec<_>>()
    };
    let expected = [(None, 0, 1), (Some(1), 1, 10), (Some(0), 1, 20), (Some(0), 1, 21), (Some(1), 1, 12)];
    assert_eq!(came(core::mem::take(&mut scene.told)), expected);

    scene.pass(ASK_AFTER);
    assert_eq!(scene.lost(), [(low, vec![11])], "each has its own numbers");
    scene.sends(97, (REPAIR, 1), &[0, 11, b'x']);
    assert_eq!(scene.told, [], "it does not say of which layer it is");
    scene.sends_with((97, REPAIR, 2), &[(9, b"l")], &[0, 11, b'x']);
    assert_eq!(came(core::mem::take(&mut scene.told)), [(Some(1), 1, 11)]);

    scene.ingest.want_key_frame(0, 1);
    scene.settle();
    let asked = |media| scene.heard.contains(&Report::KeyFrame { from: 9, media });
    assert_eq!((asked(high), asked(low)), (true, false), "{:?}", scene.heard);
}

#[test]
fn a_layer_that_comes_alone_waits_no_longer_than_it_must() {
    let mut scene = Scene::of(&in_layers());
    scene.sends_with((96, SOURCE, 10), &[(8, b"l")], b"small");
    assert_eq!(scene.told, []);
    scene.pass(crate::limits::LAYERS_SHOWN_AFTER);
    assert!(matches!(scene.told[..], [Output::Media(Some(1), 1, _)]), "{:?}", scene.told);
}

#[test]
fn what_is_sent_once_more_may_say_its_layer_where_the_packet_did() {
    let mut scene = Scene::of(&in_layers());
    scene.sends_with((96, SOURCE, 10), &[(8, b"l")], b"small");
    scene.sends_with((96, SOURCE + 1, 20), &[(8, b"h")], b"a larger picture");
    scene.sends(96, (SOURCE, 12), b"b");
    scene.told.clear();
    scene.sends_with((97, REPAIR, 1), &[(8, b"l")], &[0, 11, b'x']);
    assert!(matches!(scene.told[..], [Output::Media(Some(1), 1, _)]), "{:?}", scene.told);
}
