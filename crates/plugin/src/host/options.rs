//! What was chosen for a plug-in.

use core::time::Duration;

use outflow_graph::{Settings, Unfit};

use crate::limits::{BUDGET, BUDGET_PER_BYTE, MEMORY_BYTES, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN};

/// What was chosen for a plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// The plug-in's own business.
    pub(crate) config: String,
    pub(crate) memory_bytes: u64,
    pub(crate) budget: Budget,
    pub(crate) on_fault: OnFault,
    /// Packets of a frame go into one call.
    pub(crate) whole_frames: bool,
}

/// Instructions that a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    fixed: u64,
    per_byte: u64,
}

impl Budget {
    /// As it was chosen, whatever the call is given; if it was not, by what that is.
    fn of(chosen: Option<Duration>) -> Self {
        let fixed = chosen.unwrap_or(BUDGET).max(Duration::from_micros(1));
        let fixed = u64::try_from(fixed.as_nanos()).unwrap_or(u64::MAX);
        Budget { fixed, per_byte: if chosen.is_some() { 0 } else { BUDGET_PER_BYTE } }
    }

    /// For a call that is given `bytes` bytes, or all calls with parts of a packet of `bytes` bytes.
    pub(crate) const fn instructions(self, bytes: usize) -> u64 {
        self.fixed.saturating_add(self.per_byte.saturating_mul(bytes as u64))
    }
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
        Ok(Options {
            config: settings.text("config").unwrap_or("").to_owned(),
            memory_bytes,
            budget: Budget::of(settings.duration("budget")),
            on_fault: match settings.text("on_fault") {
                Some("bypass") => OnFault::Bypass,
                Some("drop") => OnFault::Drop,
                _ => OnFault::Restart,
            },
            whole_frames: settings.text("unit") == Some("frames"),
        })
    }
}
