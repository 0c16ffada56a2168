use super::*;
use crate::flow::Medium;
use crate::limits;
use crate::streams::Party;

fn candidate(bytes: usize, weight: u64, class: u8, mean_weight: u64) -> Candidate {
    let (medium, party) = (Medium::Video, Party::Buffer(0));
    let part = Part { medium, medium_weight: 1, party, party_weight: 1, buffer_weight: 1 };
    Candidate { bytes, weight, mean_weight, class, part }
}

/// How often each of the buffers is chosen in `turns` turns, all of them having packets of these sizes.
fn run(scheduling: Scheduling, buffers: &[(usize, u64, u8)], turns: usize) -> Vec<usize> {
    run_with(scheduling, Share::NONE, buffers, turns)
}

/// The same, with what lower classes are promised.
fn run_with(
    scheduling: Scheduling,
    lower_share: Share,
    buffers: &[(usize, u64, u8)],
    turns: usize,
) -> Vec<usize> {
    let mut scheduler = scheduling.begin(lower_share);
    let mean = buffers.iter().map(|(_, weight, _)| weight).sum::<u64>() / buffers.len() as u64;
    let look =
        |at: usize| buffers.get(at).map(|&(bytes, weight, class)| candidate(bytes, weight, class, mean));
    (0..buffers.len()).for_each(|buffer| scheduler.wakes(buffer));
    let mut chosen = vec![0; buffers.len()];
    for _ in 0..turns {
        chosen[scheduler.next(&look).expect("there is one")] += 1;
    }
    chosen
}

#[test]
fn names_lead_back_to_their_ways() {
    for &way in Scheduling::ALL {
        assert_eq!(Scheduling::from_name(way.as_str()), Some(way));
        assert_eq!(way.begin(Share::percent(5)).next(&|_| None), None);
    }
    assert_eq!(Scheduling::from_name("fifo"), None);
}

#[test]
fn shares_are_exact_over_a_round() {
    let buffers = [(100, 5, 0), (1500, 3, 0), (9, 1, 0)];
    for rounds in 1..5 {
        assert_eq!(run(Scheduling::Wrr, &buffers, 9 * rounds), [5 * rounds, 3 * rounds, rounds]);
    }
    let heavy = [(1, 1_000_000_007, 0), (1, 2 * 1_000_000_007, 0)];
    assert_eq!(run(Scheduling::Wrr, &heavy, 300), [100, 200], "weights are bytes");
    assert_eq!(run(Scheduling::Weq, &[(1, 1, 0); 4], 40), [10; 4]);
}

#[test]
fn a_round_is_spread_and_none_waits_for_a_heavy_one_to_finish() {
    let mut scheduler = Scheduling::Wrr.begin(Share::NONE);
    (0..2).for_each(|buffer| scheduler.wakes(buffer));
    let look = |at: usize| Some(candidate(1, [6, 2][at], 0, 4));
    let order: Vec<_> = (0..8).map(|_| scheduler.next(&look).expect("one")).collect();
    assert!(order.windows(4).all(|window| window.contains(&1)), "{order:?}");
}

#[test]
fn one_that_has_nothing_saves_nothing_up() {
    for way in [Scheduling::Wrr, Scheduling::Drr, Scheduling::Priority, Scheduling::Shares] {
        let mut scheduler = way.begin(Share::percent(5));
        (0..2).for_each(|buffer| scheduler.wakes(buffer));
        let first = |at: usize| (at == 0).then(|| candidate(1500, 1, 0, 1));
        (0..100).for_each(|_| assert_eq!(scheduler.next(&first), Some(0)));
        scheduler.wakes(1);
        let both = |_: usize| Some(candidate(1500, 1, 0, 1));
        let chosen = (0..10).filter(|_| scheduler.next(&both) == Some(1)).count();
        assert!((4..=6).contains(&chosen), "{way:?}: {chosen}");
    }
}

#[test]
fn a_buffer_that_wakes_twice_has_one_turn() {
    for way in [Scheduling::Wrr, Scheduling::Drr, Scheduling::Priority, Scheduling::Shares] {
        let mut scheduler = way.begin(Share::percent(5));
        [0, 1, 1, 1].iter().for_each(|buffer| scheduler.wakes(*buffer));
        let chosen =
            (0..10).filter(|_| scheduler.next(&|_| Some(candidate(1500, 1, 0, 1))) == Some(1)).count();
        assert_eq!(chosen, 5, "{way:?}");
    }
}

#[test]
fn bytes_are_shared_whatever_the_sizes_of_packets() {
    let buffers = [(1500, 1, 0), (100, 1, 0), (700, 2, 0)];
    let chosen = run(Scheduling::Drr, &buffers, 20_000);
    let bytes: Vec<usize> = chosen.iter().zip(buffers).map(|(count, (bytes, ..))| count * bytes).collect();
    for (bytes, weight) in bytes.iter().zip([1, 1, 2]) {
        let all: usize = chosen.iter().zip(buffers).map(|(count, (bytes, ..))| count * bytes).sum();
        let error = (*bytes as f64 / (all * weight / 4) as f64 - 1.0).abs();
        assert!(error < 0.01, "{bytes:?} of {all}, weight {weight}");
    }
}

#[test]
fn a_class_goes_before_those_below_it_and_within_it_all_take_turns() {
    assert_eq!(run(Scheduling::Priority, &[(1, 1, 1), (1, 1, 0), (1, 1, 0)], 10), [0, 5, 5]);
}

/// Which part of the bytes each buffer has, in thousandths.
fn parts(share: Share, buffers: &[(usize, u64, u8)]) -> Vec<usize> {
    let chosen = run_with(Scheduling::Priority, share, buffers, 50_000);
    let bytes = chosen.iter().zip(buffers).map(|(count, (bytes, ..))| count * bytes);
    let all: usize = bytes.clone().sum();
    bytes.map(|bytes| (bytes * 1000 + all / 2) / all).collect()
}

#[test]
fn each_lower_class_has_what_it_was_promised_and_no_more_whatever_its_packets() {
    let buffers = [(200, 1, 0), (1500, 1, 1), (90, 1, 1), (9000, 1, 2)];
    let of_classes = |share| {
        let parts = parts(share, &buffers);
        [parts[0], parts[1] + parts[2], parts[3]]
    };
    assert_eq!(of_classes(Share::percent(5)), [900, 50, 50]);
    assert_eq!(of_classes(Share::percent(30)), [400, 300, 300]);
    assert!(
        of_classes(Share::of_100_000(100))[1..].iter().all(|part| *part > 0),
        "a small one does not vanish"
    );
    assert_eq!(of_classes(Share::NONE), [1000, 0, 0], "strict");
}

#[test]
fn the_highest_class_has_something_left_however_many_there_are_below() {
    let buffers: Vec<_> = (0..=30).map(|class| (1000, 1, class)).collect();
    let parts = parts(Share::percent(5), &buffers);
    assert_eq!((parts[0], &parts[1..]), (100, &[30; 30][..]));
}

#[test]
fn what_a_class_had_while_those_above_had_nothing_is_not_held_against_it_for_long() {
    let mut scheduler = Scheduling::Priority.begin(Share::percent(5));
    (0..2).for_each(|buffer| scheduler.wakes(buffer));
    let low = |at: usize| (at == 1).then(|| candidate(1000, 1, 1, 1));
    (0..10_000).for_each(|_| assert_eq!(scheduler.next(&low), Some(1)));
    scheduler.wakes(0);
    let both = |at: usize| Some(candidate(1000, 1, at as u8, 1));
    let mut chosen = (0..200).map(|_| scheduler.next(&both).expect("one"));
    let waits = chosen.by_ref().take_while(|buffer| *buffer == 0).count();
    assert!((20..=limits::PRIORITY_WINDOW as usize / 1000 + 1).contains(&waits), "{waits}");
    assert!(chosen.filter(|buffer| *buffer == 1).count() >= 5);
}

#[test]
fn a_class_that_had_nothing_is_owed_nothing_and_a_packet_that_does_not_go_counts_for_none() {
    let mut scheduler = Scheduling::Priority.begin(Share::percent(5));
    (0..2).for_each(|buffer| scheduler.wakes(buffer));
    let high = |at: usize| (at == 0).then(|| candidate(1000, 1, 0, 1));
    (0..1000).for_each(|_| assert_eq!(scheduler.next(&high), Some(0)));
    scheduler.wakes(1);
    let both = |at: usize| Some(candidate(1000, 1, at as u8, 1));
    let chosen: Vec<_> = (0..22).map(|_| scheduler.next(&both).expect("one")).collect();
    assert_eq!(chosen.iter().filter(|buffer| **buffer == 1).count(), 2, "{chosen:?}");
    // The packets of the low class come too late: it has had nothing of the link by them.
    let late = (0..1000).filter(|_| {
        scheduler.next(&both) == Some(1) && {
            scheduler.spared();
            true
        }
    });
    assert!(late.count() > 900);
}
