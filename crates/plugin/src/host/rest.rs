//! When a plug-in that went wrong is started again.

use core::time::Duration;

use outflow_media::{Backoff, Time};

use crate::limits::{FORGIVEN_AFTER, REST, RESTARTS_AT_ONCE};

/// How often a plug-in went wrong, and how long it rests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    faults: u32,
    rests: Backoff,
    until: Time,
}

impl Default for Rest {
    fn default() -> Self {
        Rest { faults: 0, rests: REST, until: Time::ZERO }
    }
}

impl Rest {
    /// It went wrong.
    pub(crate) fn fault(&mut self, now: Time) {
        if now.since(self.until) > FORGIVEN_AFTER {
            self.faults = 0;
            self.rests.reset();
        }
        self.faults = self.faults.saturating_add(1);
        let rest = if self.faults > RESTARTS_AT_ONCE { self.rests.wait() } else { Duration::ZERO };
        self.until = now + rest;
    }

    /// Whether it may be started.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REST_MAX;

    #[test]
    fn one_that_goes_wrong_again_and_again_rests_longer_and_longer() {
        let (mut rest, mut now) = (Rest::default(), Time::from_millis(1));
        for _ in 0..RESTARTS_AT_ONCE {
            rest.fault(now);
            assert!(rest.is_over(now));
        }
        let mut before = Duration::ZERO;
        for _ in 0..20 {
            rest.fault(now);
            assert!(!rest.is_over(now));
            let waits = rest.until.since(now);
            assert!(waits >= before && waits <= REST_MAX);
            (before, now) = (waits, rest.until);
            assert!(rest.is_over(now));
        }
        assert_eq!(before, REST_MAX);
        now = now + FORGIVEN_AFTER + Duration::from_millis(1);
        rest.fault(now);
        assert!(rest.is_over(now));
    }
}
