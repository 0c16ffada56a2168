use proptest::prelude::*;

use super::super::testing::{Run, Source, numbers, settings, video};
use super::*;
use crate::{Numbering, Setting};

fn dedupe() -> Settings {
    settings([("dedupe", Setting::Flag(true)), ("window", Setting::Whole(64))])
}

#[test]
fn without_a_word_everything_goes_on() {
    let mut run = Run::new(&KIND, &settings([]), &video(1));
    let items = Source::new(0).frames("D");
    assert_eq!(numbers(&run.give([items.clone(), items].concat())), [100, 101, 100, 101]);
}

#[test]
fn of_copies_the_first_goes_on_and_the_rest_is_counted() {
    let mut run = Run::new(&KIND, &dedupe(), &video(1));
    let mut source = Source::new(0);
    let mut one = source.frames("DDD");
    let two = one.clone();
    one.remove(2);
    assert_eq!(numbers(&run.give(one)), [100, 101, 103, 104, 105]);
    assert_eq!(numbers(&run.give(two.clone())), [102], "what was lost on the other way");
    assert_eq!(run.dropped(DropReason::Duplicate), 5);
    run.give(source.frames(&"D".repeat(40)));
    assert!(run.give(two).is_empty());
    assert_eq!(run.dropped(DropReason::Late), 6, "that is not known any more");
}

#[test]
fn another_one_knows_what_came() {
    let mut run = Run::new(&KIND, &dedupe(), &video(1));
    let items = Source::new(0).frames("D");
    run.give(items.clone());
    let mut next = run.replace(&KIND, &dedupe(), &video(1));
    assert!(next.give(items).is_empty());
}

#[test]
fn one_flow_by_two_ways_becomes_one_track() {
    let format = || {
        let Format::Rtp(mut tracks) = video(3) else { panic!() };
        tracks[2].payload_type = tracks[0].payload_type;
        tracks[0].fmtp = "first".to_owned();
        Format::Rtp(tracks)
    };
    let flows = settings([("flows", Setting::Numbers(vec![0, 2]))]);
    let mut run = Run::new(&KIND, &flows, &format());
    let Format::Rtp(tracks) = &run.format else { panic!() };
    assert_eq!((tracks.len(), tracks[0].fmtp.as_str(), tracks[1].payload_type), (2, "first", 97));
    let (mut near, mut far) = (Source::new(0), Source::new(2));
    let mut first = near.frames("DDD");
    // It counts its frames otherwise.
    let mut second = far.frames("DDD");
    second.iter_mut().for_each(|item| item.packet.tag.frame += 7);
    first.drain(2..4);
    let mut out = run.give(first);
    out.extend(run.give(second));
    assert_eq!(numbers(&out), [100, 101, 104, 105, 102, 103]);
    assert!(out.iter().all(|item| item.packet.tag.track == 0));
    let frames: Vec<u32> = out.iter().map(|item| item.packet.tag.frame).collect();
    assert!(frames[0] == frames[1] && frames[2] == frames[3] && frames[2] > frames[0], "{frames:?}");
    // What is left out behind it leaves no gap.
    let mut numbering = Numbering::default();
    let mut more = run.give(near.frames("DD"));
    more.remove(1);
    out.extend(more);
    out.iter_mut().for_each(|item| numbering.number(item));
    assert_eq!(numbers(&out)[6..], [106, 107, 108]);
}

#[test]
fn flows_that_are_not_one_are_refused() {
    let flows = |list: &[u64]| settings([("flows", Setting::Numbers(list.to_vec()))]);
    assert!(Run::refusal(&KIND, &flows(&[0]), &video(2)).contains("two or more"));
    assert!(Run::refusal(&KIND, &flows(&[0, 1]), &video(2)).contains("described alike"));
    assert!(Run::refusal(&KIND, &flows(&[0, 9]), &video(2)).contains("described alike"));
    assert!(Run::refusal(&KIND, &flows(&[0, 1]), &Format::Ts).contains("leave `flows` out"));
    assert!(Run::refusal(&KIND, &settings([("window", Setting::Whole(64))]), &video(1)).contains("dedupe"));
}

proptest! {
    #[test]
    fn what_comes_by_either_way_comes_out_once(
        start in any::<u16>(),
        lost in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..300),
        behind in 0_usize..40,
    ) {
        let mut run = Run::new(&KIND, &dedupe(), &video(1));
        let mut source = Source::new(0);
        source.sequence = start;
        let all = source.frames(&"D".repeat(lost.len().div_ceil(2)));
        let mut arrivals = Vec::new();
        for (at, (first, second)) in lost.iter().enumerate() {
            arrivals.push((at, 0, *first));
            arrivals.push((at + behind, 1, *second));
        }
        arrivals.sort_by_key(|(at, way, _)| (*at, *way));
        let mut out = Vec::new();
        for (at, way, lost) in arrivals {
            if !lost {
                let item = all[at - way * behind].clone();
                out.extend(run.give(vec![item]));
            }
        }
        let mut came = numbers(&out);
        came.sort_unstable_by_key(|number| number.wrapping_sub(start));
        let expected = lost.iter().enumerate().filter(|(_, (first, second))| !(*first && *second));
        let expected: Vec<u16> = expected.map(|(at, _)| start.wrapping_add(at as u16)).collect();
        prop_assert_eq!(came, expected);
    }
}
