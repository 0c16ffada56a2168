use std::collections::BTreeMap;

use outflow_media::{Codec, Format, Kind, Needs, Tag, Time, Track};
use outflow_rtp::{Extension, HEADER, PlainHeader, RtpHeader};

use super::{Closed, Described, Mark, Marks, Sent, Ways};
use crate::limits::{MARKED_BYTES_MAX, TRACKS_MAX};
use crate::{Level, Openings, Packet, Parsed};

const PORT: u16 = 5000;

fn level(number: u8) -> Level {
    Level::new(number).expect("it is one")
}

fn header(sequence: u16, ssrc: u32) -> [u8; HEADER] {
    PlainHeader { marker: false, payload_type: 96, sequence, timestamp: 7, ssrc }.emit()
}

/// The packet of a frame of one packet, of this layer of three.
fn mark(layer: u8) -> Mark {
    Mark {
        layer,
        layers: 3,
        grown: 0,
        first: true,
        opens: true,
        adds: false,
        opens_all: layer == 0,
        ends: None,
    }
}

fn marked(sequence: u16, mark: Mark) -> Vec<u8> {
    mark.write(&header(sequence, 1), b"media").expect("it has a place")
}

/// What goes down which way, with its number.
fn judge(ways: &mut Ways, packet: &[u8]) -> BTreeMap<u32, Option<Sent>> {
    let mut sent = BTreeMap::new();
    ways.judge(PORT, packet, |to, how| assert!(sent.insert(to, how).is_none(), "once a way"));
    sent
}

/// The numbers of the packets that go down each way.
fn all_numbers(ways: &mut Ways, packets: &[(u16, u8)]) -> BTreeMap<u32, Vec<u16>> {
    let mut numbers: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
    for (sequence, layer) in packets {
        for (to, sent) in judge(ways, &marked(*sequence, mark(*layer))) {
            numbers.entry(to).or_default().extend(sent.map(|sent| sent.sequence));
        }
    }
    numbers
}

fn numbers(ways: &mut Ways, to: u32, packets: &[(u16, u8)]) -> Vec<u16> {
    all_numbers(ways, packets).remove(&to).unwrap_or_default()
}

#[test]
fn a_mark_is_read_as_it_was_written_before_other_extensions_and_in_place_of_another() {
    let other = Mark { layer: 2, grown: 1, adds: true, first: false, ends: Some(1), ..mark(0) };
    let once = marked(9, other);
    assert_eq!(Mark::read(&once), Some(other));
    let (head, behind) = once.split_first_chunk::<HEADER>().expect("a header");
    assert_eq!(mark(1).write(head, behind), Some(marked(9, mark(1))), "one mark is enough");
    let own = [&[0xbe, 0xde, 0, 1, 0x52, 1, 2, 3][..], b"media"].concat();
    let mut head = header(9, 1);
    head[0] |= 0x10;
    let packet = mark(1).write(&head, &own).expect("it has a place");
    assert_eq!(Mark::read(&packet), Some(mark(1)));
    let read = RtpHeader::new_checked(&packet).expect("a packet");
    assert_eq!((read.payload(), read.sequence()), (&b"media"[..], 9));
    let own = Extension { id: 5, data: &[1, 2, 3] };
    assert_eq!(read.extensions().map(|one| one.id).collect::<Vec<_>>(), [14, 5]);
    assert_eq!(read.extensions().last(), Some(own));
}

#[test]
fn a_mark_among_elements_of_two_bytes_is_one_of_these() {
    let own = [&[0x10, 0, 0, 2, 5, 6, 1, 2, 3, 4, 5, 6][..], b"media"].concat();
    let mut head = header(9, 1);
    head[0] |= 0x10;
    let packet = mark(1).write(&head, &own).expect("it has a place");
    assert_eq!((Mark::read(&packet), packet[16..20].to_vec()), (Some(mark(1)), vec![14, 7, b'O', b'F']));
    let read = RtpHeader::new_checked(&packet).expect("a packet");
    assert_eq!(read.payload(), b"media");
    let own = Extension { id: 5, data: &[1, 2, 3, 4, 5, 6] };
    assert_eq!(read.extensions().map(|one| one.id).collect::<Vec<_>>(), [14, 5]);
    assert_eq!(read.extensions().last(), Some(own));
    let (head, behind) = packet.split_first_chunk::<HEADER>().expect("a header");
    let again = mark(2).write(head, behind).expect("it has a place");
    assert_eq!((Mark::read(&again), again.len()), (Some(mark(2)), packet.len()), "one is enough");
    assert!((0..28).all(|length| Mark::read(&packet[..length]).is_none()));
    let short = [&packet[..15], &[2], &packet[16..]].concat();
    assert_eq!(Mark::read(&short), None, "it ends before");
}

#[test]
fn a_packet_without_its_mark_is_as_it_was() {
    let with_extension = |own: &[u8]| [&[0x90], &header(9, 1)[1..], own, b"media"].concat();
    let packets = [
        [&header(9, 1)[..], b"media"].concat(),
        with_extension(&[0xbe, 0xde, 0, 1, 0x52, 1, 2, 3]),
        with_extension(&[0x10, 0, 0, 2, 5, 6, 1, 2, 3, 4, 5, 6]),
    ];
    for packet in packets {
        let (head, behind) = packet.split_first_chunk::<HEADER>().expect("a header");
        let mut marked = mark(1).write(head, behind).expect("it has a place");
        let out = Mark::take_out(&mut marked);
        assert_eq!(marked[out..], packet);
        assert_eq!(Mark::take_out(&mut marked[out..]), 0, "it has none now");
    }
    assert!((0..24).all(|length| Mark::take_out(&mut marked(9, mark(1))[..length]) == 0));
}

#[test]
fn a_packet_that_has_no_place_for_a_mark_goes_without() {
    let plain = header(9, 1);
    let first = |first: u8| [&[first], &plain[1..]].concat().try_into().expect("a header");
    assert_eq!(mark(1).write(&first(0x81), b"1234media"), None, "a contributing source");
    assert_eq!(mark(1).write(&first(0x90), &[0x20, 0, 0, 1, 1, 1, 9, 0]), None, "another form");
    assert_eq!(mark(1).write(&first(0x90), &[0xbe, 0xde, 0, 2, 1, 1, 9, 0]), None, "shorter than it says");
    let room = MARKED_BYTES_MAX - HEADER - 12;
    assert_eq!(mark(1).write(&plain, &vec![0; room]).map(|packet| packet.len()), Some(MARKED_BYTES_MAX));
    assert_eq!(mark(1).write(&plain, &vec![0; room + 1]), None);
    let tag = Tag { layers: 1, ..Tag::default() };
    assert_eq!(Mark::of(&tag, true), None, "there is nothing to choose");
    assert_eq!(Mark::of(&Tag { layers: 3, layer: 3, ..tag }, true), None);
}

#[test]
fn what_is_no_sound_mark_of_ours_is_none() {
    let good = marked(9, mark(1));
    for (at, byte) in [(0, 0x50), (0, 0x91), (12, 0), (15, 1), (16, 0xe5), (17, b'o'), (19, 3), (20, 1)] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert_eq!(Mark::read(&bad), None, "{at}: {byte}");
    }
    for (at, byte) in [(20, 129), (21, 3), (23, 3)] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert_eq!(Mark::read(&bad), None, "{at}: {byte}");
    }
    assert!((0..24).all(|length| Mark::read(&good[..length]).is_none()));
    let padded = [&[good[0] | 0x20], &good[1..]].concat();
    assert_eq!(Mark::read(&padded), Some(mark(1)), "padding changes nothing");
}

#[test]
fn gaps_of_what_is_left_out_are_closed_and_those_of_what_was_lost_stay() {
    let mut closed = Closed::default();
    let mut next = |sequence: u16, is_taken| closed.next(sequence, is_taken);
    assert_eq!([next(65_534, true), next(65_535, false), next(0, true)], [Some(65_534), None, Some(65_535)]);
    assert_eq!(next(3, true), Some(2), "two were lost");
    assert_eq!(next(2, true), Some(1), "late");
    assert_eq!(next(65_535, true), None, "once more, as before");
    assert_eq!(next(3, true), Some(2), "once more");
    assert_eq!([next(4, false), next(6, false), next(7, true)], [None, None, Some(4)]);
    assert_eq!(next(5, true), Some(3), "between two that were left out");
    assert_eq!(next(200, true), Some(197));
    assert_eq!(next(6, false), None, "so late that the track begins again");
    assert_eq!(next(7, true), Some(3));
}

/// Whatever is left out or lost, and in which order the rest comes: one that comes later in the track has a larger
/// number, and between two that come with no loss between them, there is no gap.
#[test]
fn numbers_are_in_the_order_of_the_track() {
    let mut seed = 1_u32;
    let mut chance = |of: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % of
    };
    for _ in 0..200 {
        let mut closed = Closed::default();
        let mut order: Vec<u32> = (65_000..66_000).filter(|_| chance(20) > 0).collect();
        for at in 1..order.len() {
            if chance(10) == 0 {
                let from = at.saturating_sub(chance(12) as usize);
                order[from..=at].rotate_left(1);
            }
        }
        let mut numbers = BTreeMap::new();
        for sequence in order {
            let is_taken = chance(3) > 0;
            let number = closed.next(sequence as u16, is_taken);
            assert_eq!(number.is_some(), is_taken, "none comes twice");
            numbers.extend(number.map(|number| (sequence, number)));
        }
        let mut pairs = numbers.iter().zip(numbers.iter().skip(1));
        assert!(pairs.all(|((_, one), (_, next))| (1..1000).contains(&next.wrapping_sub(*one))));
    }
}

#[test]
fn each_way_gets_its_level_without_gaps() {
    let mut ways = Ways::default();
    ways.set([(1, level(1)), (2, level(2)), (3, level(3)), (4, level(9))], |_| false);
    let frames = [(10, 0), (11, 2), (12, 1), (13, 2), (14, 0), (15, 2), (16, 1)];
    let got = all_numbers(&mut ways, &frames);
    assert_eq!(got[&1], [10, 11, 12, 13, 14, 15, 16]);
    assert_eq!(got[&2], [10, 11, 12, 13]);
    assert_eq!([&got[&3], &got[&4]], [&[10, 11]; 2], "there is no level so low as the last");
}

#[test]
fn another_level_begins_where_it_can_be_decoded_and_the_numbers_go_on() {
    let mut ways = Ways::default();
    ways.set([(7, level(3))], |_| false);
    assert_eq!(numbers(&mut ways, 7, &[(1, 0), (2, 2), (3, 1)]), [1]);
    ways.set([(5, level(1)), (7, level(1))], |_| false);
    let inside = |sequence, layer| marked(sequence, Mark { opens: false, ..mark(layer) });
    assert!(judge(&mut ways, &inside(4, 2)).is_empty(), "it needs what was left out");
    assert!(judge(&mut ways, &inside(5, 1)).is_empty(), "a new one needs what it never had");
    let got = all_numbers(&mut ways, &[(6, 0), (7, 2)]);
    assert_eq!(got, [(5, vec![4, 5]), (7, vec![2, 3])].into(), "a key frame opens all; each has its numbers");
    ways.set([(7, level(2))], |_| false);
    assert_eq!(numbers(&mut ways, 7, &[(8, 1), (9, 2), (10, 0)]), [4, 5], "less from the next picture on");
    assert!(!ways.is_empty());
}

#[test]
fn a_way_that_had_all_goes_on_with_all_until_less_can_be_had() {
    let mut ways = Ways::default();
    ways.set([(1, level(3)), (2, level(3))], |to| to == 1);
    let inside = Mark { first: false, opens: false, ..mark(2) };
    assert_eq!(judge(&mut ways, &marked(5, inside)).into_keys().collect::<Vec<_>>(), [1]);
    assert_eq!(numbers(&mut ways, 1, &[(6, 2), (7, 0)]), [6]);
}

#[test]
fn a_picture_of_spatial_layers_ends_where_its_receiver_s_does() {
    let mut ways = Ways::default();
    ways.set([(1, level(1)), (3, level(3))], |_| false);
    let base = marked(1, Mark { ends: Some(0), ..mark(0) });
    let sent = |ends| Some(Sent { sequence: 1, ends });
    assert_eq!(judge(&mut ways, &base), [(1, sent(false)), (3, sent(true))].into());
}

#[test]
fn what_says_nothing_goes_everywhere_as_it_is_and_of_a_layered_track_with_its_number() {
    let mut ways = Ways::default();
    ways.set([(1, level(3))], |_| false);
    let plain = |sequence, ssrc| [&header(sequence, ssrc)[..], b"media"].concat();
    assert_eq!(judge(&mut ways, &plain(1, 9)), [(1, None)].into(), "another track");
    assert_eq!(numbers(&mut ways, 1, &[(1, 0), (2, 2)]), [1]);
    let sent = Some(Sent { sequence: 2, ends: false });
    assert_eq!(judge(&mut ways, &plain(3, 1)), [(1, sent)].into(), "too long for a mark");
    let report = [0x80, 200, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    for other in [&report[..], b"short", b""] {
        assert_eq!(judge(&mut ways, other), [(1, None)].into(), "{other:?}");
    }
    let mut to_others = Vec::new();
    ways.judge(PORT + 2, &plain(4, 1), |to, how| to_others.push((to, how)));
    assert_eq!(to_others, [(1, None)], "by its port, it is another track");
}

#[test]
fn tracks_are_bounded_and_the_one_in_use_stays() {
    let mut ways = Ways::default();
    ways.set([(1, level(3))], |_| false);
    assert_eq!(numbers(&mut ways, 1, &[(1, 0), (2, 2)]), [1]);
    for other in 0..4 * TRACKS_MAX as u32 {
        let packet = mark(0).write(&header(1, 100 + other), b"media").expect("it has a place");
        judge(&mut ways, &packet);
        let sequence = 3 + 2 * other as u16;
        assert_eq!(numbers(&mut ways, 1, &[(sequence, 0), (sequence + 1, 2)]), [2 + other as u16]);
    }
    assert_eq!(ways.tracks.len(), TRACKS_MAX);
}

#[test]
fn all_layers_open_at_key_frames_and_behind_those_of_open_groups() {
    let tag = |frame, kind| Tag { frame, kind, first: true, layers: 3, ..Tag::default() };
    let key = |frame, opens| Tag { key: true, opens, ..tag(frame, Kind::Intra) };
    let mut openings = Openings::default();
    assert!(openings.comes(&key(1, true)));
    let open = key(10, false);
    assert!(!openings.comes(&open));
    let leading = Tag { needs: Needs::back(3), ..tag(11, Kind::Predicted) };
    assert!(!openings.comes(&leading), "it needs what was before");
    let trailing = Tag { needs: Needs::back(1), ..tag(12, Kind::Predicted) };
    assert!(openings.comes(&trailing));
    assert!(!openings.comes(&trailing), "once");
    openings.comes(&open);
    openings.torn(&open);
    assert!(!openings.comes(&trailing), "nothing begins with what has a hole");
}

/// A packet of three layers, with its header in front or apart.
fn parsed(track: u8, sequence: u16, payload: &[u8], is_apart: bool) -> Parsed {
    let tag = Tag { track, layers: 3, layer: 1, first: true, last: true, ..Tag::default() };
    let head = header(sequence, 1);
    let bytes = if is_apart { payload.to_vec() } else { [&head, payload].concat() };
    let packet = Packet { bytes: bytes.into(), tag, arrived: Time::ZERO };
    Parsed { packet, rtp_header: if is_apart { head } else { [0; HEADER] }, preamble: None, found: None }
}

/// A packet as it is sent: all its bytes.
fn whole(parsed: &Parsed) -> Vec<u8> {
    let apart = if parsed.rtp_header[0] == 0 { &[][..] } else { &parsed.rtp_header };
    [apart, &parsed.packet.bytes].concat()
}

/// What a packet becomes.
fn all_marked(marks: &mut Marks, parsed: Parsed) -> Vec<Vec<u8>> {
    marks.mark(parsed).map(|part| whole(&part)).collect()
}

#[test]
fn the_packets_of_the_main_track_say_what_they_are() {
    let video = Track { payload_type: 96, ..Track::h264() };
    let locked = Track { codec: Codec::Srtp { video: true }, ..video.clone() };
    let mut marks = Marks::new(&Format::Rtp(vec![video.clone(), video]));
    for is_apart in [false, true] {
        let of_main = all_marked(&mut marks, parsed(0, 9, b"media", is_apart));
        let said = Mark { layer: 1, opens: false, opens_all: false, ..mark(0) };
        assert_eq!((of_main.len(), Mark::read(&of_main[0])), (1, Some(said)));
        let other = parsed(1, 9, b"media", is_apart);
        assert_eq!(all_marked(&mut marks, other.clone()), [whole(&other)]);
    }
    let mut marks = Marks::new(&Format::Rtp(vec![locked]));
    let plain = parsed(0, 9, b"media", false);
    assert_eq!(all_marked(&mut marks, plain.clone()), [whole(&plain)], "it is signed");
}

#[test]
fn layers_that_show_behind_the_first_key_frame_go_where_they_are_wanted() {
    let vp8 = Track { codec: Codec::Vp8, payload_type: 96, ..Track::h264() };
    let mut marks = Marks::new(&Format::Rtp(vec![vp8]));
    let mut ways = Ways::default();
    ways.set([1, 2, 3].map(|number| (number.into(), level(number))), |_| false);
    // At none but the key frame one can begin.
    let mut sent = |sequence, (layer, layers)| {
        let mut parsed = parsed(0, sequence, b"media", false);
        let (key, opens) = (layers == 1, layers == 1);
        parsed.packet.tag = Tag { layer, layers, key, opens, ..parsed.packet.tag };
        judge(&mut ways, &all_marked(&mut marks, parsed)[0]).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(sent(1, (0, 1)), [1, 2, 3], "there is one layer");
    assert_eq!((sent(2, (2, 3)), sent(3, (1, 3)), sent(4, (2, 3))), (vec![1], vec![1, 2], vec![1]));
}

#[test]
fn where_a_packet_has_no_room_and_cannot_be_split_none_says_what_it_is() {
    let vp8 = Track { codec: Codec::Vp8, payload_type: 96, ..Track::h264() };
    let mut marks = Marks::new(&Format::Rtp(vec![vp8]));
    let long = parsed(0, 9, &[0x10; MARKED_BYTES_MAX], false);
    assert_eq!(all_marked(&mut marks, long.clone()), [whole(&long)], "there is no room");
    let short = parsed(0, 10, b"media", false);
    assert_eq!(all_marked(&mut marks, short.clone()), [whole(&short)], "all say it, or none");
    marks.break_off();
    let again = all_marked(&mut marks, short);
    assert!(Mark::read(&again[0]).is_some(), "another source may have shorter ones");
}

#[test]
fn a_packet_that_has_no_room_for_its_mark_is_split_and_the_numbers_run_on() {
    let mut marks = Marks::new(&Format::Rtp(vec![Track { payload_type: 96, ..Track::h264() }]));
    let unit = |bytes: usize| [&[0x41][..], &vec![7; bytes - 1]].concat();
    // The longest that needs no split; the shortest that does, with what else its header says; what fills its packet.
    let room = MARKED_BYTES_MAX - HEADER - Mark::BYTES;
    let mut padded = parsed(0, 65_535, &[&unit(room + 1)[..], &[0, 2]].concat(), true);
    padded.rtp_header[0] |= 0x20;
    padded.rtp_header[1] |= 0x80;
    padded.packet.tag.ends = Some(2);
    let packets =
        [parsed(0, 65_534, &unit(room), false), padded, parsed(0, 0, &unit(room + Mark::BYTES), false)];
    let mut parts = Vec::new();
    for packet in packets.clone() {
        parts.extend(all_marked(&mut marks, packet));
    }
    let read = |packet: &Vec<u8>| {
        let header = RtpHeader::new_checked(packet).expect("a packet");
        let said = Mark::read(packet).expect("a mark");
        (header.sequence(), header.marker(), said.first, said.ends)
    };
    assert_eq!(
        parts.iter().map(read).collect::<Vec<_>>(),
        [
            (65_534, false, true, None),
            (65_535, false, true, None),
            (0, true, false, Some(2)),
            (1, false, true, None),
            (2, false, false, None),
        ]
    );
    assert!(parts.iter().all(|part| part.len() <= MARKED_BYTES_MAX && part[0] & 0x20 == 0));
    let data = |packet: &Vec<u8>| RtpHeader::new_checked(packet).expect("a packet").payload().to_vec();
    assert!(data(&parts[1]).starts_with(&[0x5c, 0x81]) && data(&parts[2]).starts_with(&[0x5c, 0x41]));
    let tags = marks.mark(parsed(0, 1, &unit(room + 1), false)).map(|part| part.packet.tag);
    let tags = tags.map(|tag| (tag.first, tag.last)).collect::<Vec<_>>();
    assert_eq!(tags, [(true, false), (false, true)]);
    let again = all_marked(&mut marks, packets[1].clone());
    assert_eq!(again, parts[1..3], "once more, as before");
}

#[test]
fn a_packet_with_its_mark_is_no_fragment_by_ipv6() {
    let mut marks = Marks::new(&Format::Rtp(vec![Track { payload_type: 96, ..Track::h264() }]));
    for (sequence, bytes) in (0..).zip(1400..=1472) {
        let parts = all_marked(&mut marks, parsed(0, sequence, &vec![0x41; bytes - HEADER], false));
        let fits = |part: &Vec<u8>| 40 + 8 + part.len() <= 1500 && Mark::read(part).is_some();
        assert!(parts.iter().all(fits), "{bytes}");
        assert_eq!(parts.len(), 1 + usize::from(bytes > 1440), "{bytes}");
    }
}

#[test]
fn what_is_late_and_too_long_goes_as_a_whole() {
    let mut marks = Marks::new(&Format::Rtp(vec![Track { payload_type: 96, ..Track::h264() }]));
    let long = |sequence| parsed(0, sequence, &[0x41; 1455], false);
    let numbers = |parts: Vec<Vec<u8>>| {
        parts
            .iter()
            .map(|part| (u16::from_be_bytes([part[2], part[3]]), Mark::read(part).is_some()))
            .collect()
    };
    let sent: Vec<Vec<(u16, bool)>> =
        [1, 4, 2, 3].map(|sequence| numbers(all_marked(&mut marks, long(sequence)))).into();
    assert_eq!(sent[..2], [[(1, true), (2, true)], [(5, true), (6, true)]]);
    assert_eq!(sent[2..], [[(3, false)], [(4, false)]], "there is one number for each");
}

#[test]
fn packets_of_a_described_track_go_by_what_their_format_says() {
    let mut described = Described::default();
    described.add(PORT, Track { payload_type: 96, ..Track::h264() });
    described.add(PORT + 4, Track { codec: Codec::Srtp { video: true }, payload_type: 96, ..Track::h264() });
    let mut ways = Ways::default();
    ways.describe(described.into());
    ways.set([(1, level(1)), (3, level(3))], |_| false);
    // Whole NAL units: an intra picture, another reference, and one that is none (RFC 6184, section 5.6).
    let picture = |sequence: u16, kind: u8| {
        let head = PlainHeader {
            marker: true,
            payload_type: 96,
            sequence,
            timestamp: u32::from(sequence) * 3600,
            ssrc: 1,
        };
        [&head.emit()[..], &[kind, if kind == 0x65 { 0xb0 } else { 0xc0 }, 0, 0]].concat()
    };
    let kinds = [0x65, 0x41, 0x01, 0x41, 0x65, 0x41];
    let mut got: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
    for (sequence, kind) in (1..).zip(kinds) {
        for (to, sent) in judge(&mut ways, &picture(sequence, kind)) {
            got.entry(to).or_default().extend(sent.map(|sent| sent.sequence));
        }
    }
    assert_eq!(got, [(1, vec![1, 2, 3, 4, 5, 6]), (3, vec![1, 2])].into());
    let other = PlainHeader { marker: true, payload_type: 97, sequence: 9, timestamp: 0, ssrc: 2 };
    assert_eq!(judge(&mut ways, &other.emit()), [(1, None), (3, None)].into(), "of another payload type");
    let mut locked = Vec::new();
    ways.judge(PORT + 4, &picture(1, 0x41), |to, sent| locked.push((to, sent)));
    assert_eq!(locked, [(1, None), (3, None)], "its numbers are signed");
}
