//! Numbers by which control and the workers name things to each other.

/// Number of a stream; never given twice while the relay runs.
pub type StreamId = u64;
/// Number of a receiver; never given twice while the relay runs.
pub type ReceiverId = u64;
/// Number of a source's turn at a stream; never given twice while the relay runs.
pub type SourceId = u64;
