//! What sinks, links and branches are called.

/// A receiver of a stream, as the driver and the core call it: an index that is small, so that
/// both can keep what they know of it in a table. It may be given again after the sink has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkKey(pub usize);

/// A link that sinks are behind ([`outflow_link`]), by the driver's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A branch that services make, by its number in the stream: see
/// [`Stream::branch_named`](crate::Stream::branch_named).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BranchId(pub u32);
