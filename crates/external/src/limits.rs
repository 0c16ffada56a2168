//! The limits of other programs, with what happens when they are reached.

use std::time::Duration;

use outflow_media::Backoff;

/// Packets that wait for another program. Beyond, they are dropped and counted (`context-full`).
pub(crate) const PACKETS: usize = 4096;

/// Chunks that another program has written and that are not taken yet. Beyond, it waits. As many are taken
/// with one batch of packets.
pub(crate) const CHUNKS: usize = 256;

/// Bytes of such a chunk at most.
pub(crate) const CHUNK_BYTES: usize = 16 << 10;

/// Descriptors that another program may have open. Beyond, it can open no more.
pub(crate) const FILES: u64 = 1024;

/// Troubles of another program that were not looked at yet. Further ones are like them, and left out.
pub(crate) const TROUBLES: usize = 16;

/// Waits until a program that has ended is started again.
pub(crate) const AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// A program that has run for longer than that begins with the shortest wait again.
pub(crate) const GOOD_AFTER: Duration = Duration::from_secs(30);

/// Lines of its standard error that are logged in a second. Further ones are counted.
pub(crate) const LINES_PER_SECOND: u32 = 10;

/// Bytes of such a line. Its rest is cut off.
pub(crate) const LINE_BYTES_MAX: usize = 512;

/// How long its last words are waited for when it has ended: what it has started may go on to speak.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(200);
