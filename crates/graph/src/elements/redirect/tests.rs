use super::super::testing::{Run, Source, settings, video, words};
use super::*;
use crate::Setting;

fn ports(items: &[Item]) -> Vec<u8> {
    items.iter().map(|item| item.port).collect()
}

#[test]
fn what_is_meant_leaves_by_the_other_output_in_whole_frames() {
    let mut run = Run::new(&KIND, &settings([("kinds", words(&["bidirectional"]))]), &video(1));
    assert_eq!(ports(&run.give(Source::new(0).frames("iBP"))), [0, 0, 0, 1, 1, 0, 0]);
}

#[test]
fn a_changed_switch_waits_for_a_key_frame() {
    let mut run = Run::new(&KIND, &settings([]), &video(1));
    let mut source = Source::new(0);
    let mut begun = source.frames("IP");
    let rest = begun.split_off(3);
    assert_eq!(ports(&run.give(begun)), [0, 0, 0]);
    let all = settings([("all", Setting::Flag(true))]);
    let mut next = run.replace(&KIND, &all, &video(1));
    assert_eq!(ports(&next.give(rest)), [0]);
    assert_eq!(ports(&next.give(source.frames("PiP"))), [0, 0, 1, 1, 1, 1, 1]);
}

#[test]
fn a_switch_that_does_not_wait_lets_frames_end_where_they_began() {
    let mut run = Run::new(&KIND, &settings([]), &video(1));
    let mut source = Source::new(0);
    let mut begun = source.frames("I");
    let rest = begun.split_off(1);
    run.give(begun);
    let at_once = settings([("all", Setting::Flag(true)), ("at_key", Setting::Flag(false))]);
    let mut next = run.replace(&KIND, &at_once, &video(1));
    assert_eq!(ports(&next.give([rest, source.frames("P")].concat())), [0, 1, 1]);
}
