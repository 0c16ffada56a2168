//! Looks at how much the relay has to do, and does what the scale says.

use std::collections::BTreeSet;

use outflow_engine::message::{CloseReason, Command, ReceiverId, RelayState};
use outflow_engine::system::give_memory_back;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::control::Control;
use crate::limits::{OVERLOAD_LOOK, SHED_PERCENT};
use crate::overload::{Act, NO_JOINS, NO_LOW_CLASS, Scale, Scarce};

/// The class of which receivers are ended, as snapshots name it.
const LOW: &str = "low";

/// Looks again and again. Does not return.
pub(crate) async fn watch(control: Control) {
    let mut scale = Scale::default();
    let mut told = BTreeSet::new();
    let mut looks = interval(OVERLOAD_LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let due = looks.tick().await;
        let late = Instant::now().saturating_duration_since(due);
        let health = control.health();
        let readings = health.overload().read(&control.config(), (health.worker_lag(), late));
        for act in scale.step(control.now(), &readings) {
            carry_out(&control, act, &mut told);
        }
    }
}

fn carry_out(control: &Control, act: Act, told: &mut BTreeSet<ReceiverId>) {
    let overload = control.health().overload();
    match act {
        Act::Level(level, scarce, thousandths) => {
            overload.set_level(level);
            tell(level, scarce, thousandths / 10);
        }
        Act::Snapshots(every) => {
            control.workers().iter().for_each(|worker| worker.send(Command::Snapshots { every }));
        }
        Act::Shed => shed(control, told),
        Act::GiveBack => {
            overload.count_given_back();
            // It ends by itself, and nothing waits for it.
            drop(tokio::task::spawn_blocking(give_memory_back));
        }
    }
}

fn tell(level: u8, scarce: Scarce, taken_percent: u64) {
    let what = match level {
        0 => "it takes on what comes",
        NO_JOINS => "new receivers are refused",
        NO_LOW_CLASS => "new receivers are refused, and those of the low class end",
        _ => "new receivers and publishers are refused, and receivers of the low class end",
    };
    tracing::warn!(level, ?scarce, taken_percent, "how much the relay has to do has changed: {what}");
}

/// Ends the newest receivers of the low class, a part of them; `told` are those that were told to end before and may
/// not have yet.
fn shed(control: &Control, told: &mut BTreeSet<ReceiverId>) {
    let newest = newest_of_low_class(&control.state(), told);
    for receiver in newest {
        told.insert(receiver);
        let Some(owner) = control.registry().receiver(receiver) else { continue };
        let leave = Command::Leave { stream: owner.stream, receiver, reason: CloseReason::Shed };
        // Before it is told: one that has ended is counted.
        control.health().overload().count_shed();
        control.workers().tell(&owner, leave);
    }
}

fn newest_of_low_class(state: &RelayState, told: &mut BTreeSet<ReceiverId>) -> Vec<ReceiverId> {
    let all = state.streams.iter().flat_map(|stream| &stream.receivers);
    let mut low: Vec<_> =
        all.filter(|receiver| receiver.priority == LOW).map(|receiver| receiver.id).collect();
    // Of what a snapshot no longer shows nothing has to be known.
    low.sort_unstable();
    told.retain(|receiver| low.binary_search(receiver).is_ok());
    low.retain(|receiver| !told.contains(receiver));
    let count = (low.len() * SHED_PERCENT).div_ceil(100);
    low.split_off(low.len() - count)
}

#[cfg(test)]
mod tests {
    use outflow_engine::message::{ReceiverState, StreamState};

    use super::*;

    fn state(receivers: impl IntoIterator<Item = (ReceiverId, &'static str)>) -> RelayState {
        let receiver = |(id, priority)| ReceiverState { id, priority, ..ReceiverState::default() };
        let mut streams = [StreamState::default(), StreamState::default()];
        let (even, odd): (Vec<_>, Vec<_>) = receivers.into_iter().map(receiver).partition(|r| r.id % 2 == 0);
        (streams[0].receivers, streams[1].receivers) = (even.into(), odd.into());
        RelayState { streams: streams.into(), ..RelayState::default() }
    }

    #[test]
    fn the_newest_of_the_low_class_end_a_few_at_a_time_each_once() {
        let class = |id| (id, if id % 5 == 0 { "normal" } else { "low" });
        let full = state((1..=100).map(class));
        let mut told = BTreeSet::new();
        let mut shed = || {
            let newest = newest_of_low_class(&full, &mut told);
            told.extend(&newest);
            newest
        };
        assert_eq!(shed(), [96, 97, 98, 99], "5 % of 80");
        assert_eq!(shed(), [91, 92, 93, 94], "of 76");
        let rest = std::iter::repeat_with(shed).take_while(|newest| !newest.is_empty());
        assert_eq!(rest.map(|newest| newest.len()).sum::<usize>(), 72);
        assert!(newest_of_low_class(&state([(7, "low")]), &mut told).is_empty(), "it was told");
        assert!(newest_of_low_class(&state([]), &mut told).is_empty());
        assert!(told.is_empty(), "those that have left are forgotten");
    }
}
