//! Marks of explicit congestion notification (RFC 3168), as IP carries them.

/// How the network marked a packet (ECN, RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Mark {
    /// Not ECT, or it is not known.
    #[default]
    None,
    /// ECT(0).
    Ect0,
    /// ECT(1): low latency is wanted (RFC 9331).
    Ect1,
    /// CE: there was congestion.
    Ce,
}
