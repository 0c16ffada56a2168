//! How often another process has gone on with the relay because something had ended.

use std::time::Duration;

use outflow_media::Time;

/// How long a relay has to have gone on since. What ends something again sooner is in what it goes on with.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// How often another process has gone on with the relay because something had ended, and when it last was to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Recoveries {
    pub(super) count: u64,
    pub(super) last: Option<Time>,
}

impl Recoveries {
    /// Those with one more now. None if the last one is too near.
    pub(super) fn with_one_more(self, now: Time) -> Option<Self> {
        let is_soon = self.last.is_some_and(|last| now.since(last) < AGAIN_AFTER);
        (!is_soon).then_some(Recoveries { count: self.count + 1, last: Some(now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_recovers_again_when_it_has_gone_on_for_a_while() {
        let first = Recoveries::default().with_one_more(Time::from_millis(5)).expect("there was none");
        assert_eq!(first, Recoveries { count: 1, last: Some(Time::from_millis(5)) });
        assert_eq!(first.with_one_more(Time::from_millis(60_004)), None);
        let second = first.with_one_more(Time::from_millis(60_005)).expect("a minute has passed");
        assert_eq!(second.count, 2);
    }
}
