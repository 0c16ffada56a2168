//! Every limit of the log, with what happens when it is reached.

use core::time::Duration;

use outflow_media::{Backoff, Rate};

/// Lines that wait to be written. Beyond, they are lost, and counted.
pub const LINES_MAX: usize = 4096;

/// Their bytes. Beyond, lines are lost, and counted.
pub const BYTES_MAX: usize = 4 << 20;

/// Lines of one kind, which is one place in the code, that are written at once ...
pub const BURST: u64 = 50;

/// ... and how many follow. Further ones are left out, and counted.
pub const RATE: Rate = Rate::per_second(20);

/// How often the log says how many lines were left out and lost.
pub const SUMMARY_EVERY: Duration = Duration::from_secs(10);

/// Waits after a write that failed: a disk may have room again. Lines that come meanwhile are queued.
pub const WRITE_AGAIN: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// How soon a descriptor that does not block is tried again when it is full.
pub const FULL_AGAIN: Duration = Duration::from_millis(20);

/// How long the end of the program waits for lines that are queued. Beyond, they are lost.
pub const FINISH_WITHIN: Duration = Duration::from_millis(500);

/// How soon it looks again whether the queue has room.
pub(crate) const FINISH_AGAIN: Duration = Duration::from_millis(5);
