//! What a message may hold.

/// Bytes of a value that goes in a packet of the socket. A longer one goes as a sealed file in memory.
pub const VALUE_IN_PACKET_MAX: usize = 32 << 10;

/// Bytes of a value. A longer one is not sent, and refused before anything is allocated for it.
pub const VALUE_BYTES_MAX: usize = 2 << 30;

/// Descriptors of a packet: as many as the kernel takes (`SCM_MAX_FD`). More are several packets.
pub const DESCRIPTORS_IN_PACKET_MAX: usize = 253;

/// Descriptors of a message. More are not sent, and refused before any of them is taken.
pub const DESCRIPTORS_MAX: usize = 65_536;
