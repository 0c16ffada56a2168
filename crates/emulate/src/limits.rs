//! Every limit of the driver, and what happens when it is reached. Those of networks are the simulator's.

/// Packets that are read of a device before others have their turn.
pub(crate) const READ_AT_ONCE: usize = 64;

/// Packets that wait in a device until they are read. The kernel drops further ones and counts them there.
pub(crate) const DEVICE_QUEUE: u32 = 10_000;

/// The largest packet that a device gives.
pub(crate) const PACKET_BYTES_MAX: usize = 65_535;
