//! What was chosen for a plug-in.

use core::time::Duration;

use outflow_relay::graph::{Settings, Unfit};

use crate::limits::{BUDGET, MEMORY_BYTES, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN};

/// What was chosen for a plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// The plug-in's own business.
    pub(crate) config: String,
    pub(crate) memory_bytes: u64,
    /// Instructions of a call.
    pub(crate) fuel: u64,
    pub(crate) on_fault: OnFault,
    /// Packets of a frame go into one call.
    pub(crate) whole_frames: bool,
}

/// What happens when a plug-in went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFault {
    /// It is started again.
    Restart,
    /// Everything passes as it is from then on.
    Bypass,
    /// Nothing passes from then on.
    Drop,
}

impl Options {
    pub(crate) fn of(settings: &Settings) -> Result<Self, Unfit> {
        let memory_bytes = settings.size("memory").unwrap_or(MEMORY_BYTES);
        if !(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX).contains(&memory_bytes) {
            let what = format!("a `memory` of {memory_bytes} bytes cannot be had");
            return Err(Unfit::new(what, "write 64 KiB at least, 2 GiB at most"));
        }
        let budget = settings.duration("budget").unwrap_or(BUDGET).max(Duration::from_micros(1));
        Ok(Options {
            config: settings.text("config").unwrap_or("").to_owned(),
            memory_bytes,
            fuel: u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX),
            on_fault: match settings.text("on_fault") {
                Some("bypass") => OnFault::Bypass,
                Some("drop") => OnFault::Drop,
                _ => OnFault::Restart,
            },
            whole_frames: settings.text("unit") == Some("frames"),
        })
    }
}
