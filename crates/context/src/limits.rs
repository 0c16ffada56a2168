//! Limits of execution contexts, with what happens when they are reached.

use core::time::Duration;

/// Execution contexts of the relay. With more, services that name them are refused.
pub const CONTEXTS_MAX: usize = 64;

/// Streams whose plug-ins have a context of their own without asking for it. Those of further ones share
/// one.
pub const PLUGIN_CONTEXTS_MAX: usize = 32;

/// Packets in the queue to a context. Beyond, they are dropped and counted (`context-full`).
pub const CONTEXT_PACKETS: usize = 4096;

/// Places of such a queue that are kept for what is no packet.
pub const CONTEXT_RESERVE: usize = 64;

/// How often a context shows what it has done, at least: readers see it no later.
pub const CONTEXT_SHOWN: Duration = Duration::from_millis(250);

/// How long a context without work sleeps until it looks whether it is still needed.
pub const CONTEXT_IDLE: Duration = Duration::from_secs(1);

/// How far threads stand back behind others that plug-ins keep busy: the contexts that they have without
/// asking, and the making of services. Threads that carry packets go first.
pub const BACKGROUND_NICE: i32 = 10;

const _: () = assert!(CONTEXT_RESERVE < CONTEXT_PACKETS, "there is room for packets");
