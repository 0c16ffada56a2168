//! Where the stream is.

/// Its name.
pub(super) const STREAM: &str = "live";
/// Where the source sends to.
pub const SOURCE_PORT: u16 = 5004;
