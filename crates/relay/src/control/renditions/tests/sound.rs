//! Sound that is coded again for receivers that have Opus alone.

use super::*;
use crate::limits::BRANCH_LINGER;

#[test]
fn sound_is_coded_once_and_goes_on_where_a_receiver_changes() {
    let mut bench = Bench::new(&Shape { is_coded: true, ..PLAIN });
    let joins = [Step::Frames(12), Step::Join(3), Step::Frames(3), Step::Join(1), Step::Join(2)];
    joins.iter().for_each(|step| bench.step(step));
    bench.step(&Step::Frames(20));
    (0..3).for_each(|number| bench.step(&Step::Request(number, 2)));
    bench.step(&Step::Frames(20));
    let (mut counts, mut heard) = (Vec::new(), Vec::new());
    for (receiver, expected) in bench.receivers.iter().zip([&[2_u8, 1][..], &[0, 1], &[1]]) {
        let got = receiver.check();
        assert_eq!(renditions(&got), expected);
        let sound: Vec<_> = got.iter().filter(|got| got.is_sound).copied().collect();
        counts.push(sound.len());
        heard.push(sound.last().copied());
    }
    // Of 45 frames, from the kept key frame on, 2,048 samples come a frame's time, in packets of 960.
    assert!(counts.iter().all(|count| (94..=96).contains(count)), "{counts:?}");
    assert!(
        heard[0].is_some() && heard.windows(2).all(|pair| pair[0] == pair[1]),
        "it is the same: {heard:?}"
    );
    // Those that wanted others have not gone long enough for those to go; that which codes stays as long as any does.
    let made = |bench: &Bench| (3..9).filter(|at| bench.stream.branch_format(*at).is_some()).count();
    assert_eq!(made(&bench), 3);
    let linger = BRANCH_LINGER.as_millis() as u32 / 40 + 2;
    bench.step(&Step::Frames(linger));
    assert_eq!(made(&bench), 2, "one joined, and what codes for it");
    (0..3).for_each(|_| bench.step(&Step::Leave(0)));
    bench.step(&Step::Frames(2 * linger));
    assert_eq!(made(&bench), 0);
}
