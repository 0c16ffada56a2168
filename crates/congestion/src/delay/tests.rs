use super::*;

const RTT: Duration = Duration::from_millis(50);
const OFFSET_MS: u64 = 1_000_000;

/// A path of 20 ms there and 30 ms back, with a queue.
struct Path {
    delay: Delay,
    now: Time,
    number: u64,
    /// What the peer's clock is off, in nanoseconds.
    off: i64,
}

impl Path {
    fn new() -> Self {
        Path { delay: Delay::new(), now: Time::from_millis(100), number: 0, off: 0 }
    }

    /// A packet each 10 ms, for so long, that waits so long.
    fn run(&mut self, ms: u64, queue_ms: u64, drift_ppm: i64) {
        for _ in 0..ms / 10 {
            self.now = self.now + Duration::from_millis(10);
            self.off += 10 * drift_ppm;
            let queue = Duration::from_millis(queue_ms);
            let sent = self.now - RTT - queue;
            let received = sent + Duration::from_millis(OFFSET_MS + 20) + queue;
            let received = Time::from_nanos(received.as_nanos().wrapping_add_signed(self.off));
            let acked = Acked { number: self.number, bytes: 1, sent, received };
            self.delay.note(self.now, (&[acked], &acked), RTT + queue, BASE_SECONDS, true);
            self.number += 1;
        }
    }

    fn standing_ms(&self) -> f64 {
        self.delay.standing().expect("samples").as_secs_f64() * 1000.0
    }
}

#[test]
fn what_waits_is_what_is_above_the_least() {
    let mut path = Path::new();
    path.run(100, 0, 0);
    assert_eq!(path.standing_ms(), 0.0);
    path.run(100, 30, 0);
    assert_eq!(path.standing_ms(), 30.0);
    assert_eq!(path.delay.base(), RTT);
    path.run(20, 10, 0);
    assert_eq!(path.standing_ms(), 10.0, "the least counts");
}

#[test]
fn the_least_is_forgotten_after_a_time() {
    let mut path = Path::new();
    path.run(100, 0, 0);
    path.run(9000, 30, 0);
    assert_eq!(path.standing_ms(), 30.0);
    path.run(3000, 30, 0);
    assert_eq!(path.standing_ms(), 0.0, "the way has become longer");
}

#[test]
fn a_clock_that_drifts_is_not_taken_for_a_queue() {
    for ppm in [-200, 200] {
        let mut path = Path::new();
        path.run(60_000, 0, ppm);
        assert!(path.standing_ms() < 0.5, "{ppm}: {}", path.standing_ms());
        path.run(100, 20, ppm);
        assert!((path.standing_ms() - 20.0).abs() < 2.5, "{ppm}: {}", path.standing_ms());
    }
}

#[test]
fn a_clock_that_steps_is_not_taken_for_a_queue() {
    for step in [-3600, -1, 1, 3600] {
        let mut path = Path::new();
        path.run(1000, 0, 0);
        path.run(100, 15, 0);
        path.off += step * 1_000_000_000 / 2;
        path.run(200, 15, 0);
        assert_eq!(path.standing_ms(), 15.0, "{step}");
        path.run(200, 0, 0);
        assert_eq!(path.standing_ms(), 0.0, "{step}");
    }
}

#[test]
fn the_longest_of_late_and_of_some_seconds() {
    let mut path = Path::new();
    path.run(500, 0, 0);
    path.run(100, 80, 0);
    path.run(1000, 10, 0);
    let ms = Duration::from_millis;
    assert_eq!(path.delay.longest(), (ms(10), ms(80)));
    path.run(25_000, 10, 0);
    assert_eq!(path.delay.longest().1, ms(0), "and the least is 10 ms more now");
}
