//! A viewer behind a link whose rate changes, in virtual time.

use std::collections::BTreeMap;

use outflow_media::importance::{Class, Importance};
use outflow_rtp::rtcp::transport_cc::Writer;
use outflow_rtp::rtcp::{Report, read};
use outflow_rtp::{Arrivals, PlainHeader};

use super::*;

/// The extension in which packets have their numbers.
const NUMBER: u8 = 3;
/// Packets of a frame, of this many bytes, 25 frames a second.
const PAYLOAD: usize = 1200;

/// A drop-tail queue of 300 ms, and a browser behind it that says what came.
struct Link {
    bps: u64,
    /// Bytes that pass at once where nothing has passed for a while: a token bucket's.
    burst: u64,
    /// When what has passed is made up for.
    free: Time,
    arriving: VecDeque<(Time, u16, usize)>,
    arrivals: Arrivals,
    says: Writer,
    /// Datagrams that were handed to it, and those of them that found no room.
    handed: usize,
    lost: usize,
}

impl Link {
    fn new(bps: u64) -> Self {
        let (arriving, says) = (VecDeque::new(), Writer::new(7, OWN));
        let (free, arrivals) = (Time::ZERO, Arrivals::default());
        Link { bps, burst: 0, free, arriving, arrivals, says, handed: 0, lost: 0 }
    }

    /// Answers whether it does.
    fn takes(&mut self, now: Time, number: u16, bytes: usize) -> bool {
        self.handed += 1;
        let takes = |bytes: u64| Duration::from_nanos(bytes * 8_000_000_000 / self.bps);
        let from = self.free.max(now);
        let passes = takes(self.burst);
        let has_room = from.since(now) < passes + Duration::from_millis(300);
        self.lost += usize::from(!has_room);
        if has_room {
            self.free = from + takes(bytes as u64);
            let at = now + self.free.since(now).saturating_sub(passes);
            self.arriving.push_back((at, number, bytes));
        }
        has_room
    }

    /// What the browser says.
    fn says(&mut self, now: Time) -> Vec<Vec<u8>> {
        while let Some((at, number, bytes)) = self.arriving.pop_front_if(|(at, ..)| *at <= now) {
            self.arrivals.handle(at, number, bytes);
        }
        let mut said = Vec::new();
        if let Some((first, times)) = self.arrivals.poll(now) {
            self.says.write(first, times, "x", |message| said.push(message));
        }
        said
    }
}

/// A stream whose rate follows what is told of the link.
struct Streamed {
    scene: Scene,
    link: Link,
    sequence: u16,
    told_bps: Option<u64>,
    /// The most that was told.
    most_bps: u64,
    /// What got through of the stream: the number of the packet here, and its payload.
    came: Vec<(u16, Vec<u8>)>,
    /// What the viewer has not taken yet.
    owed: VecDeque<(PacketHead, Bytes)>,
}

impl Streamed {
    fn new(bps: u64) -> Self {
        let mut scene = Scene::ready_with(Elements { transport: Some(NUMBER), ..Elements::default() });
        scene.events.clear();
        Streamed {
            scene,
            link: Link::new(bps),
            sequence: 0,
            told_bps: None,
            most_bps: 0,
            came: Vec::new(),
            owed: VecDeque::new(),
        }
    }

    /// Sends frames for a time. `packets` says how many packets each has, by what was told.
    fn run(&mut self, millis: u64, packets: impl Fn(Option<u64>) -> u16) {
        for _ in 0..millis {
            if self.scene.now.as_millis().is_multiple_of(40) {
                for number in 0..packets(self.told_bps) {
                    let class = if number == 0 { Class::Key } else { Class::Reference };
                    let rank = Importance::of(class, 0).rank();
                    self.offer(rank, (0, number == 0), &[7; PAYLOAD]);
                }
            }
            let now = self.scene.now;
            self.scene.viewer.handle_timeout(now, &self.scene.recent);
            self.write();
            self.settle();
            self.link.says(now).into_iter().for_each(|message| self.scene.say(message));
            self.settle();
            self.scene.now = now + Duration::from_millis(1);
        }
    }

    /// The stream has one more packet.
    fn offer(&mut self, rank: u8, (timestamp, marker): (u32, bool), payload: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let header = PlainHeader { marker, payload_type: 96, sequence, timestamp, ssrc: SOURCE };
        let packet = Bytes::from([&header.emit()[..], payload].concat());
        let worth = Worth { rank, arrived: self.scene.now, is_left: false };
        self.owed.push_back((
            PacketHead { track: 1, worth, bytes: packet.len(), ends: None, is_preamble: false },
            packet,
        ));
    }

    /// Gives the viewer what it takes.
    fn write(&mut self) {
        let Scene { now, viewer, recent, .. } = &mut self.scene;
        while let Some((head, packet)) = self.owed.front() {
            let given = || (packet.clone(), recent.add(*now, packet.clone()));
            if viewer.take(*now, head, given, None) == Err(Undelivered::Later) {
                return;
            }
            self.owed.pop_front();
        }
    }

    /// What is sent goes into the link, and what is told of it is read.
    fn settle(&mut self) {
        self.scene.settle();
        let (_, opener) = self.scene.srtp.as_mut().expect("it is ready");
        for mut datagram in core::mem::take(&mut self.scene.sent) {
            if outflow_rtp::is_rtcp(&datagram) {
                continue;
            }
            let bytes = datagram.len();
            let length = opener.open(&mut datagram).expect("it is sealed");
            let packet = RtpHeader::new_checked(&datagram[..length]).expect("RTP");
            let number = packet.extension(NUMBER).and_then(|number| number.try_into().ok());
            let number = u16::from_be_bytes(number.expect("it has one"));
            if self.link.takes(self.scene.now, number, bytes) && packet.ssrc() == OWN {
                self.came.push((packet.sequence(), packet.payload().to_vec()));
            }
        }
        for event in self.scene.events.drain(..) {
            let PeerEvent::Rtcp(said) = event else { continue };
            let told = |report| {
                if let Report::Limit { limit, .. } = report {
                    assert_eq!(limit.media, SOURCE);
                    self.told_bps = Some(limit.bps);
                    self.most_bps = self.most_bps.max(limit.bps);
                }
            };
            read(&said, told).expect("RTCP");
        }
    }

    fn told(&self) -> u64 {
        self.told_bps.expect("it was told")
    }
}

/// 2.4 Mbit/s where the way carries that and a tenth more, else 480 kbit/s.
fn levels(told_bps: Option<u64>) -> u16 {
    if told_bps.is_none_or(|bps| bps > 2_640_000) { 10 } else { 2 }
}

#[test]
fn what_a_way_carries_is_told_when_it_falls_and_when_it_is_back() {
    let mut streamed = Streamed::new(10_000_000);
    streamed.run(5_000, levels);
    assert!(streamed.told() > 2_640_000, "{}", streamed.told());
    streamed.link.bps = 1_000_000;
    streamed.run(2_000, levels);
    assert!(streamed.told() < 2_400_000, "{}", streamed.told());
    streamed.run(8_000, levels);
    assert!((400_000..1_500_000).contains(&streamed.told()), "{}", streamed.told());
    streamed.link.bps = 10_000_000;
    // What is sent says nothing of that: probes do.
    streamed.run(12_000, levels);
    assert!(streamed.told() > 2_640_000, "{}", streamed.told());
}

#[test]
fn a_way_that_becomes_narrow_is_told_of_as_soon_as_packets_wait_there() {
    let mut streamed = Streamed::new(10_000_000);
    streamed.run(5_000, levels);
    streamed.link.bps = 500_000;
    streamed.run(300, levels);
    assert!((300_000..600_000).contains(&streamed.told()), "{}", streamed.told());
    streamed.run(100, levels);
    let before = streamed.link.lost;
    streamed.run(2_600, levels);
    assert!((300_000..600_000).contains(&streamed.told()), "{}", streamed.told());
    assert_eq!(streamed.link.lost, before, "what goes fits");
}

#[test]
fn key_frames_that_wait_do_not_make_a_way_narrow() {
    // 72 kB take 115 ms of it.
    let mut streamed = Streamed::new(5_000_000);
    streamed.run(3_000, |_| 10);
    for _ in 0..10 {
        for (millis, packets) in [(40, 60), (40, 5), (40, 5), (880, 5)] {
            streamed.run(millis, |_| packets);
            assert!(streamed.told() > 2_640_000, "{}", streamed.told());
        }
    }
}

#[test]
fn a_shaper_that_lets_some_packets_through_at_once_is_not_taken_for_a_way_that_carries_more() {
    let mut streamed = Streamed::new(10_000_000);
    streamed.run(3_000, levels);
    (streamed.link.bps, streamed.link.burst) = (700_000, 16_000);
    streamed.run(4_000, levels);
    streamed.most_bps = 0;
    let before = streamed.link.handed;
    streamed.run(60_000, levels);
    assert!(streamed.most_bps < 1_000_000, "{} was told", streamed.most_bps);
    // Beside the 3,000 of the stream: little, though it is tried again and again.
    let filled = streamed.link.handed - before - 3_000;
    assert!((50..1_000).contains(&filled), "{filled} packets");
    (streamed.link.bps, streamed.link.burst) = (10_000_000, 0);
    streamed.run(25_000, levels);
    assert!(streamed.told() > 2_640_000, "{}", streamed.told());
}

#[test]
fn a_stream_that_grows_is_carried() {
    let mut streamed = Streamed::new(20_000_000);
    for packets in [5, 10, 20, 30] {
        streamed.run(5_000, |_| packets);
        let bps = u64::from(packets) * 1_200 * 8 * 25;
        assert!(streamed.told() > bps, "{} of {bps}", streamed.told());
    }
}

#[test]
fn a_way_that_carries_enough_is_probed_no_more() {
    let mut streamed = Streamed::new(100_000_000);
    streamed.run(10_000, |_| 10);
    let before = streamed.link.handed;
    streamed.run(10_000, |_| 10);
    assert_eq!(streamed.link.handed - before, 2_500, "the stream alone");
}

/// Two megabits a second in groups of 50 pictures, of which every second one is not needed by others.
fn pictures(streamed: &mut Streamed, numbers: core::ops::Range<u32>) {
    for number in numbers {
        let (class, count) = match number % 50 {
            0 => (Class::Key, 30),
            at if at % 2 == 0 => (Class::Reference, 10),
            _ => (Class::Disposable, 6),
        };
        let layer = [Class::Key, Class::Reference].iter().position(|needed| *needed == class).unwrap_or(2);
        for index in 0..count {
            let says = [number as u8, index, count];
            let payload = [&[0x41], &says[..], &[7; PAYLOAD - 4]].concat();
            let rank = Importance::of(class, layer as u8).rank();
            streamed.offer(rank, (number * 3_600, index + 1 == count), &payload);
        }
        streamed.run(40, |_| 0);
    }
}

/// The pictures that came whole, by their numbers, and whether each can be decoded.
fn decoded(came: &[(u16, Vec<u8>)]) -> Vec<(u32, bool)> {
    let payloads = came.iter().filter_map(|(_, payload)| payload.get(1..4)?.first_chunk::<3>());
    let mut parts = BTreeMap::<u8, u8>::new();
    let (mut whole, mut newest): (Vec<(u32, bool)>, Option<u32>) = (Vec::new(), None);
    let mut last_needed = None;
    for &[number, _, count] in payloads {
        let have = parts.entry(number).or_default();
        *have += 1;
        if *have < count {
            continue;
        }
        parts.remove(&number);
        let before = newest.unwrap_or(u32::from(number));
        let number = before.wrapping_add_signed(i32::from((number.wrapping_sub(before as u8)).cast_signed()));
        newest = Some(number);
        // It needs the last one before it that others need.
        let needs = (number % 50 != 0).then(|| number - if number % 2 == 0 { 2 } else { 1 });
        let is_decoded = needs.is_none_or(|needs| last_needed == Some(needs));
        if number % 2 == 0 && is_decoded {
            last_needed = Some(number);
        }
        whole.push((number, is_decoded));
    }
    whole
}

#[test]
fn where_less_is_carried_whole_pictures_go_that_can_be_decoded() {
    let mut streamed = Streamed::new(10_000_000);
    pictures(&mut streamed, 0..100);
    assert_eq!(decoded(&streamed.came).len(), 100, "all of them");
    streamed.link.bps = 1_000_000;
    pictures(&mut streamed, 100..200);
    // It has been found out.
    (streamed.link.lost, streamed.link.handed) = (0, 0);
    streamed.came.clear();
    pictures(&mut streamed, 200..700);
    let seen = decoded(&streamed.came);
    let (lost, handed) = (streamed.link.lost, streamed.link.handed);
    assert!(lost * 50 < handed, "{lost} of {handed} found no room");
    let useless = seen.iter().filter(|(_, is_decoded)| !is_decoded).count();
    assert!(useless * 50 < seen.len(), "{useless} of {} came for nothing", seen.len());
    // Of a group that is 18, were the rate of the way known, and the same at any time: the key picture and 17 behind it.
    assert!(seen.len() > 100, "{} of 500 came", seen.len());
    let numbers: Vec<u16> = streamed.came.iter().map(|(number, _)| *number).collect();
    let gaps = numbers.windows(2).filter(|pair| pair[1] != pair[0].wrapping_add(1)).count();
    assert!(gaps <= lost, "{gaps} gaps, {lost} lost: what is left out is not missed");
    streamed.link.bps = 10_000_000;
    pictures(&mut streamed, 700..1_400);
    streamed.came.clear();
    pictures(&mut streamed, 1_400..1_500);
    assert_eq!(decoded(&streamed.came).len(), 100, "all of them again");
}
