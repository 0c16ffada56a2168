//! Every limit of emulation, and what happens when it is reached.

/// Flows of an emulation. A further one takes the place of the one that was silent longest; where all have packets
/// on their way it is one with all further flows of its path, and data.
pub(crate) const FLOWS_MAX: usize = 4096;

/// Flows of which it is looked for at once what they are. Further ones are data.
pub(crate) const LOOKED_AT_FLOWS_MAX: usize = 64;

/// Ends of a network. With more, it is refused.
pub(crate) const ENDS_MAX: usize = 64;

/// Links and paths of a network. With more, it is refused.
pub(crate) const LINKS_MAX: usize = 1024;

/// Packets that travel behind a link, and that wait at one. A further one is dropped, and counted (`full`).
pub(crate) const HELD_MAX: usize = 200_000;

/// Packets that are read of a device before others have their turn.
pub(crate) const READ_AT_ONCE: usize = 64;

/// Packets that wait in a device until they are read. The kernel drops further ones and counts them there.
pub(crate) const DEVICE_QUEUE: u32 = 10_000;

/// The largest packet that a device gives.
pub(crate) const PACKET_BYTES_MAX: usize = 65_535;
