//! Panics are told by the log, not by the library: that would write to standard error, and wait for it.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

/// Tells of a panic.
pub(crate) fn tell(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("without a name");
    let what = panic.payload_as_str().unwrap_or("no text");
    let at = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(backtrace, "thread '{thread}' panicked at {at}: {what}");
}
