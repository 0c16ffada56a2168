use bytes::Bytes;
use outflow_media::jpeg2000::{Piece, Unit as J2kUnit};
use outflow_media::testing::assert_that_pictures_end;
use proptest::prelude::*;

use super::*;
use crate::PlainHeader;
use crate::payload::jpeg2000 as j2k;
use crate::payload::jpeg2000::{MainHeader, NO_PRIORITY, Priorities};

const HEADER: PlainHeader =
    PlainHeader { marker: false, payload_type: 96, sequence: 0, timestamp: 0, ssrc: 1 };

fn track(codec: Codec) -> Track {
    Track {
        codec,
        payload_type: 96,
        clock_rate: 90_000,
        channels: 0,
        fmtp: String::new(),
        encoding: String::new(),
        extensions: Vec::new(),
    }
}

fn h264_track() -> Track {
    track(Codec::H264 { sps: None, pps: None })
}

fn aac_track() -> Track {
    track(Codec::Aac { config: Bytes::new(), size_length: 13, index_length: 3, index_delta_length: 3 })
}

/// Gives packets to a reader with sequence numbers that count up.
struct Sender {
    reader: RtpReader,
    sequence: u16,
}

impl Sender {
    fn new(track: &Track) -> Self {
        Sender { reader: RtpReader::new(3, track), sequence: 65_530 }
    }

    fn send(&mut self, timestamp: u32, marker: bool, payload: &[u8]) -> Tag {
        self.sequence = self.sequence.wrapping_add(1);
        self.send_as(self.sequence, timestamp, marker, payload)
    }

    fn send_as(&mut self, sequence: u16, timestamp: u32, marker: bool, payload: &[u8]) -> Tag {
        let header = PlainHeader { marker, payload_type: 96, sequence, timestamp, ssrc: 1 };
        self.reader.read(&[&header.emit()[..], payload].concat()).unwrap()
    }
}

const IDR: [u8; 3] = [0x65, 0x88, 0x84];
const P: [u8; 3] = [0x41, 0x9a, 0x24];
const B: [u8; 3] = [0x01, 0x9e, 0x41];

fn summary(tag: Tag) -> (u32, Kind, bool, bool, bool) {
    (tag.frame, tag.kind, tag.first, tag.last, tag.key)
}

#[test]
fn h264_parameter_sets_key_frame_fragments_and_b_frames() {
    let mut sender = Sender::new(&h264_track());
    use Kind::{Bidirectional, Header, Intra, Predicted};
    // STAP-A with both parameter sets.
    let sets = sender.send(0, false, &[24, 0, 2, 0x67, 1, 0, 1, 0x68]);
    assert_eq!(summary(sets), (1, Header, true, false, false));
    assert_eq!(sets.track, 3);
    let start = sender.send(0, false, &[0x7c, 0x85, 0x88, 0x84]);
    assert_eq!(summary(start), (1, Intra, false, false, true));
    assert_eq!(summary(sender.send(0, false, &[0x7c, 0x05, 1, 2])), (1, Intra, false, false, true));
    assert_eq!(summary(sender.send(0, true, &[0x7c, 0x45, 1, 2])), (1, Intra, false, true, true));
    let p = sender.send(9000, true, &P);
    assert_eq!(summary(p), (2, Predicted, true, true, false));
    assert_eq!(p.needs, Needs::back(1));
    let b = sender.send(3000, true, &B);
    assert_eq!(summary(b), (3, Bidirectional, true, true, false));
    assert_eq!(sender.send(6000, true, &B).needs, Needs::back(2));
}

#[test]
fn a_parameter_set_and_a_slice_in_one_packet_are_one_key_packet() {
    let mut sender = Sender::new(&h264_track());
    let all = [&[24, 0, 1, 0x67, 0, 1, 0x68, 0, 3][..], &IDR].concat();
    assert_eq!(summary(sender.send(0, true, &all)), (1, Kind::Intra, true, true, true));
}

#[test]
fn a_frame_whose_start_was_lost_has_no_first_packet() {
    let mut sender = Sender::new(&h264_track());
    sender.send(0, true, &IDR);
    sender.sequence = sender.sequence.wrapping_add(2);
    let rest = sender.send(3000, false, &[0x5c, 0x01, 9, 9]);
    assert_eq!(summary(rest), (2, Kind::Predicted, false, false, false));
    assert_eq!(rest.needs, Needs::back(1));
    // first_mb_in_slice is not 0.
    let later = sender.send(6000, true, &[0x41, 0b0101_0000]);
    assert_eq!((later.frame, later.first), (3, false));
}

#[test]
fn a_sender_without_markers_or_with_a_marker_on_each_packet_is_followed() {
    let mut sender = Sender::new(&h264_track());
    assert_eq!(sender.send(0, false, &IDR).frame, 1);
    assert_eq!(sender.send(3000, false, &P).frame, 2);
    let sets = sender.send(6000, true, &[0x67, 1]);
    let slice = sender.send(6000, true, &IDR);
    assert_eq!((sets.frame, slice.frame), (3, 3));
    assert!(sets.first && !slice.first);
}

#[test]
fn a_constant_timestamp_is_split_at_marker_and_picture() {
    let mut sender = Sender::new(&h264_track());
    assert_eq!(sender.send(5, true, &IDR).frame, 1);
    assert_eq!(sender.send(5, true, &P).frame, 2);
    assert_eq!(sender.send(5, false, &P).frame, 3);
    assert_eq!(sender.send(5, true, &[0x41, 0b0101_0000]).frame, 3, "a later slice");
}

#[test]
fn late_packets_belong_to_their_own_frame_and_change_nothing() {
    let mut sender = Sender::new(&h264_track());
    sender.send_as(10, 0, false, &IDR);
    sender.send_as(12, 3000, true, &P);
    let late = sender.send_as(11, 0, true, &[0x65, 0b0101_0000]);
    assert_eq!(summary(late), (1, Kind::Intra, false, true, true));
    let next = sender.send_as(13, 6000, true, &P);
    assert_eq!((next.frame, next.needs), (3, Needs::back(1)));
    let late_of_the_same = sender.send_as(12, 6000, true, &P);
    assert_eq!((late_of_the_same.frame, late_of_the_same.first), (3, false));
    let unknown = sender.send_as(5, 77, true, &P);
    assert_eq!((unknown.frame, unknown.first), (1, false));
}

#[test]
fn a_source_that_begins_again_is_followed() {
    let mut sender = Sender::new(&h264_track());
    sender.send_as(1000, 0, true, &IDR);
    assert_eq!(sender.send_as(40_000, 9, true, &P).frame, 2);
    assert_eq!(sender.send_as(10, 18, true, &IDR).frame, 3);
    assert_eq!(sender.send_as(11, 27, true, &P).frame, 4);
}

#[test]
fn h265_is_read_with_sub_layers() {
    let mut sender = Sender::new(&track(Codec::H265 { vps: None, sps: None, pps: None }));
    let sets = sender.send(0, false, &[0x60, 1, 0, 2, 0x40, 1, 0, 3, 0x42, 1, 1, 0, 2, 0x44, 1]);
    assert_eq!(summary(sets), (1, Kind::Header, true, false, false));
    let idr = sender.send(0, true, &[0x62, 1, 0x93, 0x80]);
    assert_eq!(summary(idr), (1, Kind::Intra, false, true, true));
    let higher = sender.send(3000, true, &[0x00, 2, 0x80]);
    assert_eq!((higher.layer, higher.kind, higher.needs), (3, Kind::Bidirectional, Needs::back(1)));
    assert_eq!((higher.layers, higher.opens), (4, true));
    let base = sender.send(6000, true, &[0x02, 1, 0x80]);
    assert_eq!((base.layer, base.kind, base.needs), (1, Kind::Predicted, Needs::back(2)));
    let late = sender.send_as(sender.sequence.wrapping_sub(1), 3000, false, &[0x00, 2, 0x80]);
    assert_eq!((late.layer, late.layers, late.opens), (3, 4, true), "as the frame that it belongs to");
}

#[test]
fn the_description_tells_how_many_sub_layers_there_are() {
    let vps = Some(Bytes::from_static(&[0x40, 0x01, 0x0c, 0x05]));
    let mut sender = Sender::new(&track(Codec::H265 { vps, sps: None, pps: None }));
    assert_eq!(sender.send(0, true, &[0x62, 1, 0x93, 0x80]).layers, 5);
    // No reference in its own sub-layer, but for those above it.
    let low = sender.send(3000, true, &[0x00, 1, 0x80]);
    assert_eq!((low.layer, low.kind, low.opens), (1, Kind::Predicted, false));
}

/// A packet of JPEG 2000 with some bytes of a codestream.
fn jpeg2000(priority: u8, offset: u32, bytes: &[u8]) -> Vec<u8> {
    let main_header = if offset == 0 { MainHeader::Whole } else { MainHeader::None };
    let header = j2k::Header { scan: 0, main_header, main_header_id: 0, priority, tile: None, offset };
    [&header.emit()[..], bytes].concat()
}

#[test]
fn jpeg2000_packets_are_of_the_layer_that_their_priority_says() {
    let layers = |fmtp: &str, priorities: &[u8]| -> Vec<(u8, u8)> {
        let mut sender = Sender::new(&Track { fmtp: fmtp.to_owned(), ..track(Codec::Jpeg2000) });
        let tags = priorities.iter().map(|priority| sender.send(0, false, &jpeg2000(*priority, 9, b"x")));
        tags.inspect(|tag| assert!(tag.key && tag.opens)).map(|tag| (tag.layer, tag.layers)).collect()
    };
    let expected = [(0, 1), (0, 1), (1, 2), (32, 33), (126, 127), (0, 127)];
    for ordered in ["pt=layer", "sampling=RGB"] {
        assert_eq!(layers(ordered, &[0, 1, 2, 33, 254, 255]), expected, "{ordered}");
    }
    assert_eq!(layers("pt=resolution", &[0, 1, 2, 255]), [(0, 1); 4]);
}

#[test]
fn a_main_header_of_jpeg2000_tells_the_layers_to_come() {
    let mut sender = Sender::new(&track(Codec::Jpeg2000));
    let comment = [0xff, 0x64, 0, 4, 0, 1];
    let main_header = [&[0xff, 0x4f][..], &comment, &[0xff, 0x52, 0, 12, 0, 0, 0, 33, 0]].concat();
    let cut_off = sender.send(0, false, &jpeg2000(0, 0, &main_header));
    assert_eq!((cut_off.layer, cut_off.layers), (0, 1), "its segment goes on elsewhere");
    let whole = [&main_header[..], &[5, 4, 4, 0, 0]].concat();
    assert_eq!(sender.send(0, false, &jpeg2000(NO_PRIORITY, 0, &whole)).layers, 1, "no packet has a layer");
    assert_eq!(sender.send(0, false, &jpeg2000(0, 0, &whole)).layers, 33);
    let late = sender.send_as(sender.sequence.wrapping_sub(2), 77, false, &jpeg2000(3, 9, b"x"));
    assert_eq!((late.layer, late.layers), (2, 33), "late packets are of their own layer");
    assert!(sender.reader.read(&PlainHeader { sequence: 9, ..HEADER }.emit()).is_err(), "no payload");
}

#[test]
fn a_track_of_jpeg2000_is_read_on_from_where_another_has_read_it() {
    // A tile-part of 24 bytes begins at byte 100: the third of its five layers.
    let part = [0xff, 0x90, 0, 10, 0, 0, 0, 0, 0, 24, 2, 5];
    let at = u32::from(5_u8) * 3000;
    let newest = |sequence| Some((sequence, at));
    let read = PrioritiesRead { newest: newest(7), layers: 5, by_tile_part: true, part_end: None };
    let mut sender = Sender { reader: RtpReader::resume(read), sequence: 8 };
    let tag = sender.send(at, false, &jpeg2000(3, 100, &part));
    assert_eq!((tag.layer, tag.layers, tag.first, tag.ends), (2, 5, false, None));
    let read = PrioritiesRead { newest: newest(8), part_end: Some(124), ..read };
    let mut sender = Sender { reader: RtpReader::resume(read), sequence: 9 };
    let tag = sender.send(at, false, &jpeg2000(3, 112, &[7; 12]));
    assert_eq!((tag.layer, tag.first, tag.ends), (2, false, Some(2)));
    assert!(sender.send(at + 3000, false, &jpeg2000(1, 90, &[7; 12])).first);
    assert!(has_priorities(&track(Codec::Jpeg2000)) && !has_priorities(&track(Codec::Vp9)));
}

#[test]
fn mpeg_video_takes_the_kind_from_every_packet() {
    let mut sender = Sender::new(&track(Codec::MpegVideo));
    let head = [0, 0, 0x21, 0, 0, 0, 1, 0xb3, 9, 0, 0, 1, 0xb8, 0, 8, 0, 0x40, 0, 0, 1, 0, 0, 8, 0];
    assert_eq!(summary(sender.send(0, false, &head)), (1, Kind::Intra, true, false, true));
    assert_eq!(summary(sender.send(0, true, &[0, 0, 0x19, 0, 1])), (1, Kind::Intra, false, true, true));
    let p = sender.send(9000, false, &[0, 0, 0x02, 0, 0, 0, 1, 0, 0, 0x10, 0]);
    assert_eq!((summary(p), p.needs), ((2, Kind::Predicted, true, false, false), Needs::back(1)));
    assert_eq!(sender.send(9000, true, &[0, 0, 0x02, 0, 0, 0, 1, 5]).frame, 2);
    // The packet with the picture header was lost: the kind is known all the same.
    let b = sender.send(3000, true, &[0, 0, 0x03, 0, 0, 0, 1, 5]);
    assert_eq!(summary(b), (3, Kind::Bidirectional, false, true, false));
}

#[test]
fn audio_stands_alone() {
    let mut opus = Sender::new(&track(Codec::Opus));
    let tag = opus.send(0, true, b"x");
    assert_eq!((summary(tag), tag.content), ((1, Kind::Data, true, true, true), Content::Sound));
    assert_eq!(summary(opus.send(960, false, b"x")), (2, Kind::Data, true, true, true));
    let mut aac = Sender::new(&aac_track());
    assert_eq!(summary(aac.send(0, false, b"x")), (1, Kind::Data, true, false, true));
    assert_eq!(summary(aac.send(0, true, b"x")), (1, Kind::Data, false, true, true));
    assert_eq!(summary(aac.send(1024, true, b"x")), (2, Kind::Data, true, true, true));
    let mut mpeg = Sender::new(&track(Codec::MpegAudio));
    assert_eq!(mpeg.send(0, false, &[0, 0, 0, 0, 1]).frame, 1);
    assert_eq!(mpeg.send(0, false, &[0, 0, 1, 0, 1]).frame, 1);
    assert_eq!(mpeg.send(2160, false, &[0, 0, 0, 0, 1]).frame, 2);
}

#[test]
fn unknown_codecs_are_frames_by_timestamp_that_stand_alone() {
    let mut sender = Sender::new(&track(Codec::Other { video: true }));
    let tag = sender.send(0, false, b"x");
    assert_eq!((summary(tag), tag.content), ((1, Kind::Data, true, false, true), Content::Opaque));
    assert_eq!(summary(sender.send(0, true, b"x")), (1, Kind::Data, false, true, true));
    assert_eq!(summary(sender.send(3000, true, b"x")), (2, Kind::Data, true, true, true));
}

#[test]
fn malformed_packets_are_refused_and_do_no_harm() {
    let mut sender = Sender::new(&h264_track());
    sender.send(0, true, &IDR);
    assert!(sender.reader.read(&[0x80, 96, 0]).is_err());
    let header = PlainHeader { marker: false, payload_type: 96, sequence: 1, timestamp: 9, ssrc: 1 };
    assert!(sender.reader.read(&header.emit()).is_err(), "no payload");
    assert_eq!(sender.send(3000, true, &P).needs, Needs::back(1));
}

#[test]
fn order_numbers_are_read_from_the_description() {
    assert!(has_order_numbers("profile-id=1; sprop-max-don-diff=2"));
    assert!(!has_order_numbers("sprop-max-don-diff=0"));
    assert!(!has_order_numbers(""));
}

proptest! {
    #[test]
    fn every_level_of_jpeg2000_has_all_of_its_layers_and_those_below(
        lengths in prop::collection::vec(0..60_usize, 1..40),
        (layers, room) in (1..40_u16, 9..120_usize),
    ) {
        let mut end = 20;
        let header = Piece { unit: J2kUnit::MainHeader, tile: 0, end };
        let packets = lengths.iter().enumerate().map(|(at, length)| {
            end += length;
            // Layer by layer, as the progression should be.
            let layer = (at * usize::from(layers) / lengths.len()) as u16;
            Piece { unit: J2kUnit::Packet { layer, resolution: 0, component: 0 }, tile: 0, end }
        });
        let pieces: Vec<_> = core::iter::once(header).chain(packets).collect();
        let mut sender = Sender::new(&Track { fmtp: "pt=layer".to_owned(), ..track(Codec::Jpeg2000) });
        let mut sent = Vec::new();
        let bytes = vec![7; end];
        j2k::packets(&pieces, end, room, Priorities::Layer, |header, range, last| {
            let payload = [&header.emit()[..], &bytes[range.clone()]].concat();
            if !range.is_empty() {
                sent.push((range, sender.send(0, last, &payload)));
            }
        }).unwrap();
        for level in 0..layers as u8 {
            let taken = || sent.iter().filter(|(_, tag)| tag.layer <= level);
            let got = |byte: usize| taken().any(|(range, _)| range.contains(&byte));
            let mut begin = 0;
            for piece in &pieces {
                let is_in = !matches!(piece.unit, J2kUnit::Packet { layer, .. } if layer > u16::from(level));
                prop_assert!(!is_in || (begin..piece.end).all(got), "{piece:?} at level {level}");
                begin = piece.end;
            }
        }
        prop_assert!(sent.iter().all(|(_, tag)| tag.layer < tag.layers && tag.key && tag.opens));
    }

    #[test]
    fn pictures_of_jpeg2000_end_with_the_last_layer_that_is_taken(
        layers in prop::collection::vec(0..300_usize, 1..40), room in 70..200_usize,
    ) {
        let codestream = layered_codestream(&layers, 64);
        let mut sender = Sender::new(&Track { fmtp: "pt=layer".to_owned(), ..track(Codec::Jpeg2000) });
        let read = |timestamp| send_frame(&mut sender, &codestream, timestamp, room);
        let pictures: Vec<_> = [0, 3000].map(read).into();
        assert_that_pictures_end(&pictures);
        let read = |codestream| {
            let mut sender = Sender::new(&Track { fmtp: "pt=layer".to_owned(), ..track(Codec::Jpeg2000) });
            send_frame(&mut sender, codestream, 0, room)
        };
        // A tile behind this one may have more of the layer.
        let two_tiles = read(&layered_codestream(&layers, 32));
        prop_assert!(two_tiles.iter().all(|tag| tag.ends.is_none()));
    }
}

/// A codestream with a tile-part of the given bytes for each layer, and where its parts end; it is 64 wide.
fn layered_codestream(layers: &[usize], tile_width: u32) -> (Vec<u8>, Vec<Piece>) {
    let count = layers.len() as u8;
    let size = [64, 64, 0, 0, tile_width, 64, 0, 0_u32].map(u32::to_be_bytes).concat();
    let mut bytes = [&[0xff, 0x4f, 0xff, 0x51, 0, 41, 0, 0], &size[..], &[0, 1, 7, 1, 1]].concat();
    bytes.extend_from_slice(&[0xff, 0x52, 0, 12, 0, 0, 0, count, 0, 5, 4, 4, 0, 0]);
    let mut pieces = vec![Piece { unit: J2kUnit::MainHeader, tile: 0, end: bytes.len() }];
    for (layer, length) in (0..).zip(layers) {
        let part = (14 + *length as u32).to_be_bytes();
        bytes.extend_from_slice(&[0xff, 0x90, 0, 10, 0, 0, part[0], part[1], part[2], part[3]]);
        bytes.extend_from_slice(&[layer as u8, count, 0xff, 0x93]);
        bytes.resize(bytes.len() + length, 7);
        let unit = J2kUnit::Packet { layer, resolution: 0, component: 0 };
        pieces.push(Piece { unit, tile: 0, end: bytes.len() });
    }
    (bytes, pieces)
}

fn send_frame(
    sender: &mut Sender,
    (bytes, pieces): &(Vec<u8>, Vec<Piece>),
    timestamp: u32,
    room: usize,
) -> Vec<Tag> {
    let mut tags = Vec::new();
    j2k::packets(pieces, bytes.len(), room, Priorities::Layer, |header, range, last| {
        let payload = [&header.emit()[..], &bytes[range]].concat();
        tags.push(sender.send(timestamp, last, &payload));
    })
    .expect("it can be sent");
    tags
}
