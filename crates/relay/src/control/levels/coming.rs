//! A packet that comes into a branch, as far as levels need it afterwards.

use outflow_packet::Parsed;

use crate::control::renditions::Pushed;

/// What is kept of a packet until it stands in its ring.
#[derive(Debug, Default)]
pub(in crate::control) struct Coming {
    /// All of it, where it is a datagram of a transport stream.
    pub(in crate::control) datagram: Option<Parsed>,
    /// How it came, where the branch may be that of a rendition.
    pub(in crate::control) pushed: Option<Pushed>,
}
