//! Lines of the log that peers can cause: bounded in rate.

use tokio::time::Instant;

use crate::limits::LOG_EVERY;

/// Says when the next line may be written.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    last: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    /// Something has happened at `now`. If a line may be written: how often it did since the last one.
    pub(crate) fn happened(&mut self, now: Instant) -> Option<u64> {
        self.unsaid += 1;
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < LOG_EVERY) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_happens_often_is_said_seldom_and_counted() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut seldom = Seldom::default();
        assert_eq!(seldom.happened(at(0)), Some(1));
        assert!((1..1000).all(|millis| seldom.happened(at(millis)).is_none()));
        assert_eq!(seldom.happened(start + LOG_EVERY), Some(1000));
    }
}
