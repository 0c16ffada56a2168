//! What became of events.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_api::HttpError;
use outflow_api::metrics::Families;
use outflow_control::{Control, Task};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::delivery::Outcome;

/// Shared by what tells and what shows.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    taken: Count,
    failed: Count,
    pub(crate) lost: Count,
}

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }
}

impl Counts {
    pub(crate) fn count(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Taken => self.taken.add(1),
            Outcome::Refused(_) | Outcome::Failed(_) => self.failed.add(1),
            Outcome::Unwanted => {}
        }
    }
}

/// The metrics.
pub(crate) fn measure(control: Control) -> Task<Result<Box<dyn Collector>, HttpError>> {
    let counts = control.shared::<Counts>();
    Box::pin(async move { Ok(Box::new(Snapshot(counts)) as Box<dyn Collector>) })
}

#[derive(Debug)]
struct Snapshot(Arc<Counts>);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Counts { taken, failed, lost } = &*self.0;
        let values = [("taken", taken), ("failed", failed), ("lost", lost)]
            .map(|(outcome, count)| ([("outcome", outcome)], count.0.load(Ordering::Relaxed)));
        let help = "Requests to the hook's address that it took or that failed, and events that were lost";
        Families(encoder).counter("hook_events", None, help, values)
    }
}
