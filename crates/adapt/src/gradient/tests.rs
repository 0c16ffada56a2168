use super::*;
use crate::Paper;
use crate::track::{Bottleneck, Outcome, Sending, run};

fn never(_: u64) -> Option<u64> {
    None
}

/// 100 Mbit/s, and 100 kbit/s from the fifth second to the fifteenth.
fn rate_at(ms: u64) -> u64 {
    if (5_000..15_000).contains(&ms) { 12_500 } else { 12_500_000 }
}

/// Frames, of 15 a second, so that the last of these seconds is over.
const FRAMES: u64 = 375;

fn narrow(policy: &mut dyn Policy, burst: usize, room: usize) -> Outcome {
    run(policy, &Bottleneck { rate_at, burst, room, still: never }, FRAMES, Sending::PLAIN)
}

#[test]
fn less_is_asked_for_at_once_and_the_best_again_when_there_is_room() {
    for (burst, room) in [(1600, 3000), (1600, 8000), (5000, 20_000)] {
        let ours = narrow(&mut Gradient::default(), burst, room);
        let papers = narrow(&mut Paper::default(), burst, room);
        let first = ours.first_after(5_000).expect("it has to change");
        assert!(first <= 300, "{burst} {room}: after {first} ms");
        assert!(ours.whole() >= 355 && ours.whole() > papers.whole(), "{burst} {room}: {}", ours.whole());
        assert!(ours.levels(90..225).iter().all(|level| *level >= 20), "{burst} {room}: while it is narrow");
        assert!(ours.levels(300..375).iter().all(|level| *level == 1), "{burst} {room}: five seconds later");
        assert!(ours.queue_most < Duration::from_secs(2), "{burst} {room}: {:?}", ours.queue_most);
    }
}

#[test]
fn the_paper_notices_after_a_second() {
    let outcome = narrow(&mut Paper::default(), 1600, 8000);
    assert!((1000..2000).contains(&outcome.first_after(5_000).expect("it has to change")));
}

#[test]
fn where_there_is_room_nothing_is_changed_however_packets_jitter() {
    let way = Bottleneck { rate_at: |_| 12_500_000, burst: 5000, room: 100_000, still: never };
    let sending = Sending { jitter_us: 15_000, ..Sending::PLAIN };
    let outcome = run(&mut Gradient::default(), &way, FRAMES, sending);
    assert_eq!(outcome.asked, []);
    assert_eq!(outcome.whole(), FRAMES as usize);
}

#[test]
fn on_a_narrow_way_it_stays_near_what_fits() {
    // 400 kbit/s: level 20 costs 390, so that most of the time is spent below.
    let way = Bottleneck { rate_at: |_| 50_000, burst: 5000, room: 20_000, still: never };
    let outcome = run(&mut Gradient::default(), &way, 40 * 15, Sending::PLAIN);
    let settled = outcome.levels(75..600);
    assert!(settled.iter().all(|level| (12..=33).contains(level)), "{settled:?}");
    let near = settled.iter().filter(|level| (17..=26).contains(*level)).count();
    assert!(near * 10 >= settled.len() * 8, "{near} of {}: {settled:?}", settled.len());
    assert!(outcome.whole() * 100 >= 600 * 95, "{}", outcome.whole());
}

/// However a sender spreads its packets, and in whatever order pictures leave.
const SENDERS: [Sending; 5] = [
    Sending { spread: 10, early: 0, jitter_us: 500 },
    Sending { spread: 80, early: 0, jitter_us: 2000 },
    Sending { spread: 100, early: 0, jitter_us: 2000 },
    Sending { spread: 30, early: 2, jitter_us: 2000 },
    Sending { spread: 80, early: 3, jitter_us: 5000 },
];

#[test]
fn what_senders_do_is_not_taken_for_waiting() {
    let way = Bottleneck { rate_at: |_| 12_500_000, burst: 5000, room: 100_000, still: never };
    for sending in SENDERS {
        let outcome = run(&mut Gradient::default(), &way, FRAMES, sending);
        assert_eq!(outcome.asked, [], "{sending:?}");
    }
}

#[test]
fn it_adapts_to_the_way_however_packets_are_sent() {
    for sending in SENDERS {
        let way = Bottleneck { rate_at, burst: 1600, room: 8000, still: never };
        let outcome = run(&mut Gradient::default(), &way, FRAMES, sending);
        let first = outcome.first_after(5_000).expect("it has to change");
        assert!(first <= 300, "{sending:?}: after {first} ms");
        assert!(outcome.whole() >= 350, "{sending:?}: {}", outcome.whole());
        assert!(outcome.levels(90..225).iter().all(|level| *level >= 20), "{sending:?}: while it is narrow");
        let settled = outcome.levels(135..225);
        assert!(
            settled.iter().max() <= settled.iter().min().map(|best| best + 3).as_ref(),
            "{sending:?}: {settled:?}"
        );
        assert!(outcome.levels(300..375).iter().all(|level| *level == 1), "{sending:?}: afterwards");
    }
}

#[test]
fn moments_without_packets_are_not_taken_for_a_narrow_way() {
    let stalls: [fn(u64) -> Option<u64>; 4] = [
        |ms| (5000..5100).contains(&ms).then_some(5100),
        |ms| (5000..5400).contains(&ms).then_some(5400),
        |ms| (ms % 700 < 100).then_some(ms - ms % 700 + 100),
        |ms| (ms % 130 < 60).then_some(ms - ms % 130 + 60),
    ];
    for (number, still) in stalls.into_iter().enumerate() {
        let way = Bottleneck { rate_at: |_| 12_500_000, burst: 5000, room: 1_000_000, still };
        let outcome = run(&mut Gradient::default(), &way, FRAMES, Sending { spread: 80, ..Sending::PLAIN });
        let worst = outcome.levels(0..FRAMES as usize).into_iter().max();
        assert!(worst <= Some(3), "{number}: {worst:?}: {:?}", outcome.asked);
        assert_eq!(outcome.whole(), FRAMES as usize);
    }
}

#[test]
fn held_up_or_not_it_adapts_to_the_way() {
    let still = |ms: u64| (ms % 300 < 70).then_some(ms - ms % 300 + 70);
    let way = Bottleneck { rate_at, burst: 1600, room: 12_500, still };
    let outcome = run(&mut Gradient::default(), &way, FRAMES, Sending { spread: 80, ..Sending::PLAIN });
    let first = outcome.first_after(5_000).expect("it has to change");
    assert!(first <= 350, "after {first} ms");
    assert!(outcome.whole() >= 345, "{}", outcome.whole());
    let settled = outcome.levels(135..225);
    assert!(settled.iter().max() <= settled.iter().min().map(|best| best + 4).as_ref(), "{settled:?}");
    assert!(outcome.levels(300..375).iter().all(|level| *level == 1), "{:?}", outcome.asked);
}
