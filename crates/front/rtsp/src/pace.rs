//! How fast a connection is read. One that says more is not read for a while, so that TCP pushes back.

use outflow_media::{Rate, Time, TokenBucket};

use super::limits::{BYTES_AT_ONCE, BYTES_PER_SECOND, REQUESTS_AT_ONCE, REQUESTS_PER_SECOND};

const REQUESTS: Rate = Rate::per_second(REQUESTS_PER_SECOND);
const BYTES: Rate = Rate::per_second(BYTES_PER_SECOND);

/// What a peer may still say.
pub(super) struct Pace {
    requests: TokenBucket,
    bytes: TokenBucket,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Pace { requests: TokenBucket::new(REQUESTS_AT_ONCE), bytes: TokenBucket::new(BYTES_AT_ONCE) }
    }

    /// A message was answered.
    pub(super) fn answered(&mut self, now: Time) {
        self.requests.fill(now, REQUESTS);
        self.requests.take(1);
    }

    /// So much was read of a peer that does not publish.
    pub(super) fn read(&mut self, now: Time, bytes: usize) {
        self.bytes.fill(now, BYTES);
        self.bytes.take(bytes as u64);
    }

    /// Until when nothing is to be read, if it has said too much.
    pub(super) fn rests_until(&mut self, now: Time) -> Option<Time> {
        self.requests.fill(now, REQUESTS);
        self.bytes.fill(now, BYTES);
        let wait = self.requests.wait_for(1, REQUESTS).max(self.bytes.wait_for(1, BYTES));
        (!wait.is_zero()).then(|| now + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads whenever that may be, in ten seconds. Returns how often.
    fn reads(mut each: impl FnMut(&mut Pace, Time)) -> u64 {
        let (mut pace, mut now, mut count) = (Pace::new(), Time::ZERO, 0);
        while now < Time::from_millis(10_000) {
            match pace.rests_until(now) {
                Some(until) => {
                    assert!(until > now, "it goes on");
                    now = until;
                }
                None => {
                    each(&mut pace, now);
                    count += 1;
                }
            }
        }
        count
    }

    #[test]
    fn requests_are_read_at_their_rate() {
        let read = reads(Pace::answered);
        let expected = REQUESTS_AT_ONCE + 10 * REQUESTS_PER_SECOND;
        assert!(read.abs_diff(expected) <= 1, "{read} of about {expected}");
    }

    #[test]
    fn so_are_bytes_and_a_read_that_was_too_much_is_made_up_for() {
        let read = reads(|pace, now| pace.read(now, 100_000)) * 100_000;
        let expected = BYTES_AT_ONCE + 10 * BYTES_PER_SECOND;
        assert!(read.abs_diff(expected) <= 100_000, "{read} of about {expected}");
    }
}
