//! Viewers with a browser at the other end, without a network.

mod layers;
mod link;
mod lossy;

use core::time::Duration;

use outflow_engine::Worth;
use outflow_ice::limits::CONSENT;
use outflow_media::Track;
use outflow_rtp::RtpHeader;
use outflow_rtp::payload::Splitter;
use outflow_srtp::{Opener, Sealer};
use outflow_webrtc::testing::Browser;

use super::*;
use crate::hosts::Hosts;

const PLACE: SocketAddr =
    SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(192, 0, 2, 1), 40_000));

/// What the stream's packets are from, and what the viewer's are.
const SOURCE: u32 = 1000;
const OWN: u32 = 2000;
const REPAIR: u32 = 3000;

/// Parameter sets.
const SETS: Bytes = Bytes::from_static(&[0x78, 0, 1, 0x67]);

/// Those of another rendition.
const OTHER_SETS: [u8; 4] = [0x78, 0, 1, 0x27];

struct Scene {
    now: Time,
    viewer: Viewer,
    browser: Browser,
    /// What viewers were given.
    recent: Recent,
    srtp: Option<(Sealer, Opener)>,
    told: mpsc::Receiver<News>,
    events: Vec<PeerEvent>,
    coming: Arc<Hosts>,
    /// What it was sent beside DTLS and answers to checks.
    sent: Vec<Vec<u8>>,
}

impl Scene {
    /// A viewer that has been answered, and has not come yet. It gets track 1.
    fn new() -> Self {
        Self::with(Elements::default())
    }

    fn with(elements: Elements) -> Self {
        Self::with_all(elements, None)
    }

    fn with_all(elements: Elements, fec: Option<Box<Fec>>) -> Self {
        let now = Time::from_millis(10_000);
        let (browser, session) = Browser::with_session(now);
        let (news, told) = mpsc::channel(8);
        let coming = Arc::new(Hosts::new(1, 1));
        let place = coming.enter(PLACE.ip()).expect("it is free");
        let sending = Sending {
            payload_type: 100,
            ssrc: OWN,
            is_video: true,
            repair: Some((101, REPAIR)),
            elements,
            splitter: Splitter::of(&Track::h264()),
        };
        let viewer = Viewer::new(
            5,
            session,
            (news, Arc::new(Gateways::new(PLACE)), Restarts::default()),
            &[(1, sending, Some(SETS))],
            (0, place, SessionToken::new().expect("randomness"), fec),
        );
        Scene {
            now,
            viewer,
            browser,
            recent: Recent::default(),
            srtp: None,
            told,
            events: Vec::new(),
            coming,
            sent: Vec::new(),
        }
    }

    /// One that has come.
    fn ready() -> Self {
        Self::ready_with(Elements::default())
    }

    fn ready_with(elements: Elements) -> Self {
        Self::with(elements).come()
    }

    fn come(mut self) -> Self {
        let scene = &mut self;
        let check = scene.browser.check();
        scene.hand(&check);
        scene.settle();
        scene.srtp = scene.browser.srtp();
        assert!(scene.srtp.is_some() && scene.viewer.session.path().is_some());
        self
    }

    fn hand(&mut self, datagram: &[u8]) {
        let from = (PLACE, Mark::None);
        self.viewer.handle_datagram(self.now, from, &mut datagram.to_vec(), &self.recent);
    }

    /// Both say what they have to say, until that is all.
    fn settle(&mut self) {
        loop {
            let mut out = Vec::new();
            while let Some((to, _)) = self.viewer.poll_transmit(self.now, &mut out) {
                assert_eq!(to, PLACE);
                self.browser.handle_datagram(self.now, &out);
                let datagram = core::mem::take(&mut out);
                if datagram[0] >= 128 {
                    self.sent.push(datagram);
                }
            }
            self.events.extend(core::iter::from_fn(|| self.viewer.poll_event()));
            let said = self.browser.sends();
            if said.is_empty() {
                return;
            }
            said.iter().for_each(|datagram| self.hand(datagram));
        }
    }

    /// A packet of the stream that came just now.
    fn give(&mut self, track: u8, sequence: u16) -> Result<(), Undelivered> {
        self.give_late(track, sequence, Duration::ZERO)
    }

    fn give_late(&mut self, track: u8, sequence: u16, age: Duration) -> Result<(), Undelivered> {
        self.give_bytes((track, sequence), age, &[sequence as u8, 7])
    }

    fn give_bytes(
        &mut self,
        (track, sequence): (u8, u16),
        age: Duration,
        payload: &[u8],
    ) -> Result<(), Undelivered> {
        self.give_at(0, (track, sequence), age, payload)
    }

    /// With this timestamp. Parameter sets stand in front of a rendition that the viewer comes to.
    fn give_at(
        &mut self,
        timestamp: u8,
        (track, sequence): (u8, u16),
        age: Duration,
        payload: &[u8],
    ) -> Result<(), Undelivered> {
        let mut packet = [&[0x80, 0x80 | 96, 0, 0, 0, 0, timestamp, 9, 0, 0, 0, 0], payload].concat();
        outflow_rtp::set_sequence(&mut packet, sequence);
        outflow_rtp::set_ssrc(&mut packet, SOURCE);
        let arrived = Time::from_nanos(self.now.as_nanos() - age.as_nanos() as u64);
        // Pictures of which each needs the one before.
        let rank = if payload[0] == 0x65 { Worth::most(arrived).rank } else { 0 };
        let is_preamble = payload.starts_with(&OTHER_SETS);
        let head = PacketHead {
            track,
            worth: Worth { rank, arrived, is_left: false },
            bytes: packet.len(),
            ends: None,
            is_preamble,
        };
        let packet = Bytes::from(packet);
        let given = self.recent.add(self.now, packet.clone());
        self.viewer.take(self.now, &head, || (packet.clone(), given), None)
    }

    /// What the viewer was sent since this was asked last: payload type, SSRC, sequence number, payload.
    fn got(&mut self) -> Vec<(u8, u32, u16, Vec<u8>)> {
        self.settle();
        let (_, opener) = self.srtp.as_mut().expect("it is ready");
        let sent = core::mem::take(&mut self.sent).into_iter();
        let media = sent.filter(|datagram| !outflow_rtp::is_rtcp(datagram)).map(|mut datagram| {
            let length = opener.open(&mut datagram).expect("it is sealed");
            let packet = RtpHeader::new_checked(&datagram[..length]).expect("RTP");
            (packet.payload_type(), packet.ssrc(), packet.sequence(), packet.payload().to_vec())
        });
        media.collect()
    }

    fn say(&mut self, mut packet: Vec<u8>) {
        let (sealer, _) = self.srtp.as_mut().expect("it is ready");
        sealer.seal_control(&mut packet).expect("RTCP");
        self.hand(&packet);
    }
}

#[test]
fn a_viewer_waits_until_it_has_come_and_gets_numbers_of_its_own() {
    let mut scene = Scene::new();
    assert_eq!(scene.give(1, 7), Err(Undelivered::Later));
    scene.viewer.waits = true;
    assert_eq!(scene.viewer.poll_event(), None, "it has not come");
    assert_eq!(scene.coming.count(), 1);
    let check = scene.browser.check();
    scene.hand(&check);
    assert!(matches!(scene.told.try_recv(), Ok(News::Confirm(5, PLACE))));
    scene.settle();
    assert_eq!(scene.events, [PeerEvent::Report(Report::Writable)]);
    assert_eq!(scene.coming.count(), 0, "others may come");
    scene.srtp = scene.browser.srtp();

    for (track, sequence) in [(1, 65_534), (1, 65_535), (0, 500), (1, 1)] {
        assert_eq!(scene.give(track, sequence), Ok(()));
    }
    let expected = [(256, 254), (257, 255), (259, 1)].map(|(own, byte)| (100, OWN, own, vec![byte, 7]));
    assert_eq!(scene.got(), expected, "what is missing stays missing; it has not asked for track 0");
}

#[test]
fn what_it_lacks_is_sent_once_more_by_the_other_source() {
    let mut scene = Scene::ready();
    for sequence in 10..14 {
        scene.give(1, sequence).expect("there is room");
    }
    scene.got();
    scene.say(rtcp::lost(7, OWN, &[257, 259, 300], "x"));
    let expected = [(256, 257, 11), (257, 259, 13)].map(|(own, first, byte): (u16, u16, u8)| {
        (101, REPAIR, own, [&first.to_be_bytes()[..], &[byte, 7]].concat())
    });
    assert_eq!(scene.got(), expected);
    scene.say(rtcp::lost(7, OWN, &[257], "x"));
    assert_eq!(scene.got(), [], "it is on its way");
    scene.say(rtcp::lost(7, 99, &[258], "x"));
    assert_eq!(scene.got(), [], "of another source");
    scene.events.retain(|event| matches!(event, PeerEvent::Rtcp(_)));
    assert_eq!(scene.events.len(), 3, "a report stands in front of each");
}

#[test]
fn what_is_too_long_for_the_way_goes_as_two() {
    let mut scene = Scene::ready();
    let unit = [&[0x65][..], &[7; 1400]].concat();
    scene.give(1, 10).expect("there is room");
    scene.give_bytes((1, 11), Duration::ZERO, &unit).expect("it is split");
    scene.give(1, 12).expect("there is room");
    scene.settle();
    let got = scene.got();
    let all: Vec<_> = got.iter().map(|(_, _, number, payload)| (*number, payload.len())).collect();
    assert_eq!(all, [(256, 2), (257, 4), (258, 702), (259, 702), (260, 2)]);
    assert_eq!(got[1].3, SETS, "in front of the key frame");
    let [one, other] = [2, 3].map(|at: usize| &got[at].3);
    assert!(one.starts_with(&[0x7c, 0x85]) && other.starts_with(&[0x7c, 0x45]), "fragments of the unit");
}

#[test]
fn each_rendition_has_its_own_parameter_sets_in_front_of_its_key_frames() {
    let mut scene = Scene::ready();
    let key: &[u8] = &[0x65, 1];
    let given = [(1, key), (2, &[0x41, 2]), (3, &OTHER_SETS), (3, key), (4, key), (5, &[0x41, 3])];
    for (number, (timestamp, payload)) in (20..).zip(given) {
        scene.give_at(timestamp, (1, number), Duration::ZERO, payload).expect("there is room");
    }
    let payloads: Vec<_> = scene.got().into_iter().map(|(_, _, _, payload)| payload).collect();
    let expected: [&[u8]; 8] = [&SETS, key, &[0x41, 2], &OTHER_SETS, key, &OTHER_SETS, key, &[0x41, 3]];
    assert_eq!(payloads, expected);
}

#[test]
fn parameter_sets_that_find_no_room_stand_in_front_of_what_they_are_for() {
    let mut scene = Scene::new();
    assert_eq!(scene.give_at(1, (1, 19), Duration::ZERO, &OTHER_SETS), Ok(()));
    assert_eq!(scene.give_at(1, (1, 20), Duration::ZERO, &[0x65, 1]), Err(Undelivered::Later));
    let check = scene.browser.check();
    scene.hand(&check);
    scene.settle();
    scene.srtp = scene.browser.srtp();
    scene.give_at(1, (1, 20), Duration::ZERO, &[0x65, 1]).expect("there is room");
    let payloads: Vec<_> = scene.got().into_iter().map(|(_, _, _, payload)| payload).collect();
    assert_eq!(payloads, [&OTHER_SETS[..], &[0x65, 1]]);
}

#[test]
fn what_it_says_of_its_source_is_said_of_the_streams() {
    let mut scene = Scene::ready();
    scene.give(1, 10).expect("there is room");
    scene.got();
    scene.events.clear();
    scene.say(rtcp::key_frame_request(7, OWN, 1, "x"));
    scene.settle();
    let [PeerEvent::Rtcp(said)] = &scene.events[..] else { panic!("{:?}", scene.events) };
    let mut wanted = Vec::new();
    rtcp::read(said, |report| {
        if let rtcp::Report::KeyFrame { media, .. } = report {
            wanted.push(media);
        }
    })
    .expect("RTCP");
    assert_eq!(wanted, [SOURCE; 2]);

    let report = rtcp::SenderReport { ssrc: SOURCE, ntp: 1, rtp: 2, packets: 3, octets: 4 };
    scene.viewer.write_rtcp(scene.now, 1, &rtcp::sender_report(&report, "x"));
    scene.viewer.write_rtcp(scene.now, 0, &rtcp::sender_report(&report, "x"));
    scene.settle();
    let sent = core::mem::take(&mut scene.sent);
    let (_, opener) = scene.srtp.as_mut().expect("it is ready");
    let mut all = Vec::new();
    for mut datagram in sent {
        let length = opener.open_control(&mut datagram).expect("it is sealed");
        rtcp::read(&datagram[..length], |report| all.push(report)).expect("RTCP");
    }
    assert_eq!(all, [rtcp::Report::Sender(rtcp::SenderReport { ssrc: OWN, ..report })], "of track 1 alone");
}

#[test]
fn a_flood_of_reports_is_bounded() {
    let mut scene = Scene::ready();
    scene.events.clear();
    for _ in 0..10 * RTCP_BURST {
        scene.say(rtcp::receiver_report(7, &[], "x"));
    }
    assert!(scene.viewer.events.len() <= EVENTS_MAX, "{}", scene.viewer.events.len());
    scene.settle();
    scene.say(rtcp::receiver_report(7, &[], "x"));
    let before = scene.events.len();
    scene.settle();
    assert_eq!(scene.events.len(), before, "too many have come just before");
}

#[test]
fn one_that_catches_up_goes_on_when_there_is_room() {
    let mut scene = Scene::ready();
    scene.events.clear();
    let age = Duration::from_secs(2);
    let taken = (0..u16::MAX).take_while(|sequence| scene.give_late(1, *sequence, age).is_ok()).count();
    assert!(taken > 0 && taken <= UNSENT_MAX, "{taken}");
    scene.viewer.waits = true;
    // As many as may wait: once they have gone, there is room again.
    assert!(!scene.got().is_empty());
    assert_eq!(scene.events, [PeerEvent::Report(Report::Writable)]);
    let mut sequences = 300..;
    while scene.give_late(1, sequences.next().unwrap_or(0), age).is_ok() {
        scene.got();
    }
    scene.viewer.waits = true;
    scene.events.clear();
    scene.settle();
    let (at, why) = scene.viewer.next_timeout().expect("it waits");
    assert_eq!((why, scene.events.len()), (PeerWake::Pace, 0));
    scene.now = at;
    scene.viewer.handle_timeout(at, &scene.recent);
    scene.settle();
    assert_eq!(scene.events, [PeerEvent::Report(Report::Writable)]);
}

#[test]
fn its_end_is_told_whichever_way_it_comes() {
    let mut scene = Scene::ready();
    scene.browser.close();
    scene.settle();
    let closed = |events: &[PeerEvent]| match events.last() {
        Some(PeerEvent::Closed(why)) => why.clone(),
        other => panic!("{other:?}"),
    };
    assert!(closed(&scene.events).contains("closed by the peer"));

    let mut scene = Scene::ready();
    while let Some((at, _)) = scene.viewer.next_timeout() {
        assert!(at <= scene.now + 2 * CONSENT, "it waits for ever");
        scene.now = at;
        scene.viewer.handle_timeout(at, &scene.recent);
        scene.settle();
    }
    assert!(closed(&scene.events).contains("nothing was heard"));

    let mut scene = Scene::ready();
    scene.viewer.close(scene.now, "removed");
    scene.settle();
    assert!(scene.browser.is_closed());
}

#[test]
fn another_process_goes_on_with_it_without_a_gap_and_without_a_number_twice() {
    let mut scene = Scene::ready_with(Elements { transport: Some(3), ..Elements::default() });
    (10..13).for_each(|sequence| scene.give(1, sequence).expect("there is room"));
    scene.got();
    scene.say(rtcp::lost(7, OWN, &[257], "x"));
    let repair = scene.got();
    scene.viewer.write_rtcp(scene.now, 1, &rtcp::receiver_report(SOURCE, &[], "x"));
    scene.settle();
    scene.sent.clear();

    let saved = scene.viewer.save().expect("it has come");
    let SavedViewer { session, tracks, way, token, .. } = minicbor::decode(&saved).expect("it is read");
    let session = Session::resume([8; 32], session.read().expect("it is read"));
    let token = token.parse().expect("a token");
    let told = (scene.viewer.news.clone(), Arc::clone(&scene.viewer.gateways), Restarts::default());
    scene.viewer = Viewer::resume(5, session, told, (tracks, token), (way, None));
    scene.events.clear();
    scene.settle();
    assert_eq!(scene.events, [PeerEvent::Report(Report::Writable)], "what came meanwhile is offered");
    assert!(matches!(scene.told.try_recv(), Ok(News::Confirm(5, PLACE))));

    scene.give(1, 14).expect("there is room");
    scene.give_at(9, (1, 15), Duration::ZERO, &[0x65, 1]).expect("there is room");
    let transport =
        |datagram: &Vec<u8>| RtpHeader::new_checked(datagram).expect("RTP").extension(3).map(<[u8]>::to_vec);
    scene.settle();
    assert_eq!(
        scene.sent.iter().map(transport).collect::<Vec<_>>(),
        [4_u8, 5, 6].map(|number| Some(vec![0, number]))
    );
    let got: Vec<_> =
        scene.got().into_iter().map(|(_, ssrc, number, payload)| (ssrc, number, payload)).collect();
    let expected = [(260, vec![14, 7]), (261, SETS.to_vec()), (262, vec![0x65, 1])];
    assert_eq!(got, expected.map(|(number, payload)| (OWN, number, payload)));
    // What it was sent by the other one is not here any more; what is, goes by the next number.
    scene.say(rtcp::lost(7, OWN, &[258, 260], "x"));
    let again = scene.got();
    assert_eq!((again.len(), again[0].2), (1, repair[0].2 + 1));
    // It is still known by its checks, and by what it says.
    let check = scene.browser.check();
    scene.hand(&check);
    scene.viewer.write_rtcp(scene.now, 1, &rtcp::receiver_report(SOURCE, &[], "x"));
    scene.settle();
    let (_, opener) = scene.srtp.as_mut().expect("it is ready");
    let said = scene.sent.iter_mut().filter(|datagram| outflow_rtp::is_rtcp(datagram));
    assert_eq!(said.map(|said| opener.open_control(said).is_ok()).collect::<Vec<_>>(), [true]);
    scene.events.clear();
    scene.say(rtcp::key_frame_request(7, OWN, 1, "x"));
    scene.settle();
    assert!(matches!(scene.events[..], [PeerEvent::Rtcp(_)]), "{:?}", scene.events);
}

#[test]
fn one_that_has_not_come_is_not_handed_over() {
    assert_eq!(Scene::new().viewer.save(), None);
}
