//! A viewer behind a link whose rate changes, in virtual time.

use outflow_rtp::Arrivals;
use outflow_rtp::rtcp::transport_cc::Writer;
use outflow_rtp::rtcp::{Report, read};

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
    /// Datagrams that were handed to it.
    handed: usize,
}

impl Link {
    fn new(bps: u64) -> Self {
        let (arriving, says) = (VecDeque::new(), Writer::new(7, OWN));
        Link { bps, burst: 0, free: Time::ZERO, arriving, arrivals: Arrivals::default(), says, handed: 0 }
    }

    fn takes(&mut self, now: Time, number: u16, bytes: usize) {
        self.handed += 1;
        let takes = |bytes: u64| Duration::from_nanos(bytes * 8_000_000_000 / self.bps);
        let from = self.free.max(now);
        let passes = takes(self.burst);
        if from.since(now) < passes + Duration::from_millis(300) {
            self.free = from + takes(bytes as u64);
            let at = now + self.free.since(now).saturating_sub(passes);
            self.arriving.push_back((at, number, bytes));
        }
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
}

impl Streamed {
    fn new(bps: u64) -> Self {
        let mut scene = Scene::ready_with(Elements { delay: None, transport: Some(NUMBER) });
        scene.events.clear();
        Streamed { scene, link: Link::new(bps), sequence: 0, told_bps: None, most_bps: 0 }
    }

    /// Sends frames for a time. `packets` says how many packets each has, by what was told.
    fn run(&mut self, millis: u64, packets: impl Fn(Option<u64>) -> u16) {
        for _ in 0..millis {
            if self.scene.now.as_millis().is_multiple_of(40) {
                for number in 0..packets(self.told_bps) {
                    let first = if number == 0 { 0x65 } else { 0x41 };
                    let payload = [&[first][..], &[7; PAYLOAD - 1]].concat();
                    self.sequence += 1;
                    let given = self.scene.give_bytes((1, self.sequence), Duration::ZERO, &payload);
                    assert_eq!(given, Ok(()));
                }
            }
            let now = self.scene.now;
            self.scene.viewer.handle_timeout(now);
            self.settle();
            self.link.says(now).into_iter().for_each(|message| self.scene.say(message));
            self.settle();
            self.scene.now = now + Duration::from_millis(1);
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
            self.link.takes(self.scene.now, u16::from_be_bytes(number.expect("it has one")), bytes);
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
