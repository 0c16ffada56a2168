//! What the protocol is called, in configurations and to a hook.

/// In the clear.
pub(crate) const PLAIN: &str = "http";

/// In TLS.
pub(crate) const ENCRYPTED: &str = "https";
