//! Limits of elements and graphs, with what happens when they are reached.

use core::time::Duration;

/// How long it may take to make the services of a stream, all plug-ins together. They are waited for no longer, and
/// refused.
pub const MAKE_TIME_MAX: Duration = Duration::from_secs(305);

/// Lanes that an element works in at a time. A configuration with more is refused.
pub const LANES_MAX: usize = 16;

/// Elements of one stream. A plan with more is refused.
pub const ELEMENTS_MAX: usize = 256;

/// Declared branches of one stream. A plan with more is refused.
pub const BRANCHES_MAX: usize = 64;

/// One batch in this many is timed; of elements that work on whole frames, that hold parts of some, or that lately took
/// [`LONG`], each is.
pub const SAMPLE_EVERY: u64 = 16;

/// To time a batch that takes so long costs nothing.
pub const LONG: Duration = Duration::from_micros(500);

/// A batch that takes longer is counted: all streams of a worker have waited for it.
pub const LONG_TURN: Duration = Duration::from_millis(20);

/// What a batch took is forgotten so fast: with each that is timed one in this many parts of it.
pub const FORGETS: u64 = 16;

/// Parts of a core in which budgets are counted.
pub const BUDGET_PARTS: u64 = 100_000;

/// A budget saves up what it brings in this part of a second, no more.
pub const BUDGET_BURST_PARTS: u64 = 10;

/// Packets that elements make lie in blocks of this many bytes, of which each is free again when the last
/// of its packets has gone out. A larger packet has a block of its own.
pub const POOL_BLOCK_BYTES: usize = 64 << 10;

/// Bytes of an uncompressed frame that is gathered: one of 8K with three bytes a pixel has 99.5
/// million. Larger ones can be worked on in fragments alone; those that another program writes are
/// dropped (`oversized`).
pub const FRAME_BYTES_MAX: usize = 128 << 20;

/// Packets of a codestream that are kept behind one that is missing. Those beyond are dropped.
pub const CODESTREAM_AHEAD_MAX: usize = 8192;

/// Frames of a track whose verdict an element remembers. A packet of an older frame is judged again, and
/// what needs an older frame is not known to miss it; needs reach back 32 frames at most.
pub const REMEMBERED_VERDICTS: usize = 64;

/// Packets that a copy may come behind its original. A larger wish is refused.
pub const COPY_AFTER_MAX: u64 = 32;

/// RTP sources that an element tells apart where it removes copies, encrypts or decrypts. With one more,
/// the one that was silent for longest is forgotten.
pub const FLOWS_MAX: usize = 64;

/// Packets of a flow in a row that come too late to be told from copies, before the flow is taken to
/// have begun again.
pub const LATE_IN_A_ROW_MAX: u8 = 16;

/// How often the numbers of an encrypted source that one joins late may have begun again; its receiver
/// has to find out. Beyond, it is not found: that many packets take three days at 1000 packets a second.
pub const ROLLOVERS_MAX: u32 = 4096;

/// Rollovers that are tried with each packet of an encrypted source, until one is right.
pub const ROLLOVERS_AT_ONCE: u32 = 8;

/// Bits a second of sound that is coded again, with one channel or two.
pub const OPUS_BPS: u32 = 128_000;

const _: () = assert!(REMEMBERED_VERDICTS > 32, "needs reach back 32 frames");
