use core::time::Duration;

use outflow_media::importance::examples;
use proptest::prelude::*;

use super::super::testing::{BODY, Run, Source, frames, settings, video};
use super::*;
use crate::Setting;

const FRAME: u64 = 2 * (12 + BODY as u64);

fn limited(rate: u64, burst: u64) -> Run {
    let options = settings([("rate", Setting::Rate(rate)), ("burst", Setting::Size(burst))]);
    Run::new(&KIND, &options, &video(1))
}

#[test]
fn what_nothing_needs_goes_first_and_key_frames_last() {
    // Of eight frames that a burst would hold, half are for key frames and what they are needed by.
    let mut run = limited(1, 8 * FRAME);
    let mut source = Source::new(0);
    let out = run.kept(source.frames("IBBBBBPPPIIIIII"));
    assert_eq!(frames(&out).iter().map(|(frame, _)| *frame).collect::<Vec<_>>(), [1, 2, 3, 4, 7, 8, 10, 11]);
    assert_eq!(run.dropped(DropReason::RateLimit), 2 * (2 + 1 + 4));
}

#[test]
fn what_matters_more_leaves_no_more_to_others() {
    let reserves: Vec<_> = examples().into_iter().map(|(name, tag)| (reserve(&tag), name)).collect();
    assert!(reserves.is_sorted_by_key(|(reserve, _)| *reserve), "{reserves:?}");
    assert!(reserves.iter().any(|(reserve, name)| *reserve == 0 && *name == "sound"));
}

#[test]
fn frames_that_need_one_that_was_left_out_wait_for_a_key_frame() {
    let mut run = limited(8 * FRAME * 1000, FRAME);
    let mut source = Source::new(0);
    assert_eq!(frames(&run.kept(source.frames("IP"))), [(1, 2)]);
    // There is room again, but not for them.
    run.wait(Duration::from_secs(1));
    assert!(run.kept(source.frames("PB")).is_empty());
    assert_eq!((run.dropped(DropReason::RateLimit), run.dropped(DropReason::DependsOnDropped)), (2, 4));
    assert_eq!(frames(&run.kept(source.frames("I"))), [(5, 2)]);
}

#[test]
fn layers_say_more_than_kinds() {
    let mut run = limited(1, 2 * FRAME);
    let mut source = Source::new(0);
    let mut out = run.kept(source.frames("D"));
    let mut least = source.frames("D");
    least.iter_mut().for_each(|item| item.packet.tag.layer = 100);
    out.extend(run.kept(least));
    out.extend(run.kept(source.frames("D")));
    assert_eq!(frames(&out), [(1, 2), (3, 2)]);
}

#[test]
fn the_level_is_handed_on() {
    let mut run = limited(8 * FRAME, FRAME);
    let mut source = Source::new(0);
    assert_eq!(run.kept(source.frames("II")).len(), 2);
    let options = settings([("rate", Setting::Rate(8 * FRAME)), ("burst", Setting::Size(4 * FRAME))]);
    let mut next = run.replace(&KIND, &options, &video(1));
    assert!(next.kept(source.frames("I")).is_empty(), "it is as empty as before");
    next.wait(Duration::from_millis(500));
    assert_eq!(next.kept(source.frames("I")).len(), 2);
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let nothing = settings([("rate", Setting::Rate(0))]);
    assert!(Run::refusal(&KIND, &nothing, &video(1)).contains("above zero"));
}

proptest! {
    #[test]
    fn no_more_passes_than_the_rate_brings_and_all_is_counted(
        letters in "[IPBDip]{1,80}",
        rate in 1_000_u64..10_000_000,
        burst in 1_u64..2_000,
        pauses in proptest::collection::vec(0_u64..20_000, 80),
    ) {
        let mut run = limited(rate, burst);
        let mut source = Source::new(0);
        let (mut passed, mut packets, mut began) = (0, 0, None);
        for (letter, pause) in letters.chars().zip(pauses) {
            run.wait(Duration::from_micros(pause));
            began.get_or_insert(run.now);
            let frame = source.frame(letter);
            packets += frame.len() as u64;
            passed += run.kept(frame).iter().map(|item| item.len() as u64).sum::<u64>();
            let elapsed = run.now.since(began.unwrap()).as_nanos() as u64;
            let brought = u128::from(rate) * u128::from(elapsed) / 8_000_000_000;
            prop_assert!(u128::from(passed) <= brought + u128::from(burst + FRAME + FRAME / 2) + 1);
        }
        prop_assert_eq!(packets - run.tally.drops.total(), passed / (12 + BODY as u64));
    }
}
