use bytes::BytesMut;

use super::*;
use crate::packet::Header;
use crate::pes::VIDEO_ID;
use crate::psi::{emit_packets, emit_pat, emit_pmt};

const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;
const SPLICES: u16 = 0x102;
const PMT: u16 = 0x1000;

/// H.264 as x264 writes it: delimiter, then what is given.
const DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];
const PARAMETERS: [u8; 12] = [0, 0, 0, 1, 0x67, 0x42, 0, 0, 1, 0x68, 0xce, 6];
const IDR: [u8; 10] = [0, 0, 1, 0x65, 0x88, 0x84, 9, 9, 9, 9];
const INTRA: [u8; 10] = [0, 0, 1, 0x41, 0x88, 0x84, 9, 9, 9, 9];
const P: [u8; 10] = [0, 0, 1, 0x41, 0x9a, 0x24, 9, 9, 9, 9];
const B: [u8; 10] = [0, 0, 1, 0x01, 0x9e, 0x41, 9, 9, 9, 9];

struct Sender {
    reader: TsReader,
    continuity: [u8; PIDS],
    pts: u64,
}

const PIDS: usize = 0x2000;

impl Sender {
    fn new(streams: &[(u8, u16)]) -> Self {
        let mut sender = Sender { reader: TsReader::default(), continuity: [0; PIDS], pts: 1000 };
        let streams: Vec<_> = streams.iter().map(|(kind, pid)| (*kind, *pid, vec![])).collect();
        let pat = sender.section(&emit_pat(1, 0, 1, PMT), 0);
        let pmt = sender.section(&emit_pmt(1, 0, VIDEO, &streams).unwrap(), PMT);
        sender.reader.read(&[pat, pmt].concat()).unwrap();
        sender
    }

    fn h264() -> Self {
        Sender::new(&[(0x1b, VIDEO), (0x0f, AUDIO)])
    }

    fn section(&mut self, section: &[u8], pid: u16) -> Vec<u8> {
        let mut out = BytesMut::new();
        emit_packets(section, pid, &mut self.continuity[usize::from(pid)], &mut out);
        out.to_vec()
    }

    fn packets(&mut self, mut header: Header, payload: &[u8]) -> Vec<u8> {
        let mut out = BytesMut::new();
        let mut rest = payload;
        if rest.is_empty() {
            header.emit(&mut out, &mut rest);
        }
        while !rest.is_empty() {
            header.continuity = self.continuity[usize::from(header.pid)];
            self.continuity[usize::from(header.pid)] = (header.continuity + 1) & 15;
            header.emit(&mut out, &mut rest);
            header.unit_start = false;
            header.random_access = false;
        }
        out.to_vec()
    }

    /// The packets of a PES packet with a time of its own.
    fn pes(&mut self, pid: u16, random_access: bool, units: &[&[u8]]) -> Vec<u8> {
        self.pts += 3600;
        let mut pes = BytesMut::new();
        PesHeader::emit(VIDEO_ID, self.pts, self.pts, None, &mut pes).unwrap();
        pes.extend_from_slice(&units.concat());
        self.packets(Header { pid, unit_start: true, random_access, ..Header::default() }, &pes)
    }

    fn read(&mut self, packets: &[Vec<u8>]) -> Tag {
        self.reader.read(&packets.concat()).unwrap()
    }

    /// One datagram with one frame.
    fn frame(&mut self, units: &[&[u8]]) -> Tag {
        let pes = self.pes(VIDEO, false, units);
        self.read(&[pes])
    }
}

#[test]
fn frames_are_numbered_and_need_what_they_refer_to() {
    let mut sender = Sender::h264();
    let key = sender.frame(&[&DELIMITER, &PARAMETERS, &IDR]);
    assert_eq!((key.frame, key.kind, key.first, key.key), (1, Kind::Intra, true, true));
    assert!(key.needs.is_nothing());
    let p = sender.frame(&[&DELIMITER, &P]);
    assert_eq!((p.frame, p.kind, p.first, p.key), (2, Kind::Predicted, true, false));
    assert_eq!(p.needs, Needs::back(1));
    let b = sender.frame(&[&DELIMITER, &B]);
    assert_eq!((b.frame, b.kind, b.needs), (3, Kind::Bidirectional, Needs::back(1)));
    let p = sender.frame(&[&DELIMITER, &P]);
    assert_eq!((p.frame, p.needs), (4, Needs::back(2)));
}

#[test]
fn datagrams_are_of_one_layer_and_frames_of_their_own() {
    let mut sender = Sender::h264();
    for (units, layer, opens) in [
        (&[&DELIMITER[..], &PARAMETERS, &IDR][..], 0, true),
        (&[&DELIMITER, &P], 1, false),
        (&[&DELIMITER, &B], 2, true),
    ] {
        let tag = sender.frame(units);
        assert_eq!((tag.layer, tag.layers, tag.opens), (0, 1, tag.key));
        let frame = sender.reader.arriving().unwrap();
        assert_eq!((frame.number, frame.layer, frame.layers, frame.opens), (tag.frame, layer, 3, opens));
    }
}

#[test]
fn datagrams_without_video_stand_alone_and_say_what_they_hold() {
    let mut sender = Sender::new(&[(0x1b, VIDEO), (0x0f, AUDIO), (0x86, SPLICES)]);
    sender.frame(&[&DELIMITER, &PARAMETERS, &IDR]);
    let alone = |content| Tag { frame: 1, content, ..Tag::default() };
    let null = sender.packets(Header { pid: NULL_PID, ..Header::default() }, &[0; 184]);
    assert_eq!(sender.read(std::slice::from_ref(&null)), alone(Content::Stuffing));
    let splice = sender.packets(Header { pid: SPLICES, ..Header::default() }, &[0; 184]);
    assert_eq!(sender.read(&[splice.clone(), null.clone()]), alone(Content::Opaque));
    let audio = sender.pes(AUDIO, true, &[&[1, 2, 3]]);
    assert_eq!(sender.read(&[audio, null.clone()]), alone(Content::Sound));
    let audio = sender.pes(AUDIO, true, &[&[1, 2, 3]]);
    assert_eq!(sender.read(&[splice, audio]), alone(Content::Sound));
    let clock = sender.packets(Header { pid: VIDEO, pcr: Some(1), ..Header::default() }, &[]);
    assert_eq!(sender.read(&[clock, null]), alone(Content::Tables));
    let pat = sender.section(&emit_pat(1, 0, 1, PMT), 0);
    assert_eq!(sender.read(&[pat]), alone(Content::Tables));
}

#[test]
fn a_datagram_with_a_picture_is_the_picture() {
    let mut sender = Sender::h264();
    let audio = sender.pes(AUDIO, true, &[&[1, 2, 3]]);
    let video = sender.pes(VIDEO, false, &[&DELIMITER, &PARAMETERS, &IDR]);
    let tag = sender.read(&[audio, video]);
    assert_eq!((tag.kind, tag.content), (Kind::Intra, Content::Opaque));
}

#[test]
fn a_slice_in_a_later_packet_tells_the_frame() {
    let mut sender = Sender::h264();
    let mut sei = vec![0, 0, 1, 6, 5, 0xff, 0xff, 90];
    sei.extend([0x55; 600]);
    let packets = sender.pes(VIDEO, false, &[&DELIMITER, &PARAMETERS, &sei, &IDR, &[9; 400]]);
    let tags: Vec<_> = packets.chunks(PACKET_BYTES).map(|p| sender.reader.read(p).unwrap()).collect();
    assert_eq!((tags[0].first, tags[0].key, tags[0].kind), (true, false, Kind::Header));
    let at = tags.iter().position(|t| t.key).unwrap();
    assert_eq!((at, tags[at].kind, tags[at].first), (3, Kind::Intra, false));
    assert!(tags[at..].iter().all(|t| t.key && t.frame == 1 && !t.first));
}

#[test]
fn random_access_and_parameters_announce_a_key_frame_at_once() {
    let mut sender = Sender::h264();
    let packets = sender.pes(VIDEO, true, &[&DELIMITER, &PARAMETERS, &[0, 0, 1, 6], &[5; 400], &IDR]);
    let tag = sender.reader.read(&packets[..PACKET_BYTES]).unwrap();
    assert!(tag.first && tag.key);
}

#[test]
fn random_access_is_believed_of_intra_slices_only() {
    let mut sender = Sender::h264();
    let intra = sender.pes(VIDEO, true, &[&DELIMITER, &INTRA]);
    assert!(sender.read(&[intra]).key);
    assert!(!sender.frame(&[&DELIMITER, &INTRA]).key);
    let p = sender.pes(VIDEO, true, &[&DELIMITER, &P]);
    assert!(!sender.read(&[p]).key);
}

#[test]
fn a_recovery_point_makes_an_intra_frame_a_key_frame() {
    let mut sender = Sender::h264();
    assert!(sender.frame(&[&DELIMITER, &[0, 0, 1, 6, 6, 1, 0xc4, 0x80], &INTRA]).key);
    assert!(!sender.frame(&[&DELIMITER, &INTRA]).key);
}

#[test]
fn a_datagram_is_told_the_frame_whose_loss_would_matter() {
    let mut sender = Sender::h264();
    let key = sender.pes(VIDEO, false, &[&PARAMETERS, &IDR, &[7; 200]]);
    let p = sender.pes(VIDEO, false, &[&DELIMITER, &P, &[7; 200]]);
    let b = sender.pes(VIDEO, false, &[&DELIMITER, &B, &[7; 200]]);
    let p2 = sender.pes(VIDEO, false, &[&DELIMITER, &P, &[7; 200]]);
    let key2 = sender.pes(VIDEO, false, &[&PARAMETERS, &IDR, &[7; 200]]);
    let half = |pes: &[u8]| (pes[..PACKET_BYTES].to_vec(), pes[PACKET_BYTES..].to_vec());
    let (a, tail) = half(&key);
    assert_eq!(sender.read(&[a]).frame, 1);
    let (a, p_tail) = half(&p);
    let tag = sender.read(&[tail, a]);
    assert_eq!((tag.frame, tag.first), (2, true), "the later one of two references");
    let (a, b_tail) = half(&b);
    let tag = sender.read(&[p_tail, a]);
    assert_eq!((tag.frame, tag.first, tag.last), (2, false, true), "not a frame that is not needed");
    let (a, p2_tail) = half(&p2);
    assert_eq!(sender.read(&[b_tail, a]).frame, 4);
    let (a, key2_tail) = half(&key2);
    let p3 = sender.pes(VIDEO, false, &[&DELIMITER, &P]);
    let tag = sender.read(&[p2_tail, a, key2_tail, p3]);
    assert_eq!((tag.frame, tag.first, tag.key), (5, true, true), "a key frame that begins");
}

#[test]
fn several_frames_in_a_pes_packet_are_told_apart() {
    let mut sender = Sender::h264();
    let tag = sender.frame(&[&DELIMITER, &PARAMETERS, &IDR, &[7; 20], &DELIMITER, &P, &[7; 20]]);
    assert_eq!((tag.frame, tag.key), (1, true));
    assert_eq!(sender.frame(&[&DELIMITER, &P]).frame, 3);
}

#[test]
fn a_pes_packet_for_each_slice_is_one_frame() {
    let mut sender = Sender::h264();
    sender.frame(&[&DELIMITER, &PARAMETERS, &IDR]);
    sender.pts -= 3600;
    // first_mb_in_slice is 1.
    let tag = sender.frame(&[&[0, 0, 1, 0x65, 0b0100_0010, 0x22, 9, 9, 9]]);
    assert_eq!((tag.frame, tag.first, tag.kind), (1, false, Kind::Intra));
}

#[test]
fn the_end_of_a_frame_is_told_where_its_length_is() {
    let mut sender = Sender::h264();
    let mut pes = BytesMut::new();
    let units = [&PARAMETERS[..], &IDR, &[7; 300]].concat();
    PesHeader::emit(VIDEO_ID, 9, 9, Some(units.len()), &mut pes).unwrap();
    pes.extend_from_slice(&units);
    let packets = sender.packets(Header { pid: VIDEO, unit_start: true, ..Header::default() }, &pes);
    let last: Vec<_> = packets.chunks(PACKET_BYTES).map(|p| sender.reader.read(p).unwrap().last).collect();
    assert_eq!(last, [false, true]);
}

#[test]
fn mpeg_video_needs_its_sequence_header() {
    let mut sender = Sender::new(&[(0x02, VIDEO)]);
    let sequence = [0, 0, 1, 0xb3, 0x16, 0, 0, 0, 0, 0, 0, 0];
    let picture = |kind: u8| [0, 0, 1, 0, 0, kind << 3, 0xff, 0xf8, 0, 0, 1, 1, 2, 3];
    assert!(!sender.frame(&[&picture(1)]).key);
    let key = sender.frame(&[&sequence, &[0, 0, 1, 0xb8, 0, 8, 0, 0x40], &picture(1)]);
    assert!(key.key && key.first);
    assert_eq!(sender.frame(&[&picture(2)]).needs, Needs::back(1));
    assert_eq!(sender.frame(&[&picture(3)]).kind, Kind::Bidirectional);
}

#[test]
fn sound_alone_is_frames_of_data() {
    let mut sender = Sender::new(&[(0x0f, AUDIO)]);
    for number in 1..4 {
        let pes = sender.pes(AUDIO, false, &[&[5; 300]]);
        let tag = sender.read(&[pes[..PACKET_BYTES].to_vec()]);
        assert_eq!((tag.frame, tag.kind, tag.first, tag.key), (number, Kind::Data, true, true));
        assert_eq!(tag.content, Content::Sound);
        let tag = sender.read(&[pes[PACKET_BYTES..].to_vec()]);
        assert_eq!((tag.frame, tag.first, tag.key), (number, false, true));
    }
}

#[test]
fn video_that_cannot_be_read_is_believed_its_random_access() {
    let mut sender = Sender::new(&[(0xea, VIDEO)]);
    assert!(sender.frame(&[&[1; 100]]).key, "as long as nothing is ever marked");
    let pes = sender.pes(VIDEO, true, &[&[1; 100]]);
    assert!(sender.read(&[pes]).key);
    let tag = sender.frame(&[&[1; 100]]);
    assert_eq!((tag.key, tag.kind, tag.needs), (false, Kind::Predicted, Needs::back(1)));
}

#[test]
fn scrambled_video_is_told_by_random_access() {
    let mut sender = Sender::h264();
    let mut frame = |access| {
        let mut packets = sender.pes(VIDEO, access, &[&PARAMETERS, &IDR, &[1; 300]]);
        packets.chunks_mut(PACKET_BYTES).for_each(|p| p[3] |= 0x80);
        sender.read(&[packets])
    };
    assert!(frame(true).key);
    let tag = frame(false);
    assert_eq!((tag.frame, tag.first, tag.key), (2, true, false));
}

#[test]
fn a_new_table_is_followed_and_numbers_go_on() {
    let mut sender = Sender::h264();
    sender.frame(&[&DELIMITER, &PARAMETERS, &IDR]);
    let streams = [(0x1b, 0x200, vec![])];
    let pmt = sender.section(&emit_pmt(1, 1, 0x200, &streams).unwrap(), PMT);
    sender.read(&[pmt]);
    assert_eq!(sender.frame(&[&DELIMITER, &P]).kind, Kind::Data, "the old PID");
    let pes = sender.pes(0x200, false, &[&DELIMITER, &PARAMETERS, &IDR]);
    let tag = sender.read(&[pes]);
    assert_eq!((tag.frame, tag.key), (2, true));
    assert_eq!(sender.reader.programme().unwrap().version, 1);
}

#[test]
fn losses_and_damage_are_counted() {
    let mut sender = Sender::h264();
    let packets = sender.pes(VIDEO, false, &[&PARAMETERS, &IDR, &[7; 900]]);
    sender.reader.read(&packets[..PACKET_BYTES]).unwrap();
    sender.reader.read(&packets[2 * PACKET_BYTES..]).unwrap();
    assert_eq!((sender.reader.continuity_errors(), sender.reader.transport_errors()), (1, 0));
    let mut damaged = packets[..PACKET_BYTES].to_vec();
    damaged[1] |= 0x80;
    sender.reader.read(&damaged).unwrap();
    damaged[1] &= 0x7f;
    damaged[3] |= 0x20;
    damaged[4] = 200;
    sender.reader.read(&damaged).unwrap();
    assert_eq!((sender.reader.continuity_errors(), sender.reader.transport_errors()), (1, 2));
}

/// The packets of a key frame whose slice begins in the third.
fn key_frame(sender: &mut Sender) -> Vec<u8> {
    let mut sei = vec![0, 0, 1, 6, 5, 0xff, 0xff, 90];
    sei.extend([0x55; 400]);
    sender.pes(VIDEO, true, &[&DELIMITER, &PARAMETERS, &sei, &IDR, &[9; 400]])
}

#[test]
fn a_key_frame_without_its_first_packets_is_no_place_to_begin() {
    let mut sender = Sender::h264();
    sender.frame(&[&DELIMITER, &P]);
    let recovery = [0, 0, 1, 6, 6, 1, 0x84, 0x80];
    let mut marked = key_frame(&mut sender);
    marked.truncate(2 * PACKET_BYTES);
    marked.extend(
        sender.packets(Header { pid: VIDEO, ..Header::default() }, &[&recovery[..], &INTRA].concat()),
    );
    for packets in [key_frame(&mut sender), marked] {
        let mut tags = packets.chunks(PACKET_BYTES).skip(1).map(|p| sender.reader.read(p).unwrap());
        assert!(tags.all(|tag| !tag.key));
    }
    assert!(!sender.frame(&[&DELIMITER, &P]).key);
    let tag = sender.frame(&[&DELIMITER, &IDR]);
    assert!(tag.first && tag.key, "it is whole, and so its parameter sets came before");
    let whole = key_frame(&mut sender);
    assert!(sender.reader.read(&whole).unwrap().key);
}

#[test]
fn a_stream_that_begins_again_with_the_same_counter_is_seen_to_begin() {
    for is_told in [false, true] {
        let mut sender = Sender::h264();
        sender.frame(&[&DELIMITER, &P]);
        sender.continuity[usize::from(VIDEO)] -= 1;
        let packets = key_frame(&mut sender);
        let goes_on = is_told && sender.reader.resume(&packets);
        let tag = sender.reader.read(&packets[..PACKET_BYTES]).unwrap();
        assert!(tag.first && tag.key && !goes_on, "{tag:?}");
        assert_eq!(sender.reader.continuity_errors(), u64::from(!is_told));
    }
}

#[test]
fn counters_that_fit_by_chance_do_not_make_a_key_frame_without_its_first_packets() {
    let mut sender = Sender::h264();
    let key = key_frame(&mut sender);
    sender.continuity[usize::from(VIDEO)] = 0;
    sender.frame(&[&DELIMITER, &P]);
    assert!(sender.reader.resume(&key[PACKET_BYTES..]));
    assert!(key.chunks(PACKET_BYTES).skip(1).all(|packet| !sender.reader.read(packet).unwrap().key));
}

#[test]
fn the_clock_is_that_of_the_programme() {
    let mut sender = Sender::h264();
    assert_eq!(sender.reader.pcr(), None);
    for (pid, pcr) in [(AUDIO, 1), (VIDEO, 77)] {
        let mut out = BytesMut::new();
        Header { pid, pcr: Some(pcr), ..Header::default() }.emit(&mut out, &mut &[][..]);
        sender.reader.read(&out).unwrap();
    }
    assert_eq!(sender.reader.pcr(), Some(77));
}

#[test]
fn what_is_not_whole_packets_is_refused() {
    let mut reader = TsReader::default();
    assert!(reader.read(&[]).is_err());
    assert!(reader.read(&[0x47; 187]).is_err());
    assert!(reader.read(&[0; 188]).is_err());
    assert!(reader.read(&[0x47; 188]).is_ok());
}

#[test]
fn arbitrary_packets_never_panic() {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut sender = Sender::h264();
    for _ in 0..20_000 {
        let mut packet = sender.pes(VIDEO, false, &[&PARAMETERS, &IDR, &[0; 100]]);
        for _ in 0..random() % 8 {
            let at = random() as usize % packet.len();
            packet[at] = (random() & 0xff) as u8;
        }
        let pids = [VIDEO, 0, PMT, AUDIO];
        packet[1] = packet[1] & 0xe0 | (pids[random() as usize % 4] >> 8) as u8;
        packet[0] = 0x47;
        sender.reader.read(&packet[..PACKET_BYTES]).unwrap();
    }
}
