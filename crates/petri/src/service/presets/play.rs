//! Plays units to the engine of a flow, and notes what it delivers.

use outflow_media::Time;

use super::Flow;
use crate::net::{Engine, Event};

pub(super) struct Play {
    engine: Engine,
    /// Milliseconds, and the unit.
    pub(super) delivered: Vec<(u64, u64)>,
    pub(super) lost: Vec<u64>,
}

impl Play {
    /// The flow is one, and a receiver that gets nothing keeps up with it if it is live.
    pub(super) fn new(flow: &Flow) -> Self {
        flow.check().expect("a flow");
        let slowest = flow.net.slowest_round();
        assert!(flow.period.is_none_or(|period| slowest.expect("live") <= period), "{slowest:?}");
        let engine = Engine::new(flow.net.clone(), flow.rounds as usize, Time::ZERO);
        Play { engine, delivered: Vec::new(), lost: Vec::new() }
    }

    /// Units come at once; nothing else does until then.
    pub(super) fn receive(&mut self, at_ms: u64, units: impl IntoIterator<Item = u64>) {
        self.wait(at_ms);
        for unit in units {
            self.engine.handle_received(Time::from_millis(at_ms), unit);
            self.drain(at_ms);
        }
    }

    /// What happens until then by itself.
    pub(super) fn wait(&mut self, until_ms: u64) {
        while let Some(due) = self.engine.next_timeout().filter(|due| *due <= Time::from_millis(until_ms)) {
            self.engine.handle_timeout(due);
            self.drain(due.as_millis());
        }
    }

    fn drain(&mut self, at_ms: u64) {
        while let Some(event) = self.engine.poll() {
            match event {
                Event::Deliver(unit) => self.delivered.push((at_ms, unit)),
                Event::Lost(unit) => self.lost.push(unit),
                _ => {}
            }
        }
    }

    /// The units that were delivered since the last call, in order.
    pub(super) fn units(&mut self) -> Vec<u64> {
        self.delivered.drain(..).map(|(_, unit)| unit).collect()
    }
}
