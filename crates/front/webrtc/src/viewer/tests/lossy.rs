//! A viewer that is far away, on a way that loses packets, in virtual time.

use std::collections::BTreeMap;

use outflow_media::importance::{Class, Importance};
use outflow_rtp::rtcp::transport_cc::Writer;
use outflow_rtp::{Arrivals, PlainHeader, flexfec};

use super::*;
use crate::repairs::Repairs;

/// The extension in which packets have their numbers.
const NUMBER: u8 = 3;
const PROTECTION: Protection = Protection { payload_type: 49, ssrc: 4000, media: OWN };
/// Packets of a picture, 25 of which there are in a second, and of a key frame, which is every 50th.
const PACKETS: u16 = 8;
const KEY_PACKETS: u16 = 24;

/// What the viewer has got.
#[derive(Default)]
struct Got {
    packets: BTreeMap<u16, Vec<u8>>,
    repairs: Vec<Vec<u8>>,
    /// Those that were lost and came back by them, before they could have come once more.
    recovered: BTreeMap<u16, Vec<u8>>,
}

struct Far {
    scene: Scene,
    sent: Arc<Repairs>,
    one_way: Duration,
    lost_permille: u64,
    random: u64,
    /// What is under way to the viewer, and from it.
    there: VecDeque<(Time, Vec<u8>)>,
    back: VecDeque<(Time, Vec<u8>)>,
    arrivals: Arrivals,
    says: Writer,
    got: Got,
    /// All packets of the picture as they were sent, and those of them that were lost.
    all: BTreeMap<u16, Vec<u8>>,
    lost: Vec<u16>,
    /// Bytes of the picture, and of repair packets.
    bytes: [usize; 2],
    sequence: u16,
}

impl Far {
    fn new(round_trip_ms: u64, lost_permille: u64) -> Self {
        let sent = Arc::<Repairs>::default();
        let fec = Fec::new(PROTECTION, 0, Arc::clone(&sent));
        let elements = Elements { delay: Some(2), transport: Some(NUMBER), descriptor: None };
        let scene = super::Scene::with_all(elements, Some(Box::new(fec))).come();
        Far {
            scene,
            sent,
            one_way: Duration::from_millis(round_trip_ms / 2),
            lost_permille,
            random: 1,
            there: VecDeque::new(),
            back: VecDeque::new(),
            arrivals: Arrivals::default(),
            says: Writer::new(7, OWN),
            got: Got::default(),
            all: BTreeMap::new(),
            lost: Vec::new(),
            bytes: [0; 2],
            sequence: 0,
        }
    }

    fn loses(&mut self) -> bool {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 1000 < self.lost_permille
    }

    fn picture(&mut self, number: u32) {
        let is_key = number.is_multiple_of(50);
        let (class, count) = if is_key { (Class::Key, KEY_PACKETS) } else { (Class::Reference, PACKETS) };
        for index in 0..count {
            self.sequence = self.sequence.wrapping_add(1);
            let (sequence, marker, timestamp) = (self.sequence, index + 1 == count, number * 3_600);
            let header = PlainHeader { marker, payload_type: 96, sequence, timestamp, ssrc: SOURCE };
            // Of lengths of their own.
            let payload = vec![index as u8; 1_000 + usize::from(index) * 8];
            let packet = Bytes::from([&header.emit()[..], &[0x41], &payload].concat());
            let (rank, arrived) = (Importance::of(class, 0).rank(), self.scene.now);
            let worth = Worth { rank, arrived, is_left: false };
            let head = PacketHead { track: 1, worth, bytes: packet.len(), ends: None, is_preamble: false };
            let Scene { now, viewer, recent, .. } = &mut self.scene;
            let given = || (packet.clone(), recent.add(*now, packet.clone()));
            viewer.take(*now, &head, given, None).expect("there is room");
        }
    }

    /// Some seconds pass, from this picture on.
    fn run(&mut self, pictures: core::ops::Range<u32>) {
        for number in pictures {
            self.picture(number);
            for _ in 0..40 {
                let now = self.scene.now;
                self.scene.viewer.handle_timeout(now, &self.scene.recent);
                self.settle();
                while let Some((_, packet)) = self.there.pop_front_if(|(at, _)| *at <= now) {
                    self.arrive(packet);
                }
                if let Some((first, times)) = self.arrivals.poll(now) {
                    let (back, at) = (&mut self.back, now + self.one_way);
                    self.says.write(first, times, "x", |message| back.push_back((at, message)));
                }
                while let Some((_, said)) = self.back.pop_front_if(|(at, _)| *at <= now) {
                    self.scene.say(said);
                }
                self.scene.now = now + Duration::from_millis(1);
            }
        }
    }

    fn settle(&mut self) {
        self.scene.settle();
        for mut datagram in core::mem::take(&mut self.scene.sent) {
            if outflow_rtp::is_rtcp(&datagram) {
                continue;
            }
            let (_, opener) = self.scene.srtp.as_mut().expect("it is ready");
            let length = opener.open(&mut datagram).expect("it is sealed");
            datagram.truncate(length);
            let (ssrc, sequence) = of(&datagram);
            let loses = self.loses();
            if ssrc == OWN {
                self.all.insert(sequence, datagram.clone());
                self.bytes[0] += length;
                self.lost.extend(loses.then_some(sequence));
            } else if ssrc == PROTECTION.ssrc {
                self.bytes[1] += length;
            }
            if !loses {
                self.there.push_back((self.scene.now + self.one_way, datagram));
            }
        }
    }

    fn arrive(&mut self, packet: Vec<u8>) {
        let header = RtpHeader::new_checked(&packet).expect("RTP");
        let number = header.extension(NUMBER).and_then(|number| number.try_into().ok());
        self.arrivals.handle(self.scene.now, u16::from_be_bytes(number.expect("it has one")), packet.len());
        let (ssrc, sequence) = of(&packet);
        if ssrc == OWN {
            self.got.packets.insert(sequence, packet);
        } else if ssrc == PROTECTION.ssrc {
            assert_eq!(header.payload_type(), PROTECTION.payload_type);
            self.got.repairs.push(header.payload().to_vec());
            let repair = flexfec::Repair::new_checked(header.payload()).expect("a repair packet");
            assert_eq!(repair.source(), OWN);
            let (came, lacking) =
                (&self.got.packets, repair.numbers().find(|at| !self.got.packets.contains_key(at)));
            let recovered = repair.recover(Some(NUMBER), |number| came.get(&number).map(Vec::as_slice));
            self.got.recovered.extend(lacking.zip(recovered));
        }
    }
}

fn of(packet: &[u8]) -> (u32, u16) {
    let header = RtpHeader::new_checked(packet).expect("RTP");
    (header.ssrc(), header.sequence())
}

#[test]
fn most_of_what_is_lost_far_away_comes_back_without_being_sent_once_more() {
    let mut far = Far::new(400, 50);
    far.run(0..100);
    assert!(far.sent.sent() > 0, "it has begun");
    (far.bytes, far.lost) = ([0; 2], Vec::new());
    far.got.recovered.clear();
    far.run(100..600);
    let recovered = far.lost.iter().filter(|number| far.got.recovered.contains_key(number)).count();
    let lost = far.lost.len();
    assert!((150..350).contains(&lost) && recovered * 2 > lost, "{recovered} of {lost}");
    let [picture, repairs] = far.bytes;
    let percent = repairs * 100 / picture;
    assert!((8..=14).contains(&percent), "{percent} %");
    for (number, packet) in &far.got.recovered {
        let mut expected = far.all[number].clone();
        // The number of the transport is not covered: it stands behind how long pictures wait.
        assert_eq!(expected[20], NUMBER << 4 | 1);
        expected[21..23].fill(0);
        assert_eq!(packet, &expected, "{number}");
    }
}

#[test]
fn nothing_is_covered_near_by_or_where_nothing_is_lost() {
    for (round_trip_ms, lost_permille) in [(60, 50), (400, 0), (60, 0)] {
        let mut far = Far::new(round_trip_ms, lost_permille);
        far.run(0..200);
        assert!(far.all.len() > 1_000 && far.got.repairs.is_empty(), "{round_trip_ms} ms");
        assert_eq!(far.sent.sent(), 0);
    }
}

#[test]
fn packets_that_repair_have_a_source_and_numbers_of_their_own_which_another_process_goes_on_with() {
    let mut far = Far::new(400, 100);
    far.run(0..150);
    let sent = far.sent.sent();
    let saved = far.scene.viewer.save().expect("it has come");
    let SavedViewer { session, tracks, way, token, protection } =
        minicbor::decode(&saved).expect("it is read");
    assert_eq!(protection, Some((49, 4000, OWN, 256 + sent as u32)));
    let session = Session::resume([8; 32], session.read().expect("it is read"));
    let viewer = &mut far.scene.viewer;
    let told = (viewer.news.clone(), Arc::clone(&viewer.gateways), Restarts::default());
    let fec = protection.map(|saved| Box::new(Fec::resume(saved, Arc::clone(&far.sent))));
    let token = token.parse().expect("a token");
    far.scene.viewer = Viewer::resume(5, session, told, (tracks, token), (way, fec));
    // It finds out again what is lost; no number comes twice, or it would not open.
    far.run(150..300);
    assert!(far.sent.sent() > sent + 20, "{} and {sent}", far.sent.sent());
}
