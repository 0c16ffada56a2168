//! What the relay takes on, and what it sheds, when it has too much to do: in a stated order, so that what it has goes
//! on.
//!
//! | level | from | what is done |
//! |---|---|---|
//! | 1 | 80 % | new receivers and pages of events are refused |
//! | 2 | 90 % | receivers of the low class end, the newest first; snapshots are made each 5 s |
//! | 3 | 95 % | publishers are refused of streams that have no receivers |
//!
//! The level is that of what is scarcest: memory, descriptors, the time of workers and that of the control plane.

mod resources;
mod scale;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outflow_config::{ByteSize, Config, Memory};
use outflow_door::Refused;
use serde::Serialize;
use utoipa::ToSchema;

use resources::{Resources, descriptors};
pub use scale::Scarce;
pub(crate) use scale::{Act, NO_JOINS, NO_LOW_CLASS, Scale};
use scale::{NO_PUBLISHERS, Readings};

/// How much the relay has to do, and what it has refused for that.
#[derive(Debug)]
pub struct Overload {
    resources: Resources,
    level: AtomicU8,
    readings: Mutex<Readings>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    joins: AtomicU64,
    pages: AtomicU64,
    publishers: AtomicU64,
    shed: AtomicU64,
    given_back: AtomicU64,
}

/// How much the relay has to do, and what it has shed for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct OverloadState {
    /// 0: it takes on what comes. 1: it refuses receivers, too. 2: it ends receivers of the low class, too. 3: it refuses
    /// publishers of streams without receivers, too.
    pub level: u8,
    /// What is scarcest.
    pub scarcest: Scarce,
    /// How many percent of that are taken.
    pub taken_percent: u64,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
    /// How much it may be: as `limits.memory` says, or less if others in the control group have taken the rest.
    pub memory_max_bytes: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// How many it may have.
    pub descriptors_max: u64,
    /// How long the busiest worker has been at work without a pause.
    pub worker_lag_ms: u64,
    /// How late the control plane was at the last look.
    pub control_lag_ms: u64,
    /// Receivers refused.
    pub joins_refused: u64,
    /// Pages of events refused.
    pub events_refused: u64,
    /// Publishers refused.
    pub publishers_refused: u64,
    /// Receivers ended.
    pub receivers_shed: u64,
    /// How often the allocator was asked to give memory back.
    pub memory_given_back: u64,
}

impl Overload {
    /// Nothing was read yet.
    pub(crate) fn new() -> Self {
        Overload {
            resources: Resources::open(),
            level: AtomicU8::new(0),
            readings: Mutex::default(),
            counts: Counts::default(),
        }
    }

    /// How much memory the relay may take, if that is known.
    pub(crate) fn memory(&self, config: &Config) -> Option<ByteSize> {
        let usual = || Some(self.resources.usual_memory()).filter(|usual| *usual > 0).map(ByteSize);
        match config.limits.memory {
            Memory::Bytes(memory) => Some(memory),
            Memory::Auto => usual(),
        }
    }

    /// Whether a receiver may join.
    pub(crate) fn join(&self) -> Result<(), Refused> {
        self.below(NO_JOINS, &self.counts.joins)
    }

    /// Whether a page of events may be opened.
    ///
    /// # Errors
    /// There is too much to do.
    pub fn open_page(&self) -> Result<(), Refused> {
        self.below(NO_JOINS, &self.counts.pages)
    }

    /// Whether a stream with this many receivers may have a publisher.
    pub(crate) fn publish(&self, receivers: usize) -> Result<(), Refused> {
        if receivers > 0 { Ok(()) } else { self.below(NO_PUBLISHERS, &self.counts.publishers) }
    }

    fn below(&self, level: u8, refused: &AtomicU64) -> Result<(), Refused> {
        if self.level.load(Ordering::Relaxed) < level {
            return Ok(());
        }
        refused.fetch_add(1, Ordering::Relaxed);
        Err(Refused::Overloaded)
    }

    /// Reads what is taken now, with how late workers and the control plane are.
    pub(crate) fn read(&self, config: &Config, (workers, control): (Duration, Duration)) -> Readings {
        // Where nothing is known of the machine, only the control group counts.
        let most = self.memory(config).map_or(u64::MAX, |memory| memory.0);
        let (memory, descriptors) = (self.resources.memory(most), descriptors());
        let readings = Readings { memory, descriptors, workers, control };
        *self.readings.lock().unwrap_or_else(PoisonError::into_inner) = readings;
        readings
    }

    pub(crate) fn set_level(&self, level: u8) {
        self.level.store(level, Ordering::Relaxed);
    }

    pub(crate) fn count_shed(&self) {
        self.counts.shed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_given_back(&self) {
        self.counts.given_back.fetch_add(1, Ordering::Relaxed);
    }

    /// As it is now.
    pub fn state(&self) -> OverloadState {
        let readings = *self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let (scarcest, taken) = readings.worst();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { joins, pages, publishers, shed, given_back } = &self.counts;
        OverloadState {
            level: self.level.load(Ordering::Relaxed),
            scarcest,
            taken_percent: taken / 10,
            memory_bytes: readings.memory.taken,
            memory_max_bytes: readings.memory.all,
            descriptors: readings.descriptors.taken,
            descriptors_max: readings.descriptors.all,
            worker_lag_ms: readings.workers.as_millis() as u64,
            control_lag_ms: readings.control.as_millis() as u64,
            joins_refused: read(joins),
            events_refused: read(pages),
            publishers_refused: read(publishers),
            receivers_shed: read(shed),
            memory_given_back: read(given_back),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_refuses_what_it_says_and_counts_it() {
        let overload = Overload::new();
        let asked = |level| {
            overload.set_level(level);
            let asked = [overload.join(), overload.open_page(), overload.publish(0), overload.publish(1)];
            asked.map(|answer| answer.is_ok())
        };
        assert_eq!(asked(0), [true; 4]);
        assert_eq!(asked(1), [false, false, true, true]);
        assert_eq!(asked(2), [false, false, true, true]);
        assert_eq!(asked(3), [false, false, false, true]);
        let state = overload.state();
        assert_eq!((state.level, state.joins_refused, state.events_refused), (3, 3, 3));
        assert_eq!(state.publishers_refused, 1);
        assert_eq!(overload.join(), Err(Refused::Overloaded));
        assert!(Refused::Overloaded.retry_after_s().is_some_and(|wait| wait > 0));
    }

    #[test]
    fn memory_is_as_configured_or_what_the_machine_has() {
        let overload = Overload::new();
        let mut config = Config::default();
        let usual = overload.memory(&config);
        assert!(usual.is_none_or(|usual| usual > ByteSize(1_000_000)));
        config.limits.memory = Memory::Bytes(ByteSize(77));
        assert_eq!(overload.memory(&config), Some(ByteSize(77)));
    }
}
