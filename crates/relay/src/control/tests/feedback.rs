//! What receivers say goes up.

use super::*;

#[test]
fn a_key_frame_is_asked_for_once_and_not_at_all_once_it_has_come() {
    let mut bench = Bench::new();
    let key = bench.stream.handle_join(bench.now, 1, SinkSpec::new(Encapsulation::Rtp, Transport::Stream));
    bench.frame(true);
    (0..3).for_each(|_| bench.stream.handle_key_frame_request(key, 0));
    bench.poll();
    assert_eq!(bench.feedback, [Feedback::KeyFrame { rendition: 0, track: 0 }]);
    bench.stream.handle_key_frame_request(key, 0);
    let wake = bench.poll();
    assert_eq!(wake, Some((bench.now + KEY_FRAME_EVERY, Wake::Feedback)), "not before");
    bench.frame(true);
    bench.wait(2_000);
    assert_eq!(bench.feedback.len(), 1, "it has come");
    bench.stream.handle_key_frame_request(key, 0);
    bench.poll();
    assert_eq!(bench.feedback.len(), 2);
}

#[test]
fn what_receivers_report_is_handed_on_together() {
    let mut bench = Bench::new();
    bench.frame(true);
    bench.stream.handle_loss(10);
    bench.stream.handle_loss(30);
    bench.stream.handle_estimate(3_000_000);
    bench.poll();
    let all = Reception { reports: 2, lost_most: 30, lost_mean: 20, estimate_bps: Some(3_000_000) };
    assert_eq!(bench.feedback, [Feedback::Reception(all)]);
}
