//! How many lines of one kind are written: what a peer can cause must not fill a disk, nor keep threads busy with
//! formatting it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use outflow_media::{Time, TokenBucket};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::Context;

use crate::counts::Count;
use crate::limits::{BURST, RATE};

/// The kinds of lines: one is what one place in the code says.
#[derive(Debug)]
pub(crate) struct Bound {
    zero: Instant,
    /// By the address of what describes the place: there are as many as places.
    kinds: Mutex<BTreeMap<usize, Kind>>,
    left_out: Count,
}

impl Default for Bound {
    fn default() -> Self {
        Bound { zero: Instant::now(), kinds: Mutex::default(), left_out: Count::default() }
    }
}

#[derive(Debug)]
struct Kind {
    bucket: TokenBucket,
    /// What such a line says, without what it says it of.
    says: String,
    /// Lines left out since the log told of it.
    left_out: u64,
}

impl Bound {
    /// Whether another line of this kind is to be written now; `says` is asked seldom.
    fn may(&self, place: usize, now: Time, says: impl FnOnce() -> String) -> bool {
        // A thread that logs does not wait for another one: then the queue is the bound.
        let Ok(mut kinds) = self.kinds.try_lock() else { return true };
        let fresh = || Kind { bucket: TokenBucket::new(BURST), says: String::new(), left_out: 0 };
        let kind = kinds.entry(place).or_insert_with(fresh);
        if kind.bucket.pass(now, RATE) {
            return true;
        }
        if kind.left_out == 0 {
            kind.says = says();
        }
        kind.left_out += 1;
        self.left_out.add_one();
        false
    }

    /// Lines left out since the start.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.get()
    }

    /// Lines left out since it was asked last, by what they say.
    pub(crate) fn take_left_out(&self) -> Vec<(String, u64)> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let some = kinds.values_mut().filter(|kind| kind.left_out > 0);
        some.map(|kind| (kind.says.clone(), core::mem::take(&mut kind.left_out))).collect()
    }
}

/// Has events bounded, before they are formatted. It goes on top of a filter: what that leaves out does not count.
pub(crate) struct Layer(pub(crate) std::sync::Arc<Bound>);

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let now = Time::ZERO + self.0.zero.elapsed();
        let says = || {
            let mut says = Says::default();
            event.record(&mut says);
            says.0
        };
        self.0.may(core::ptr::from_ref(event.metadata()).addr(), now, says)
    }
}

/// The text of an event, without its other fields.
#[derive(Default)]
struct Says(String);

impl Visit for Says {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn a_flood_of_one_kind_leaves_few_lines_and_the_others_alone() {
        let bound = Bound::default();
        let flood = (0..18_563u64).map(|n| Time::from_micros(n * 5_000_000 / 18_563));
        let passed = flood.filter(|now| bound.may(1, *now, || "a receiver joined".to_owned())).count();
        assert!((140..=150).contains(&passed), "{passed}");
        assert!(bound.may(2, Time::from_millis(5_000), || unreachable!("it passes")));
        let left_out = 18_563 - passed as u64;
        assert_eq!(bound.left_out(), left_out);
        assert_eq!(bound.take_left_out(), [("a receiver joined".to_owned(), left_out)]);
        assert!(bound.take_left_out().is_empty(), "it is told once");
        assert!(bound.may(1, Time::from_millis(6_000), || unreachable!("it passes again")));
    }

    /// Counts how often it is formatted.
    struct Costly<'a>(&'a AtomicU64);

    impl std::fmt::Display for Costly<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fetch_add(1, Ordering::Relaxed);
            f.write_str("costly")
        }
    }

    #[test]
    fn lines_that_are_left_out_are_not_formatted() {
        let (bound, formatted) = (Arc::new(Bound::default()), AtomicU64::new(0));
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
        let log = tracing_subscriber::registry().with(lines).with(Layer(Arc::clone(&bound)));
        tracing::subscriber::with_default(log, || {
            for _ in 0..10_000 {
                tracing::info!(what = %Costly(&formatted), "a receiver joined");
            }
        });
        let (formatted, left_out) = (formatted.into_inner(), bound.left_out());
        assert_eq!(formatted + left_out, 10_000);
        assert!(left_out > 5_000, "{left_out}");
        assert_eq!(bound.take_left_out(), [("a receiver joined".to_owned(), left_out)]);
    }
}
