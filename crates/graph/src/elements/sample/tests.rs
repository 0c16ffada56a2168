use super::super::testing::{Run, Source, frames, settings, video, word};
use super::*;
use crate::Setting;

#[test]
fn every_third_frame_is_kept_of_each_track() {
    let mut run = Run::new(&KIND, &settings([("every", Setting::Whole(3))]), &video(2));
    let (mut a, mut b) = (Source::new(0), Source::new(1));
    let out = run.kept([a.frames("DDDDD"), b.frames("DD")].concat());
    assert_eq!(frames(&out), [(1, 2), (4, 2), (1, 2)]);
}

#[test]
fn frames_that_need_others_go_with_them() {
    let mut run = Run::new(&KIND, &settings([]), &video(1));
    let out = run.give(Source::new(0).frames("IPPPI"));
    let kept: Vec<_> = out.iter().filter(|item| item.port == 0).collect();
    assert_eq!(frames(kept), [(1, 2), (5, 2)]);
    assert_eq!(out.iter().filter(|item| item.otherwise == DropReason::DependsOnDropped).count(), 2);
}

#[test]
fn every_second_packet_is_kept_without_regard_to_frames() {
    let mut run = Run::new(&KIND, &settings([("of", word("packets"))]), &video(1));
    assert_eq!(frames(&run.kept(Source::new(0).frames("DDD"))), [(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn a_part_is_kept_by_chance_and_the_same_each_time() {
    let choose = |percent, seed| {
        let options = settings([("percent", Setting::Whole(percent)), ("seed", Setting::Whole(seed))]);
        let mut run = Run::new(&KIND, &options, &video(1));
        frames(&run.kept(Source::new(0).frames(&"D".repeat(1000))))
    };
    assert_eq!((choose(0, 1).len(), choose(100, 1).len()), (0, 1000));
    let third = choose(33, 7);
    assert!((280..380).contains(&third.len()), "{}", third.len());
    assert_eq!(third, choose(33, 7));
    assert_ne!(third, choose(33, 8));
}

#[test]
fn another_one_goes_on_counting() {
    for of in ["frames", "packets"] {
        let options = settings([("of", word(of)), ("every", Setting::Whole(4))]);
        let mut run = Run::new(&KIND, &options, &video(1));
        let mut source = Source::new(0);
        run.give(source.frames("DD"));
        let mut next = run.replace(&KIND, &options, &video(1));
        let kept = frames(&next.kept(source.frames("DDD")));
        assert_eq!(kept, if of == "frames" { vec![(5, 2)] } else { vec![(3, 1), (5, 1)] });
    }
}

#[test]
fn a_share_by_chance_is_two_wishes() {
    let both = settings([("every", Setting::Whole(2)), ("percent", Setting::Whole(2))]);
    assert!(Run::refusal(&KIND, &both, &video(1)).contains("write one of them"));
}
