use outflow_rtp::RtpHeader;

use super::super::testing::{BODY, Run, SSRC, Source, settings, video, word};
use super::*;
use crate::Setting;

#[test]
fn the_header_is_another_one_and_the_payload_the_same() {
    let all = settings([
        ("payload_type", Setting::Whole(111)),
        ("ssrc", Setting::Whole(7)),
        ("marker", word("set")),
        ("timestamp_offset", Setting::Whole(u64::from(u32::MAX))),
    ]);
    let mut run = Run::new(&KIND, &all, &video(1));
    let before = Source::new(0).frames("D");
    let payload = before[0].packet.bytes.slice(12..);
    let out = run.give(before);
    let whole = out[0].whole();
    let header = RtpHeader::new_checked(&whole).unwrap();
    let fields = (header.payload_type(), header.ssrc(), header.marker(), header.timestamp());
    assert_eq!(fields, (111, 7, true, 2_999));
    assert_eq!(header.sequence(), 100);
    assert_eq!(out[0].packet.bytes.as_ptr(), payload.as_ptr(), "not copied");
    let Format::Rtp(tracks) = run.format else { panic!() };
    assert_eq!(tracks[0].payload_type, 111);
}

#[test]
fn only_the_tracks_that_are_meant_change() {
    let one = settings([("tracks", Setting::Numbers(vec![1])), ("ssrc", Setting::Whole(7))]);
    let mut run = Run::new(&KIND, &one, &video(2));
    let out = run.give([Source::new(0).frames("D"), Source::new(1).frames("D")].concat());
    let ssrc = |item: &Item| RtpHeader::new_checked(&item.whole()).unwrap().ssrc();
    assert_eq!(out.iter().map(ssrc).collect::<Vec<_>>(), [SSRC, SSRC, 7, 7]);
    assert_eq!(out[0].len(), 12 + BODY);
}

#[test]
fn the_marker_can_stand_at_the_end_of_frames() {
    for (marker, expected) in [("last", [0, 1]), ("clear", [0, 0]), ("set", [1, 1])] {
        let mut run = Run::new(&KIND, &settings([("marker", word(marker))]), &video(1));
        let out = run.give(Source::new(0).frames("D"));
        assert_eq!(out.iter().map(|item| item.header().unwrap()[1] >> 7).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let ssrc = ("ssrc", Setting::Whole(7));
    let many = Run::refusal(&KIND, &settings([ssrc.clone()]), &video(2));
    assert!(many.contains("write the number of a single one"), "{many}");
    let nothing = Run::refusal(&KIND, &settings([]), &video(1));
    assert!(nothing.contains("write `payload_type`"), "{nothing}");
    let missing = Run::refusal(&KIND, &settings([ssrc, ("tracks", Setting::Numbers(vec![5]))]), &video(1));
    assert!(missing.contains("no track"), "{missing}");
}
