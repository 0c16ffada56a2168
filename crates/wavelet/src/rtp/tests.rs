use std::collections::BTreeSet;

use bytes::Bytes;
use outflow_packet::gmc::Mark;
use outflow_rtp::RtpHeader;
use outflow_rtp::payload::jpeg2000::{Header, MainHeader};
use proptest::prelude::*;

use super::*;
use crate::codestream::Codestream;
use crate::coding::Coding;
use crate::openjpeg::{decode, encode};
use crate::picture::{Picture, Sampling, Shape};

const LAYERS: usize = 5;
const INTERVAL: u32 = 3600;
/// Small packets, so that layers have several.
const BYTES: usize = 200;

fn frames(count: u8) -> Vec<Codestream> {
    let shape = Shape::new(48, 48, Sampling::C420).expect("small");
    let coding = Coding::of_ratios(vec![20.0, 10.0, 6.0, 4.0, 2.0]).expect("they decrease");
    let frame = |number: u8| {
        let mut random = fastrand::Rng::with_seed(number.into());
        let samples = (0..shape.bytes()).map(|at| (at % 48) as u8 + random.u8(0..90)).collect();
        let picture = Picture::new(shape, samples).expect("as many");
        Codestream::new(encode(&picture, &coding, "").expect("it can be coded")).expect("valid")
    };
    (0..count).map(frame).collect()
}

fn packets(frames: &[Codestream]) -> Vec<Bytes> {
    let mut packetizer = Packetizer::new(7, u16::MAX - 5, BYTES);
    let mut packets = Vec::new();
    for (frame, number) in frames.iter().zip(0..) {
        let each = |packet: &[u8]| packets.push(Bytes::copy_from_slice(packet));
        packetizer.packets(frame, INTERVAL * number, each).expect("short enough");
    }
    packets
}

fn read(packet: &Bytes) -> (RtpHeader<'_>, Header) {
    let rtp = RtpHeader::new_checked(packet).expect("RTP");
    let (header, _) = Header::parse(rtp.payload()).expect("JPEG 2000");
    (rtp, header)
}

fn assembled(packets: impl IntoIterator<Item = Bytes>) -> (Vec<Assembled>, Counts) {
    let (mut assembler, mut told) = (Assembler::default(), Vec::new());
    packets.into_iter().for_each(|packet| assembler.handle(packet, |frame| told.push(frame)));
    assembler.flush(|frame| told.push(frame));
    (told, assembler.counts())
}

#[test]
fn packets_are_of_one_layer_each_which_is_their_priority() {
    let frames = frames(2);
    let mut ends = BTreeSet::new();
    for packet in packets(&frames) {
        let (rtp, header) = read(&packet);
        assert!(packet.len() <= BYTES);
        assert_eq!((rtp.ssrc(), rtp.payload_type()), (7, PAYLOAD_TYPE));
        assert_eq!(u32::from(header.main_header_id), rtp.timestamp() / INTERVAL);
        let frame = &frames[(rtp.timestamp() / INTERVAL) as usize];
        let layer =
            frame.pieces().iter().position(|piece| piece.end > header.offset as usize).expect("within");
        assert_eq!(usize::from(header.priority), layer);
        assert_eq!(header.main_header != MainHeader::None, layer == 0);
        let end = header.offset as usize + rtp.payload().len() - 8;
        assert!(end <= frame.pieces()[layer].end || end == frame.length(LAYERS));
        assert_eq!(rtp.marker(), end == frame.length(LAYERS));
        ends.extend(rtp.marker().then_some(rtp.timestamp()));
    }
    assert_eq!(ends.len(), 2);
}

#[test]
fn main_headers_have_numbers_of_their_own_but_for_one_in_four() {
    let frames = frames(1);
    let mut other = frames[0].to_bytes();
    let at = frames[0].main_header().len() - 1;
    other[at] ^= 1;
    let other = Codestream::new(other).expect("a comment is a comment");
    let mut packetizer = Packetizer::new(7, 0, BYTES);
    let mut ids = Vec::new();
    for frame in [&frames[0], &frames[0]].into_iter().chain([&other, &frames[0]].into_iter().cycle().take(7))
    {
        let mut id = 0;
        let each = |packet: &[u8]| id = read(&Bytes::copy_from_slice(packet)).1.main_header_id;
        packetizer.packets(frame, 0, each).expect("short enough");
        ids.push(id);
    }
    assert_eq!(ids, [0, 1, 2, 3, 0, 5, 6, 7, 0]);
}

#[test]
fn what_offsets_cannot_say_is_not_sent() {
    let frames = frames(1);
    let refused = Packetizer::new(7, 0, 20).packets(&frames[0], 0, |_| panic!("a packet"));
    assert_eq!(refused, Err(TooLong(frames[0].length(LAYERS))));
}

#[test]
fn frames_come_out_as_they_went_in() {
    let frames = frames(3);
    let (told, counts) = assembled(packets(&frames));
    assert!(told.iter().zip(&frames).all(|(told, frame)| told.codestream.as_ref() == Some(frame)));
    assert!(told.iter().all(|frame| !frame.gap));
    let expected = Counts { frames: 3, packets: packets(&frames).len() as u64, ..Counts::default() };
    assert_eq!((told.len(), counts), (3, expected));
}

#[test]
fn packets_that_change_places_make_no_gap() {
    let frames = frames(2);
    let mut packets = packets(&frames);
    packets.chunks_mut(4).for_each(<[_]>::reverse);
    // The first of all tells where numbers begin.
    packets.swap(0, 3);
    let (told, counts) = assembled(packets);
    assert_eq!((told.len(), counts.gaps, counts.late), (2, 0, 0));
    assert!(told.iter().zip(&frames).all(|(told, frame)| told.codestream.as_ref() == Some(frame)));
}

/// What a relay leaves of a stream for a receiver of a lower level: no end of a frame, and no gaps in the
/// sequence numbers.
#[test]
fn layers_that_were_left_out_are_no_gap() {
    let frames = frames(3);
    for layers in 1..LAYERS {
        let kept: Vec<_> = packets(&frames)
            .into_iter()
            .filter(|packet| usize::from(read(packet).1.priority) <= layers)
            .enumerate()
            .map(|(sequence, packet)| {
                let mut packet = packet.to_vec();
                outflow_rtp::set_sequence(&mut packet, sequence as u16);
                Bytes::from(packet)
            })
            .collect();
        let (told, counts) = assembled(kept);
        assert_eq!((told.len(), counts.frames, counts.gaps), (3, 3, 0));
        for frame in told {
            let codestream = frame.codestream.expect("its base is there");
            assert_eq!((codestream.layers(), codestream.layers_coded()), (layers, LAYERS));
            decode(&codestream.to_bytes()).expect("strictly");
        }
    }
}

#[test]
fn a_lost_main_header_is_that_of_the_frame_before() {
    let frames = frames(3);
    let is_header = |packet: &Bytes, frame: u32| {
        let (rtp, header) = read(packet);
        rtp.timestamp() == frame * INTERVAL && header.main_header != MainHeader::None
    };
    let without = |frame| packets(&frames).into_iter().filter(move |packet| !is_header(packet, frame));
    // The second frame is the first whose header has a number.
    let (told, counts) = assembled(without(2));
    assert_eq!((counts.frames, counts.lost, counts.recovered), (3, 0, 1));
    assert!(told.iter().zip(&frames).all(|(told, frame)| told.codestream.as_ref() == Some(frame)));
    let (told, counts) = assembled(without(0));
    assert_eq!((told.len(), counts.frames, counts.lost, counts.recovered), (3, 2, 1, 0));
    assert_eq!(told[0].codestream, None);
}

#[test]
fn another_source_begins_again() {
    let frames = frames(2);
    let first = packets(&frames[..1]);
    let mut second = packets(&frames[1..]);
    for packet in &mut second {
        let mut bytes = packet.to_vec();
        outflow_rtp::set_ssrc(&mut bytes, 8);
        *packet = bytes.into();
    }
    // Without its main header: that of another source is of no use.
    second.retain(|packet| read(packet).1.main_header == MainHeader::None);
    let half = first.len() / 2;
    let (told, counts) = assembled(first[..half].iter().cloned().chain(second));
    assert_eq!((told.len(), counts.frames, counts.lost, counts.recovered), (2, 1, 1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is lost, doubled, or comes late: each frame is a prefix of what was sent that decodes
    /// strictly, or counts as lost.
    #[test]
    fn whatever_is_lost_what_is_told_decodes(
        losses in prop::collection::vec(any::<bool>(), 1..80),
        moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6),
        likely in 1..12_usize,
    ) {
        let frames = frames(4);
        let mut packets: Vec<_> = packets(&frames)
            .into_iter()
            .enumerate()
            .filter(|(at, _)| at % likely > 0 || !losses[at % losses.len()])
            .map(|(_, packet)| packet)
            .collect();
        prop_assume!(!packets.is_empty());
        for (from, to) in &moves {
            let packet = packets[from.index(packets.len())].clone();
            packets.insert(to.index(packets.len()), packet);
        }
        let (told, counts) = assembled(packets);
        prop_assert_eq!(counts.frames + counts.lost, told.len() as u64);
        // Whether something is missing at the very end cannot be known.
        let last = told.last().map(|told| told.timestamp);
        for told in told {
            let Some(codestream) = told.codestream else { continue };
            let frame = &frames[(told.timestamp / INTERVAL) as usize];
            let mut prefix = frame.clone();
            prefix.truncate(codestream.layers());
            prop_assert_eq!(&codestream, &prefix);
            prop_assert!(told.gap || codestream.layers() == LAYERS || last == Some(told.timestamp));
            prop_assert!(decode(&codestream.to_bytes()).is_ok());
        }
    }
}

#[test]
fn packets_for_routers_say_their_layers_and_are_the_same_otherwise() {
    let mut marker = Marker::default();
    for packet in packets(&frames(2)) {
        let marked = marker.mark(&packet);
        assert_eq!(marked.len(), packet.len() + Mark::BYTES);
        let (plain, read) = (RtpHeader::new_checked(&packet), RtpHeader::new_checked(&marked));
        let (plain, read) = (plain.expect("RTP"), read.expect("RTP"));
        assert_eq!((plain.payload(), plain.sequence()), (read.payload(), read.sequence()));
        let (header, _) = Header::parse(plain.payload()).expect("a header");
        let mark = Mark::read(&marked).expect("a mark");
        assert_eq!((mark.layer, usize::from(mark.layers)), (header.priority.saturating_sub(1), LAYERS));
        assert!(mark.opens || !mark.first, "each frame can be decoded by itself");
    }
}
