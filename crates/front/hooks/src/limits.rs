//! The limits of hooks, with what happens when they are reached.

use std::time::Duration;

use outflow_media::Backoff;

/// Events that wait to be told. Beyond, the oldest is lost, and counted.
pub(crate) const WAITING_MAX: usize = 1024;

/// How long the address may take to answer. Then it has failed.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Waits until an event is told again after the address has failed.
pub(crate) const AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// How long an event is told again. Then it is lost, and counted.
pub(crate) const TOLD_FOR: Duration = Duration::from_secs(600);
