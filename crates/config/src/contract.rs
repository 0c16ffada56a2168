//! What goes over a connection between two elements.

/// What a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contract {
    /// MPEG-TS packets (ISO/IEC 13818-1).
    Ts,
    /// PPM images.
    Images,
    /// Opaque datagrams.
    Data,
    /// RTP packets (RFC 3550).
    Rtp,
    /// Either, as the publisher decides.
    Either,
}
