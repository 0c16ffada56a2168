//! Every limit of plug-ins, with what happens when it is reached.

use core::time::Duration;

use outflow_graph::limits::MAKE_TIME_MAX;
use outflow_media::Backoff;

/// Bytes of a plug-in's file. A larger one is refused.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Time to compile a plug-in. What needs more is refused.
pub const COMPILE_TIME_MAX: Duration = Duration::from_secs(300);

const _: () = assert!(COMPILE_TIME_MAX.as_secs() < MAKE_TIME_MAX.as_secs(), "what compiles is waited for");

/// Addresses that the compiler of plug-ins may use. A plug-in for which it needs more is refused.
pub const COMPILE_MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Descriptors that the compiler of plug-ins may have open.
pub const COMPILER_FILES: u64 = 64;

/// Bytes of a plug-in's machine code. A plug-in with more is refused.
pub const CODE_BYTES_MAX: u64 = 1 << 30;

/// Bytes of what the compiler says of a plug-in. Their rest is cut off.
pub const COMPILER_WORDS_BYTES_MAX: u64 = 16 << 10;

/// Memory that a plug-in may have where nothing is said. What wants more is stopped.
pub const MEMORY_BYTES: u64 = 16 << 20;

/// The least and the most that can be asked for; other wishes are refused.
pub const MEMORY_BYTES_MIN: u64 = 64 << 10;

/// See [`MEMORY_BYTES_MIN`]. Addresses have 32 bits.
pub const MEMORY_BYTES_MAX: u64 = 2 << 30;

/// Instructions of a call where nothing is said, one a nanosecond, and [`BUDGET_PER_BYTE`] more. A longer call is
/// stopped. Plug-ins stand back behind workers, but share caches and cores with them: what one may take
/// at once is what others may notice.
pub const BUDGET: Duration = Duration::from_millis(5);

/// See [`BUDGET`]: instructions for each byte that a call is given, so that images have the time that they need.
pub const BUDGET_PER_BYTE: u64 = 100;

/// Instructions to come to life, language runtimes included. What needs more cannot be used.
pub const BIRTH_INSTRUCTIONS: u64 = 2_000_000_000;

/// Packets of a call. Larger batches are worked on in parts.
pub const CALL_PACKETS_MAX: usize = 64;

/// Bytes of a call's packets, as a part of the plug-in's memory (one part in this many), where they
/// are more than one packet. Larger batches are worked on in parts.
pub const CALL_MEMORY_PARTS: u64 = 8;

/// Bytes of a plug-in's memory that a packet leaves to the plug-in at least; a larger packet is not
/// given to it but dropped.
pub const CALL_MEMORY_REST: u64 = 32 << 10;

/// Instructions that a part of a packet costs a plug-in besides those that it takes, so that many calls
/// end, too.
pub const PART_INSTRUCTIONS: u64 = 1000;

/// Packets that may come of one. A batch of which more are made is dropped.
pub const MADE_PER_PACKET_MAX: usize = 8;

/// Bytes of a packet that an element makes, images aside. A batch with a larger one is dropped.
pub const MADE_BYTES_MAX: usize = 65_000;

/// Elements of all tables of a plug-in. What wants more is stopped.
pub const TABLE_ELEMENTS_MAX: usize = 100_000;

/// Instances, memories and tables of a plug-in, each. What has more cannot be used.
pub const PARTS_MAX: usize = 64;

/// Bytes of the stack of a plug-in. What wants more is stopped.
pub const STACK_BYTES: usize = 256 << 10;

/// A batch in which something went wrong is worked on packet by packet, until that went wrong so
/// often. The rest is dropped.
pub const FAULTS_PER_BATCH_MAX: u32 = 3;

/// A plug-in is started again at once so often; from then on it rests before, for
/// [`REST_FIRST`], doubling to [`REST_MAX`]. What comes meanwhile is dropped.
pub const RESTARTS_AT_ONCE: u32 = 8;

/// See [`RESTARTS_AT_ONCE`].
pub const REST_FIRST: Duration = Duration::from_millis(100);

/// See [`RESTARTS_AT_ONCE`].
pub const REST_MAX: Duration = Duration::from_secs(30);

/// Rests of a plug-in; see [`RESTARTS_AT_ONCE`].
pub const REST: Backoff = Backoff::new(REST_FIRST, REST_MAX);

/// All is forgiven when nothing went wrong for so long after the last rest.
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(60);

/// Lines of a plug-in that are logged in a second. Further ones are counted.
pub const LOG_LINES_PER_SECOND: u32 = 10;

/// Bytes of a line that is logged. Its rest is cut off.
pub const LOG_LINE_BYTES_MAX: usize = 512;

/// Instructions that a line costs a plug-in, and as many more as the line has bytes.
pub const LOG_INSTRUCTIONS: u64 = 1000;

/// Bytes of words that a plug-in gives for an error. Their rest is cut off.
pub const ERROR_BYTES_MAX: usize = 512;

/// Bytes that a plug-in may hand on to its successor. More are not handed on.
pub const SAVED_BYTES_MAX: usize = 1 << 20;
