//! How the relay ends when it is told to: at once, or when its receivers have gone (a drain).

use std::sync::Arc;
use std::time::Duration;

use outflow_door::Door;
use outflow_engine::Clock;
use outflow_engine::message::{ReceiverState, RelayState};
use outflow_media::Time;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

/// A receiver that was let in is with its worker after this time, however busy that is.
const JOINING: Duration = Duration::from_millis(250);

/// The end of the relay, once it is told to end: from then on it takes no more receivers and publishers. Those that are
/// there go on until the last receiver has left that had asked for a stream, or until their time is over.
#[derive(Debug)]
pub struct Ending {
    until: watch::Sender<Option<Until>>,
    door: Arc<Door>,
    clock: Clock,
}

/// Until when the relay goes on.
#[derive(Debug, Clone, Copy)]
struct Until {
    /// When it was first told to end.
    told: Time,
    at: Instant,
}

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Drain {
    /// Milliseconds until the relay ends, be there receivers or not.
    pub left_ms: u64,
    /// Receivers that are waited for: those that have asked for a stream, and no sinks.
    pub receivers: usize,
}

impl Ending {
    /// That of a relay which peers come to through this door.
    pub(crate) fn new(door: Arc<Door>, clock: Clock) -> Self {
        Ending { until: watch::Sender::new(None), door, clock }
    }

    /// Ends the relay: when its receivers have left, or after `drain`. Said again, the sooner time holds.
    pub fn begin(&self, drain: Duration) {
        self.door.close();
        let (told, at) = (self.clock.now(), Instant::now() + drain);
        let is_first = self.until.borrow().is_none();
        let sooner = |before: Option<Until>| match before {
            Some(before) => Until { at: before.at.min(at), ..before },
            None => Until { told, at },
        };
        self.until.send_modify(|until| *until = Some(sooner(*until)));
        if is_first {
            let within_ms = drain.as_millis() as u64;
            tracing::info!(within_ms, "the relay ends: it takes no more receivers and publishers");
        }
    }

    /// Whether the relay was told to end.
    pub(crate) fn has_begun(&self) -> bool {
        self.until.borrow().is_some()
    }

    /// Waits until the relay is told to end.
    pub async fn begun(&self) {
        // What tells is part of this, and not gone before it.
        let _ = self.until.subscribe().wait_for(Option::is_some).await;
    }

    /// How far the end is, if it has begun.
    pub fn drain(&self, state: &RelayState) -> Option<Drain> {
        let left = (*self.until.borrow())?.at.saturating_duration_since(Instant::now());
        Some(Drain { left_ms: left.as_millis() as u64, receivers: waited_for(state) })
    }

    /// Waits until it is time to end. `states` are snapshots as they are made.
    pub(crate) async fn over(&self, mut states: watch::Receiver<Arc<RelayState>>) {
        let mut told = self.until.subscribe();
        loop {
            let until = *told.borrow_and_update();
            if until.is_some_and(|until| is_empty(&states.borrow_and_update(), until.told)) {
                return;
            }
            tokio::select! {
                () = passed(until) => return,
                Ok(()) = told.changed() => {}
                Ok(()) = states.changed(), if until.is_some() => {}
            }
        }
    }
}

/// Whether no receiver is waited for. One that was let in before the relay was told to end is with its worker soon after
/// that, and in what that has looked at from then on.
fn is_empty(state: &RelayState, told: Time) -> bool {
    state.as_of >= told + JOINING && waited_for(state) == 0
}

/// Receivers that leave by themselves. Sinks, which have names, do not.
fn waited_for(state: &RelayState) -> usize {
    let asked = |receiver: &&ReceiverState| receiver.name.is_none();
    state.streams.iter().map(|stream| stream.receivers.iter().filter(asked).count()).sum()
}

/// Waits until then; for ever if there is no such time.
async fn passed(until: Option<Until>) {
    match until {
        Some(until) => sleep_until(until.at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use outflow_door::{Refused, Right, Rules};
    use tokio::time::timeout;

    use super::*;

    const DRAIN: Duration = Duration::from_secs(30);

    fn ending() -> (Ending, watch::Sender<Arc<RelayState>>) {
        let door = Arc::new(Door::new(Rules::default()));
        (Ending::new(door, Clock::start()), watch::channel(Arc::default()).0)
    }

    /// A snapshot of this age, counted from when the relay was told to end, which shows no receivers.
    fn empty(ending: &Ending, age: Duration) -> Arc<RelayState> {
        let told = ending.until.borrow().map_or(Time::ZERO, |until| until.told);
        Arc::new(RelayState { as_of: told + age, ..RelayState::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_workers_that_have_looked_since_show_no_receivers() {
        let (ending, states) = ending();
        let over = ending.over(states.subscribe());
        tokio::pin!(over);
        states.send_replace(empty(&ending, DRAIN));
        assert!(timeout(DRAIN, &mut over).await.is_err(), "it was not told to end");
        let peer = [10, 0, 0, 1].into();
        assert_eq!(ending.door.pass(Right::Play, peer, None).map(drop), Ok(()));
        states.send_replace(Arc::default());
        ending.begin(DRAIN);
        for right in [Right::Play, Right::Publish, Right::Relay] {
            assert_eq!(ending.door.pass(right, peer, None).map(drop), Err(Refused::Draining));
        }
        assert_eq!(ending.drain(&RelayState::default()), Some(Drain { left_ms: 30_000, receivers: 0 }));
        // However often what a worker saw before is shown again.
        for _ in 0..3 {
            assert!(timeout(Duration::from_secs(1), &mut over).await.is_err());
            states.send_replace(empty(&ending, JOINING / 2));
        }
        assert!(timeout(Duration::from_secs(1), &mut over).await.is_err());
        states.send_replace(empty(&ending, JOINING));
        assert!(timeout(Duration::from_secs(1), over).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_after_its_time_and_sooner_if_told_so() {
        for (again, expected) in [(None, 30), (Some(2), 3), (Some(60), 30)] {
            let (ending, states) = ending();
            let begun = Instant::now();
            ending.begin(DRAIN);
            let over = ending.over(states.subscribe());
            tokio::pin!(over);
            assert!(timeout(Duration::from_secs(1), &mut over).await.is_err());
            again.into_iter().for_each(|after| ending.begin(Duration::from_secs(after)));
            over.await;
            assert_eq!(begun.elapsed().as_secs(), expected, "{again:?}");
        }
    }
}
