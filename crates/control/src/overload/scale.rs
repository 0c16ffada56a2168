//! How much the relay has to do of what it can, and what it sheds for that: without a clock and without I/O.

use std::time::Duration;

use outflow_engine::limits::SNAPSHOT_EVERY;
use outflow_media::Time;
use serde::Serialize;
use utoipa::ToSchema;

use super::resources::Share;
use crate::limits::{
    GIVE_BACK_EVERY, LAG_MAX, OVERLOAD_BACK, OVERLOAD_FROM, OVERLOAD_REST, OVERLOAD_RISE, SHED_EVERY,
    SNAPSHOT_SELDOM,
};

/// From this level on no receivers are taken in.
pub(crate) const NO_JOINS: u8 = 1;
/// From this level on those of the low class are ended.
pub(crate) const NO_LOW_CLASS: u8 = 2;
/// From this level on no publishers are taken in of streams that have no receivers.
pub(crate) const NO_PUBLISHERS: u8 = 3;

/// What was read at a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Readings {
    pub(crate) memory: Share,
    pub(crate) descriptors: Share,
    /// How long the worker that does worst has been at work without a pause.
    pub(crate) workers: Duration,
    /// How late the control plane is.
    pub(crate) control: Duration,
}

/// What the relay needs, and may have too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scarce {
    /// Memory.
    Memory,
    /// Descriptors: connections and sockets.
    Descriptors,
    /// The time of workers.
    Workers,
    /// The time of the control plane.
    Control,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Another level holds, because of this, of which this many thousandths are taken.
    Level(u8, Scarce, u64),
    /// Workers make snapshots this often, at least.
    Snapshots(Duration),
    /// Some receivers of the low class end.
    Shed,
    /// The allocator gives back what it keeps.
    GiveBack,
}

/// Which level holds: 0 is none.
#[derive(Debug, Default)]
pub(crate) struct Scale {
    level: u8,
    /// What was taken at the look before.
    before: u64,
    /// When it rose last, ...
    rose: Option<Time>,
    /// ... and when there was a reason for the level last.
    held: Time,
    shed: Option<Time>,
    gave_back: Option<Time>,
}

impl Readings {
    /// What is scarcest, and how many thousandths of it are taken.
    pub(crate) fn worst(&self) -> (Scarce, u64) {
        let lag = |lag: Duration| (lag.as_millis() * 1000 / LAG_MAX.as_millis()) as u64;
        let all = [
            (Scarce::Memory, thousandths(self.memory)),
            (Scarce::Descriptors, thousandths(self.descriptors)),
            (Scarce::Workers, lag(self.workers)),
            (Scarce::Control, lag(self.control)),
        ];
        all.into_iter().fold(all[0], |worst, of| if of.1 > worst.1 { of } else { worst })
    }
}

/// Of what is not known nothing is taken.
fn thousandths(Share { taken, all }: Share) -> u64 {
    taken.saturating_mul(1000).checked_div(all).unwrap_or(0)
}

impl Scale {
    /// What is to be done now that this was read.
    pub(crate) fn step(&mut self, now: Time, readings: &Readings) -> Vec<Act> {
        let (scarce, taken) = readings.worst();
        let mut acts = Vec::new();
        let before = self.level;
        self.set_level(now, taken);
        if self.level != before {
            acts.push(Act::Level(self.level, scarce, taken));
        }
        if (self.level >= NO_LOW_CLASS) != (before >= NO_LOW_CLASS) {
            let seldom = self.level >= NO_LOW_CLASS;
            acts.push(Act::Snapshots(if seldom { SNAPSHOT_SELDOM } else { SNAPSHOT_EVERY }));
        }
        if self.level >= NO_LOW_CLASS && is_time(&mut self.shed, now, SHED_EVERY) {
            acts.push(Act::Shed);
        }
        let lacks_memory = thousandths(readings.memory) >= OVERLOAD_FROM[0] - OVERLOAD_BACK;
        if self.level > 0 && lacks_memory && is_time(&mut self.gave_back, now, GIVE_BACK_EVERY) {
            acts.push(Act::GiveBack);
        }
        acts
    }

    fn set_level(&mut self, now: Time, taken: u64) {
        // One look may be a moment's.
        let steady = taken.min(self.before);
        self.before = taken;
        let from = |level: u8| OVERLOAD_FROM[usize::from(level) - 1];
        let is_reached = usize::from(self.level) < OVERLOAD_FROM.len() && steady >= from(self.level + 1);
        if is_reached && is_time(&mut self.rose, now, OVERLOAD_RISE) {
            self.level += 1;
        }
        if self.level == 0 || taken >= from(self.level) - OVERLOAD_BACK {
            self.held = now;
        } else if now.since(self.held) >= OVERLOAD_REST {
            self.level -= 1;
            self.held = now;
        }
    }
}

/// Whether something is to be done that was last done then, or never. It is then done now.
fn is_time(last: &mut Option<Time>, now: Time, every: Duration) -> bool {
    let is_time = last.is_none_or(|last| now.since(last) >= every);
    if is_time {
        *last = Some(now);
    }
    is_time
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK_MS: u64 = 250;

    /// A scale, and the time.
    #[derive(Default)]
    struct Bench {
        scale: Scale,
        looks: u64,
    }

    impl Bench {
        /// Looks for so long at what is read. Returns what was done, with the time since the beginning of that.
        fn look(&mut self, for_ms: u64, readings: Readings) -> Vec<(u64, Act)> {
            let looks = for_ms / LOOK_MS;
            let mut acts = Vec::new();
            for look in 0..looks {
                self.looks += 1;
                let now = Time::from_millis(self.looks * LOOK_MS);
                acts.extend(self.scale.step(now, &readings).into_iter().map(|act| (look * LOOK_MS, act)));
            }
            acts
        }

        /// The same, and only the levels.
        fn levels(&mut self, for_ms: u64, readings: Readings) -> Vec<(u64, u8)> {
            let acts = self.look(for_ms, readings).into_iter();
            acts.filter_map(
                |(at, act)| if let Act::Level(level, ..) = act { Some((at, level)) } else { None },
            )
            .collect()
        }
    }

    fn memory(thousandths: u64) -> Readings {
        Readings { memory: Share { taken: thousandths, all: 1000 }, ..Readings::default() }
    }

    #[test]
    fn levels_rise_in_order_and_fall_in_order_with_hysteresis() {
        let mut bench = Bench::default();
        assert_eq!(bench.levels(10_000, memory(799)), []);
        assert_eq!(bench.levels(10_000, memory(800)), [(250, 1)], "it is so at two looks");
        assert_eq!(bench.levels(10_000, memory(1000)), [(250, 2), (1250, 3)], "a second between them");
        assert_eq!(bench.levels(20_000, memory(900)), [], "not 5 % less");
        assert_eq!(bench.levels(20_000, memory(899)), [(4750, 2)]);
        assert_eq!(bench.levels(20_000, memory(0)), [(4750, 1), (9750, 0)]);
        assert_eq!(bench.levels(10_000, memory(951)), [(250, 1), (1250, 2), (2250, 3)]);
    }

    #[test]
    fn a_moment_is_no_overload_and_a_pause_of_one_is_none_of_the_end() {
        let mut bench = Bench::default();
        for _ in 0..20 {
            assert_eq!(bench.levels(LOOK_MS, memory(1000)), []);
            assert_eq!(bench.levels(LOOK_MS, memory(100)), []);
        }
        assert_eq!(bench.levels(500, memory(850)), [(250, 1)]);
        for _ in 0..20 {
            assert_eq!(bench.levels(4500, memory(100)), []);
            assert_eq!(bench.levels(LOOK_MS, memory(850)), []);
        }
    }

    #[test]
    fn whatever_is_scarcest_counts() {
        let of = |readings: Readings| readings.worst();
        let half = Share { taken: 50, all: 100 };
        let descriptors = Share { taken: 90, all: 100 };
        let readings = Readings { memory: half, descriptors, ..Readings::default() };
        assert_eq!(of(readings), (Scarce::Descriptors, 900));
        assert_eq!(of(Readings { workers: LAG_MAX, ..readings }), (Scarce::Workers, 1000));
        assert_eq!(of(Readings { control: LAG_MAX * 2, ..readings }), (Scarce::Control, 2000));
        let unknown = Share { taken: 7, all: 0 };
        assert_eq!(of(Readings { memory: unknown, ..Readings::default() }), (Scarce::Memory, 0));
    }

    #[test]
    fn receivers_end_each_second_and_snapshots_are_seldom_from_the_second_level_on() {
        let mut bench = Bench::default();
        let descriptors = Share { taken: 92, all: 100 };
        let acts = bench.look(4000, Readings { descriptors, ..Readings::default() });
        let expected = [
            (250, Act::Level(1, Scarce::Descriptors, 920)),
            (1250, Act::Level(2, Scarce::Descriptors, 920)),
            (1250, Act::Snapshots(SNAPSHOT_SELDOM)),
            (1250, Act::Shed),
            (2250, Act::Shed),
            (3250, Act::Shed),
        ];
        assert_eq!(acts, expected);
        let acts = bench.look(20_000, Readings::default());
        let back = acts.iter().find(|(_, act)| matches!(act, Act::Snapshots(_)));
        assert_eq!(back, Some(&(4750, Act::Snapshots(SNAPSHOT_EVERY))));
        assert!(acts.iter().all(|(at, act)| *act != Act::Shed || *at < 4750), "{acts:?}");
    }

    #[test]
    fn memory_is_given_back_while_there_is_little() {
        let mut bench = Bench::default();
        let acts = bench.look(21_000, memory(850));
        let given: Vec<_> = acts.iter().filter(|(_, act)| *act == Act::GiveBack).map(|(at, _)| *at).collect();
        assert_eq!(given, [250, 10_250, 20_250]);
        assert_eq!(bench.look(30_000, memory(0)).iter().filter(|(_, act)| *act == Act::GiveBack).count(), 0);
    }
}
