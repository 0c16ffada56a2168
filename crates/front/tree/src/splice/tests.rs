use outflow_client::RtpStamp;
use outflow_media::{Codec, Track as MediaTrack};
use outflow_rtp::PlainHeader;

use super::*;

const SSRC: u32 = 7;

fn video() -> MediaTrack {
    MediaTrack { codec: Codec::Vp8, payload_type: 96, clock_rate: 90_000, ..MediaTrack::mp2t() }
}

fn rtp_format(tracks: usize) -> Format {
    Format::Rtp(vec![video(); tracks])
}

/// A packet of RTP of a picture; `number` is that of the relay that sends it.
fn packet(track: u8, number: u16, timestamp: u32, what: &str) -> Packet {
    let header = PlainHeader { marker: false, payload_type: 96, sequence: number, timestamp, ssrc: SSRC };
    let bytes = [&header.emit()[..], what.as_bytes()].concat().into();
    let rtp = Some(RtpStamp { sequence: number, timestamp, ssrc: SSRC });
    Packet { track, bytes, arrived: Time::ZERO, rtp }
}

/// What is published: number and content.
fn take(splice: &mut Splice, packet: Packet) -> Result<Vec<(u16, String)>, Strange> {
    let mut out = Vec::new();
    splice.take(packet, |packet| {
        let header = outflow_rtp::RtpHeader::new_checked(&packet.bytes).expect("RTP");
        assert_eq!(Some(header.sequence()), packet.rtp.map(|stamp| stamp.sequence));
        out.push((header.sequence(), String::from_utf8_lossy(header.payload()).into_owned()));
    })?;
    Ok(out)
}

/// All that is published of these packets: a timestamp and a content each, numbered from there.
fn all(splice: &mut Splice, first: u16, packets: &[(u32, &str)]) -> Vec<(u16, String)> {
    let numbers = (0..).map(|place: u16| first.wrapping_add(place));
    let packets = numbers.zip(packets);
    packets
        .flat_map(|(number, (at, what))| take(splice, packet(0, number, *at, what)).expect("the same"))
        .collect()
}

fn published(all: &[(u16, &str)]) -> Vec<(u16, String)> {
    all.iter().map(|(number, what)| (*number, (*what).to_owned())).collect()
}

/// A picture is needed by those behind it; timestamps are not in order.
const GOP: [(u32, &str); 7] =
    [(0, "I"), (9000, "P1"), (9000, "P2"), (3000, "B1"), (6000, "B2"), (18_000, "P3"), (12_000, "B3")];

fn begun(count: usize) -> Splice {
    let mut splice = Splice::new(&rtp_format(1));
    all(&mut splice, 65_530, &GOP[..count]);
    splice
}

#[test]
fn what_was_published_is_left_out_and_numbers_run_on() {
    for count in 1..GOP.len() {
        let mut splice = begun(count);
        splice.change();
        let rest: Vec<_> =
            (count..GOP.len()).map(|at| (65_530_u16.wrapping_add(at as u16), GOP[at].1)).collect();
        assert_eq!(all(&mut splice, 100, &GOP), published(&rest), "after {count}");
        let left_out = LeftOut { repeated: count as u64, late: 0 };
        assert_eq!(splice.take_left_out(), left_out);
        assert_eq!(all(&mut splice, 107, &[(15_000, "B4")]), published(&[(1, "B4")]), "and goes on");
    }
}

#[test]
fn a_new_parent_that_begins_behind_leaves_one_number_out() {
    let mut splice = begun(7);
    splice.change();
    let next = [(90_000, "I"), (93_000, "P")];
    assert_eq!(all(&mut splice, 7, &next), published(&[(2, "I"), (3, "P")]));
    assert_eq!(splice.take_left_out(), LeftOut::default());
}

#[test]
fn where_the_last_one_does_not_come_again_the_next_picture_goes_on_behind_what_was_known() {
    let mut splice = begun(4);
    splice.change();
    // B1 was lost on the new way.
    let burst = [GOP[0], GOP[1], GOP[2], GOP[4], GOP[5], GOP[6]];
    let expected = [(65_534, "B2"), (65_535, "P3"), (0, "B3")];
    assert_eq!(all(&mut splice, 50, &burst), published(&expected));
}

#[test]
fn what_only_the_parent_before_lost_comes_too_late() {
    let mut splice = Splice::new(&rtp_format(1));
    all(&mut splice, 1, &[GOP[0], GOP[1], GOP[3], GOP[4]]);
    splice.change();
    assert_eq!(all(&mut splice, 30, &GOP), published(&[(5, "P3"), (6, "B3")]));
    assert_eq!(splice.take_left_out(), LeftOut { repeated: 4, late: 1 });
}

#[test]
fn of_a_long_group_of_pictures_only_the_end_is_remembered() {
    let names: Vec<String> = (0..2000).map(|at| format!("P{at}")).collect();
    let long: Vec<(u32, &str)> =
        (0..).map(|at: u32| at * 3000).zip(names.iter().map(String::as_str)).collect();
    let mut splice = Splice::new(&rtp_format(1));
    all(&mut splice, 0, &long[..1990]);
    splice.change();
    let came = all(&mut splice, 9, &long);
    assert_eq!((came.first(), came.len()), (Some(&(1990, "P1990".to_owned())), 10));
    let LeftOut { repeated, late } = splice.take_left_out();
    assert_eq!((repeated + late, repeated), (1990, KNOWN_MAX as u64));
}

#[test]
fn each_track_goes_on_by_itself() {
    let mut splice = Splice::new(&rtp_format(2));
    for (track, number, at, what) in [(0, 1, 0, "I"), (1, 11, 0, "a"), (1, 12, 960, "b"), (0, 2, 3000, "P")] {
        take(&mut splice, packet(track, number, at, what)).expect("nothing to be strange to");
    }
    splice.change();
    let mut came = Vec::new();
    for (track, number, at, what) in [
        (0, 5, 0, "I"),
        (1, 5, 0, "a"),
        (0, 6, 3000, "P"),
        (0, 7, 6000, "Q"),
        (1, 6, 960, "b"),
        (1, 7, 1920, "c"),
    ] {
        came.extend(take(&mut splice, packet(track, number, at, what)).expect("the same"));
    }
    assert_eq!(came, published(&[(3, "Q"), (13, "c")]));
}

#[test]
fn another_source_is_told_by_its_ssrc_its_clock_and_its_format() {
    let splice = begun(7);
    let (format, first) = (rtp_format(1), packet(0, 1, 90_000, "I"));
    assert!(splice.may_go_on(&format, &first));
    assert!(!splice.may_go_on(&rtp_format(2), &first));
    let far = packet(0, 1, 90_000 * 121 + 18_000, "I");
    assert!(!splice.may_go_on(&format, &far));
    let mut other = first.clone();
    other.rtp.as_mut().expect("RTP").ssrc = 8;
    assert!(!splice.may_go_on(&format, &other));
    let encrypted = MediaTrack { codec: Codec::Srtp { video: true }, ..video() };
    let encrypted = Format::Rtp(vec![encrypted]);
    assert!(!Splice::new(&encrypted).may_go_on(&encrypted, &first), "its numbers cannot be changed");
}

#[test]
fn a_parent_whose_timestamps_stay_behind_is_taken_after_a_while_as_another_source() {
    let mut splice = begun(7);
    splice.change();
    let old = |after_ms| Packet { arrived: Time::from_millis(after_ms), ..packet(0, 1, 1, "strange") };
    assert_eq!(take(&mut splice, old(0)), Ok(Vec::new()));
    let wait = JOINT_WAIT_RTP.as_millis() as u64;
    assert_eq!(take(&mut splice, old(wait)), Ok(Vec::new()));
    let strange = take(&mut splice, old(wait + 1)).expect_err("it was waited for long enough");
    assert_eq!(strange.0.len(), 3, "nothing is lost");
}

#[test]
fn a_better_parent_is_near_once_it_sends_what_was_published_when_it_began() {
    let mut splice = begun(5);
    let mut approach = Approach::default();
    let mut near = |splice: &Splice, at: usize| {
        splice.is_reached(&mut approach, &packet(0, 40 + at as u16, GOP[at].0, GOP[at].1))
    };
    assert!(!near(&splice, 0) && !near(&splice, 3));
    all(&mut splice, 65_535, &GOP[5..]);
    assert!(near(&splice, 4), "though more was published since then");
    assert!(near(&splice, 6));
}

#[test]
fn a_parent_that_begins_ahead_is_near_once_the_other_one_has_sent_that_or_after_a_while() {
    let mut splice = begun(5);
    let ahead = |ms| Packet { arrived: Time::from_millis(ms), ..packet(0, 1, GOP[6].0, GOP[6].1) };
    let (mut approach, mut alone) = (Approach::default(), Approach::default());
    let wait = JOINT_WAIT.as_millis() as u64;
    assert!(!splice.is_reached(&mut approach, &ahead(0)));
    assert!(!splice.is_reached(&mut alone, &ahead(0)) && !splice.is_reached(&mut alone, &ahead(wait)));
    assert!(splice.is_reached(&mut alone, &ahead(wait + 1)), "the other one does not send it");
    all(&mut splice, 65_535, &GOP[5..]);
    assert!(splice.is_reached(&mut approach, &packet(0, 2, 90_000, "I")), "nothing is missing between");
}

#[test]
fn a_splice_goes_on_in_another_process_as_it_stood() {
    let mut splice = begun(5);
    let bytes = minicbor::to_vec(splice.save().expect("one parent sends")).expect("written");
    let saved = || minicbor::decode(&bytes).expect("it was written just now");
    assert!(Splice::restore(&rtp_format(2), saved()).is_none(), "another stream");
    let mut restored = Splice::restore(&splice.format, saved()).expect("the same stream");
    restored.change();
    assert!(restored.save().is_none(), "between two parents");
    splice.change();
    // The parent begins with its key frame again.
    let (here, there) = (all(&mut splice, 40, &GOP), all(&mut restored, 40, &GOP));
    assert_eq!(here, there);
    assert!(!there.is_empty() && there.len() < GOP.len(), "{there:?}");
}

/// Seven packets of a transport stream, all with this content and continuity counters from there.
fn datagram(counter: u8, what: u8, ms: u64) -> Packet {
    let mut bytes = Vec::new();
    for place in 0..7 {
        let mut part = [what; 188];
        part[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10 | (counter + place) & 0xf]);
        bytes.extend(part);
    }
    // Each relay makes headers of its own.
    let rtp = Some(RtpStamp { sequence: 1, timestamp: 5, ssrc: u32::from(counter) });
    Packet { track: 0, bytes: bytes.into(), arrived: Time::from_millis(ms), rtp }
}

/// What is published of a burst: the content of each datagram.
fn burst(splice: &mut Splice, counter: u8, all: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for what in all {
        splice.take(datagram(counter, *what, 0), |packet| out.push(packet.bytes[100])).expect("the same");
    }
    out
}

#[test]
fn a_transport_stream_goes_on_whatever_its_continuity_counters_and_stuffing_are() {
    let mut splice = Splice::new(&Format::Ts);
    assert!(burst(&mut splice, 0, &[1, 2, 9, 9, 3, 4, 9, 9]).len() == 8);
    assert!(splice.may_go_on(&Format::Ts, &datagram(5, 1, 0)));
    splice.change();
    // The first one is what receivers that join are greeted with.
    assert_eq!(burst(&mut splice, 5, &[77, 1, 2, 9, 9, 3, 4, 9, 9, 5, 9, 6]), [5, 9, 6]);
    let mut approach = Approach::default();
    let near = [5, 9, 6].map(|what| splice.is_reached(&mut approach, &datagram(0, what, 0)));
    assert_eq!(near, [false, false, true]);
}

#[test]
fn a_transport_stream_of_which_nothing_is_known_is_another_one_after_a_while() {
    let mut splice = Splice::new(&Format::Ts);
    burst(&mut splice, 0, &[1, 2, 3]);
    splice.change();
    let late = JOINT_WAIT.as_millis() as u64 + 1;
    let mut take = |what, ms| splice.take(datagram(0, what, ms), |_| panic!("nothing is known"));
    assert_eq!((take(7, 0), take(8, late - 1)), (Ok(()), Ok(())));
    let Err(Strange(all)) = take(9, late) else { panic!("it was waited for long enough") };
    assert_eq!(all.len(), 3);
}
