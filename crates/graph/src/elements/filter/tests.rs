use outflow_media::Tag;
use proptest::prelude::*;

use super::super::testing::{BODY, Run, SSRC, Source, frames, settings, video, word, words};
use super::*;
use crate::Setting;

fn run(settings: &Settings) -> Run {
    Run::new(&KIND, settings, &video(2))
}

#[test]
fn frames_of_a_kind_are_kept_whole_and_the_rest_leaves_by_the_other_output() {
    let mut run = run(&settings([("kinds", words(&["intra"]))]));
    let mut source = Source::new(0);
    // The parameter set in front of the key frame goes with it, that of the other frame does not.
    let out = run.give(source.frames("ipI"));
    let (kept, rest): (Vec<_>, Vec<_>) = out.iter().partition(|item| item.port == 0);
    assert_eq!((frames(kept), frames(rest)), (vec![(1, 3), (3, 2)], vec![(2, 3)]));
    assert_eq!(run.tally.drops.total(), 0, "it is the graph that knows whether anything takes the rest");
}

#[test]
fn a_frame_waits_across_batches_until_it_shows_what_it_is() {
    let mut run = run(&settings([("mode", word("drop")), ("kinds", words(&["bidirectional"]))]));
    let mut source = Source::new(0);
    let mut parts = source.frames("ip");
    let later = parts.split_off(1);
    assert!(run.give(parts).is_empty(), "held");
    assert_eq!(frames(&run.kept(later)), [(1, 3), (2, 3)]);
    // A frame of nothing but parameter sets is what it is once the next frame begins.
    let header = source.packet(Tag { frame: 3, kind: outflow_media::Kind::Header, ..Tag::default() });
    assert!(run.give(vec![header]).is_empty(), "held");
    let next = source.packet(Tag { frame: 4, kind: outflow_media::Kind::Intra, ..Tag::default() });
    assert_eq!(frames(&run.kept(vec![next])), [(3, 1), (4, 1)]);
}

#[test]
fn what_needs_a_frame_that_was_left_out_is_left_out_and_says_so() {
    let drop_intra = [("mode", word("drop")), ("kinds", words(&["intra"]))];
    let mut run = run(&settings(drop_intra.clone()));
    let out = run.give(Source::new(0).frames("IPB"));
    let reasons: Vec<_> = out.iter().map(|item| (item.port, item.otherwise)).collect();
    let (filtered, depends) = ((1, DropReason::Filtered), (1, DropReason::DependsOnDropped));
    assert_eq!(reasons, [filtered, filtered, depends, depends, depends, depends]);
    let [mode, kinds] = drop_intra;
    let mut alone = self::run(&settings([mode, kinds, ("dependents", Setting::Flag(false))]));
    assert_eq!(frames(&alone.kept(Source::new(0).frames("IPB"))), [(2, 2), (3, 2)]);
}

#[test]
fn packets_are_told_by_track_payload_type_source_and_layer() {
    let keeps = |option: (&str, Setting), track: u8, layer: u8| {
        let mut run = run(&settings([option]));
        let item = Source::new(track).packet(Tag { layer, ..Tag::default() });
        run.kept(vec![item]).len() == 1
    };
    let one = |number| Setting::Numbers(vec![number]);
    assert!(keeps(("tracks", one(1)), 1, 0) && !keeps(("tracks", one(1)), 0, 0));
    assert!(keeps(("payload_types", one(97)), 1, 0) && !keeps(("payload_types", one(97)), 0, 0));
    assert!(keeps(("ssrcs", one(SSRC.into())), 0, 0) && !keeps(("ssrcs", one(5)), 0, 0));
    assert!(keeps(("layer", Setting::Whole(2)), 0, 2) && !keeps(("layer", Setting::Whole(2)), 0, 3));
}

#[test]
fn beyond_the_rate_frames_are_left_out() {
    // A packet has 100 bytes: a burst of one, and then two frames of two a second.
    let packet = 12 + BODY as u64;
    let mut run = run(&settings([("rate", Setting::Rate(4 * packet * 8)), ("burst", Setting::Size(packet))]));
    let mut source = Source::new(0);
    assert_eq!(frames(&run.kept(source.frames("DDD"))), [(1, 2)], "the frame that began goes on");
    run.wait(core::time::Duration::from_millis(240));
    assert_eq!(frames(&run.kept(source.frames("D"))), [], "in debt for 250 ms");
    run.wait(core::time::Duration::from_millis(20));
    assert_eq!(frames(&run.kept(source.frames("D"))), [(5, 2)]);
}

#[test]
fn another_filter_goes_on_with_frames_that_began() {
    let keep = settings([("kinds", words(&["intra"]))]);
    let mut run = run(&keep);
    let mut packets = Source::new(0).frames("iPB");
    let rest = packets.split_off(2);
    assert_eq!(run.kept(packets).len(), 2);
    let drop = settings([("mode", word("drop")), ("kinds", words(&["predicted"]))]);
    let mut next = run.replace(&KIND, &drop, &video(2));
    assert_eq!(frames(&next.kept(rest)), [(1, 1)], "frame 3 needs 2");
}

#[test]
fn a_filter_must_have_something_to_go_by() {
    let error = Run::refusal(&KIND, &settings([("mode", word("drop"))]), &video(1));
    assert!(error.contains("write `kinds`"), "{error}");
}

proptest! {
    #[test]
    fn whatever_is_filtered_frames_are_whole_and_have_what_they_need(
        letters in "I[IPBDip]{0,60}",
        kinds in proptest::sample::subsequence(vec!["intra", "predicted", "bidirectional", "data"], 1..4),
        cut in 1_usize..7,
        rate in proptest::option::of(1_000_u64..2_000_000),
    ) {
        let mut options = settings([("mode", word("drop")), ("kinds", words(&kinds))]);
        if let Some(rate) = rate {
            options = options.with("rate", Setting::Rate(rate)).with("burst", Setting::Size(300));
        }
        let mut run = run(&options);
        let items = Source::new(0).frames(&letters);
        let mut kept = Vec::new();
        for batch in items.chunks(cut) {
            run.wait(core::time::Duration::from_millis(1));
            kept.extend(run.kept(batch.to_vec()));
        }
        let survivors = frames(&kept);
        for item in &kept {
            let tag = item.packet.tag;
            for distance in tag.needs.distances() {
                prop_assert!(survivors.iter().any(|(frame, _)| *frame == tag.frame - distance));
            }
        }
        for (frame, count) in &survivors {
            prop_assert_eq!(items.iter().filter(|item| item.packet.tag.frame == *frame).count(), *count);
        }
    }
}
