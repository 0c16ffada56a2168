//! Receivers that join when the source was away and is back.

use super::*;
use crate::Share;

const CLIP: &[u8] = include_bytes!("../../../../../assets/demo.ts");
const PACKET: usize = 188;
const DATAGRAM: usize = 7 * PACKET;

/// The first bytes of the clip's parameter sets: H.264's SPS.
const PARAMETERS: [u8; 4] = [0, 0, 1, 0x67];

#[test]
fn none_joins_at_what_came_before_another_source() {
    let mut bench = Bench::new();
    bench.frame(true);
    bench.frame(false);
    bench.wait(2_500);
    let early = bench.join(false);
    assert_eq!(bench.sent[early.0], [0, 1], "the last that there was");
    bench.stream.handle_source(bench.now, format());
    bench.frame(false);
    let late = bench.join(false);
    bench.frame(false);
    assert!(bench.sent[late.0].is_empty(), "in the midst of another group of pictures");
    bench.frame(true);
    bench.frame(false);
    assert_eq!(bench.sent[late.0], [4, 5]);
    assert_eq!(bench.sent[early.0], [0, 1, 2, 3, 4, 5], "one that was there stays");
}

/// A transport stream whose source is silent for a while.
struct Silence {
    stream: Stream,
    now: Time,
}

impl Silence {
    /// After these packets.
    fn after(first: &[u8]) -> Self {
        let stream = Stream::new(StreamOptions { ring_bytes: 1 << 20, ..options() });
        let mut silence = Silence { stream, now: Time::ZERO };
        silence.stream.handle_source(Time::ZERO, Format::Ts);
        silence.sends(first);
        silence.now = Time::from_millis(2_500);
        silence.serve();
        assert!(!silence.stream.source_up().0, "it is away");
        silence
    }

    fn sends(&mut self, packets: &[u8]) {
        for datagram in packets.chunks(DATAGRAM) {
            assert!(self.stream.handle_media(self.now, 0, BytesMut::from(datagram).into()));
            self.serve();
        }
    }

    /// What is sent now.
    fn serve(&mut self) -> Vec<u8> {
        let mut sent = Vec::new();
        loop {
            match self.stream.poll(self.now) {
                Output::Order(order) => {
                    let packets = self.stream.packets(&order, Share::WHOLE);
                    sent.extend(packets.flat_map(|(_, entry, _)| entry.packet.bytes.to_vec()));
                }
                Output::Wait { .. } => return sent,
                Output::Event(_)
                | Output::GoOn
                | Output::SenderReports(_)
                | Output::Feedback(_)
                | Output::HandOver(_)
                | Output::Stages(_) => {}
            }
        }
    }

    fn joins(&mut self) -> Vec<u8> {
        self.stream.handle_join(self.now, 1, SinkSpec::new(Encapsulation::Ts, Transport::Stream));
        self.serve()
    }
}

/// Where a packet of the clip's picture begins, counted from 0.
fn picture_packet(index: usize) -> usize {
    let is_picture = |packet: &[u8]| (packet[1] & 0x1f, packet[2]) == (1, 0);
    let packets = CLIP.chunks(PACKET).enumerate().filter(|(_, packet)| is_picture(packet));
    packets.map(|(at, _)| at * PACKET).nth(index).expect("as many packets")
}

#[test]
fn a_receiver_that_joins_a_source_that_began_again_gets_its_first_key_frame_whatever_its_counters_were() {
    for packets in 40..72 {
        let mut silence = Silence::after(&CLIP[..picture_packet(packets)]);
        silence.sends(&CLIP[..30 * DATAGRAM]);
        let sent = silence.joins();
        assert!(sent.starts_with(&CLIP[..DATAGRAM]), "after {packets} packets");
        assert_eq!(sent.len(), 30 * DATAGRAM);
    }
}

#[test]
fn a_receiver_that_joins_a_source_that_lost_its_first_packets_gets_parameter_sets_first() {
    for packets in 40..72 {
        let mut silence = Silence::after(&CLIP[..picture_packet(packets)]);
        let (first, second) = (DATAGRAM, 40 * DATAGRAM);
        silence.sends(&CLIP[first..second]);
        // The source before, if counters go on by chance.
        let sent = silence.joins();
        assert!(sent.is_empty() || sent.starts_with(&CLIP[..DATAGRAM]), "after {packets} packets");
        silence.sends(&CLIP[second..150 * DATAGRAM]);
        let sent = silence.joins();
        let parameters = sent.windows(PARAMETERS.len()).position(|bytes| bytes == PARAMETERS);
        assert!(parameters.is_some_and(|at| at < DATAGRAM), "after {packets} packets: {parameters:?}");
    }
}

#[test]
fn a_source_that_only_paused_is_joined_at_the_key_frame_before() {
    let (first, second) = (20 * DATAGRAM, 40 * DATAGRAM);
    let mut silence = Silence::after(&CLIP[..first]);
    silence.sends(&CLIP[first..second]);
    let sent = silence.joins();
    assert!(sent.starts_with(&CLIP[..first]) && sent.ends_with(&CLIP[first..second]));
}
