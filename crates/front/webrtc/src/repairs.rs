//! How many repair packets viewers were sent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_api::HttpError;
use outflow_api::metrics::Families;
use outflow_control::{Control, Task};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

/// Those of all viewers; shared by [`Control::shared`].
#[derive(Debug, Default)]
pub(crate) struct Repairs(AtomicU64);

impl Repairs {
    /// One more is sent.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were.
    pub(crate) fn sent(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The metric.
pub(crate) fn measure(control: Control) -> Task<Result<Box<dyn Collector>, HttpError>> {
    let repairs = control.shared::<Repairs>();
    Box::pin(async move { Ok(Box::new(Snapshot(repairs)) as Box<dyn Collector>) })
}

#[derive(Debug)]
struct Snapshot(Arc<Repairs>);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let none: [(&str, &str); 0] = [];
        let help = "Repair packets (FlexFEC) that were sent to browsers";
        Families(encoder).counter("webrtc_repair_packets", None, help, [(none, self.0.sent())])
    }
}
