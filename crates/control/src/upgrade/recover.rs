//! What becomes of a relay of which something has ended: another process goes on with it, once in a while.

use std::time::Duration;

use outflow_media::Time;
use outflow_vital::Fatal;

use super::{Upgrade, hand_over};
use crate::control::Control;

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
    fn with_one_more(self, now: Time) -> Option<Self> {
        let is_soon = self.last.is_some_and(|last| now.since(last) < AGAIN_AFTER);
        (!is_soon).then_some(Recoveries { count: self.count + 1, last: Some(now) })
    }
}

/// Has another process go on with a relay of which something has ended, and says which.
///
/// # Errors
/// What has ended: no other process could go on, or one did a while ago.
pub(crate) async fn recover(control: &Control, fatal: Fatal) -> Result<u32, Fatal> {
    let upgrade = control.shared::<Upgrade>();
    let Some(recoveries) = upgrade.recoveries().with_one_more(control.now()) else { return Err(fatal) };
    upgrade.set_recoveries(recoveries);
    tracing::error!(
        what = fatal.what,
        why = fatal.why,
        "has ended: another process is to go on with the relay"
    );
    // A worker that has ended serves no receiver; another process's does, in a moment.
    control.door().hold(true);
    match hand_over(control).await {
        Ok(_) => upgrade.over().await,
        // The log says why.
        Err(_) => Err(fatal),
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
