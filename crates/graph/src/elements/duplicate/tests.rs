use super::super::testing::{Run, Source, numbers, settings, video, word};
use super::*;
use crate::{Numbering, Setting};

#[test]
fn a_copy_of_everything_leaves_by_the_other_output_and_is_the_same_bytes() {
    let mut run = Run::new(&KIND, &settings([]), &video(1));
    let out = run.give(Source::new(0).frames("D"));
    assert_eq!(out.iter().map(|item| item.port).collect::<Vec<_>>(), [0, 1, 0, 1]);
    assert_eq!(out[0].packet.bytes.as_ptr(), out[1].packet.bytes.as_ptr());
}

#[test]
fn repeats_of_key_frames_come_behind_what_came_meanwhile() {
    let options =
        settings([("repeats", Setting::Whole(1)), ("after", Setting::Whole(3)), ("of", word("key-frames"))]);
    let mut run = Run::new(&KIND, &options, &video(1));
    let mut source = Source::new(0);
    let first = run.give(source.frames("IP"));
    assert_eq!(numbers(&first), [100, 101, 102, 100, 103]);
    assert!(first.is_sorted_by_key(|item| item.ordinal), "it keeps its place where flows meet");
    let mut next = run.replace(&KIND, &options, &video(1));
    assert_eq!(numbers(&next.give(source.frames("P"))), [101, 104, 105]);
}

#[test]
fn several_repeats_are_spread() {
    let options = settings([("repeats", Setting::Whole(2)), ("after", Setting::Whole(1))]);
    let mut run = Run::new(&KIND, &options, &video(1));
    let out = run.give(Source::new(0).frames("DD"));
    assert_eq!(numbers(&out), [100, 100, 101, 100, 101, 102, 101, 102, 103]);
    let at_once = settings([("repeats", Setting::Whole(1))]);
    let mut run = Run::new(&KIND, &at_once, &video(1));
    assert_eq!(numbers(&run.give(Source::new(0).frames("D"))), [100, 100, 101, 101]);
}

#[test]
fn a_repeat_keeps_the_number_that_its_original_got_where_gaps_were_closed() {
    let options = settings([("repeats", Setting::Whole(1)), ("after", Setting::Whole(3))]);
    let mut run = Run::new(&KIND, &options, &video(1));
    let mut items = run.give(Source::new(0).frames("DDD"));
    // 100, 101, 102, 100, 103, 101, 104, 102, 105: without 101 and both of 102.
    let mut numbering = Numbering::default();
    items.retain(|item| numbers([item]) != [102] && (numbers([item]) != [101] || item.ordinal > 1));
    items.iter_mut().for_each(|item| numbering.number(item));
    let out = numbers(&items);
    assert_eq!((out[0], out[1], out[2]), (100, 100, 101));
    assert_eq!(&out[4..], [102, 103]);
}

#[test]
fn what_is_repeated_how_often_must_be_said() {
    let error = Run::refusal(&KIND, &settings([("after", Setting::Whole(2))]), &video(1));
    assert!(error.contains("write `repeats`"), "{error}");
}
