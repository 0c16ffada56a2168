//! Gaps instead of stalls, and sound with pictures.

use super::super::play::Play;
use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn sound_that_is_lost_is_a_gap_and_does_not_hold_up_the_rest() {
    let mut play = Play::new(&audio(ms(20), ms(60)).expect("a flow"));
    // One in five is lost, and after one in ten comes again in time.
    for unit in 0..100_u64 {
        let again = unit.checked_sub(2).filter(|unit| unit % 10 == 0);
        play.receive(20 * unit, again.into_iter().chain((unit % 5 != 0).then_some(unit)));
    }
    play.wait(3000);
    assert!(play.lost.iter().all(|unit| unit % 10 == 5), "{:?}", play.lost);
    assert_eq!(play.lost.len(), 10);
    assert!(play.delivered.is_sorted_by_key(|(_, unit)| *unit), "in order");
    // What is behind a gap comes 60 ms after the gap is noticed, which is when the next one comes.
    assert!(play.delivered.iter().all(|(at, unit)| *at <= 20 * unit + 60), "{:?}", play.delivered);
}

#[test]
fn sound_and_pictures_stay_within_their_skew() {
    // 25 pictures a second of two slices: at most 80 ms, two instants, ahead.
    let mut play = Play::new(&av_sync(ms(40), 2, ms(80), ms(300)).expect("a flow"));
    let units = |instant: u64| 3 * instant..3 * instant + 3;
    (0..5).for_each(|instant| play.receive(40 * instant, units(instant)));
    assert_eq!(play.units().len(), 15);
    // The picture of instant 5 is lost, its sound and all that follows is there.
    play.receive(200, [15]);
    (6..20).for_each(|instant| play.receive(40 * instant, units(instant)));
    let ahead = play.delivered.iter().filter(|(at, _)| *at < 500).map(|(_, unit)| *unit);
    assert_eq!(ahead.collect::<Vec<_>>(), [15, 18, 21]);
    assert_eq!(play.lost, [16, 17], "300 ms after its sound came");
    play.wait(1000);
    assert_eq!(play.units().len(), 1 + 14 * 3, "and all that follows goes on");
}

#[test]
fn sound_waits_for_pictures_and_pictures_for_sound() {
    let flow = av_sync(ms(40), 1, ms(0), ms(300)).expect("a flow");
    for missing in [0, 1] {
        let mut play = Play::new(&flow);
        play.receive(0, [1 - missing, 2, 3]);
        assert_eq!(play.units(), [1 - missing], "whichever is missing");
        play.receive(100, [missing]);
        let mut units = play.units();
        units.sort_unstable();
        assert_eq!(units, [missing, 2, 3]);
    }
    assert_eq!((flow.class(0).repair, flow.class(1).repair), (Class::Reliable, Class::Partial));
}

#[test]
fn what_cannot_be_is_lowered() {
    for time in [Duration::ZERO, Duration::MAX, Duration::from_nanos(1500)] {
        Play::new(&audio(time, time).expect("a flow"));
        Play::new(&av_sync(time, 0, Duration::MAX, time).expect("a flow"));
    }
}
