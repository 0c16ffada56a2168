//! Every limit of the ring, with what happens when it is reached.

/// Sends given to the kernel by one `io_uring_enter`; further ones follow by the next.
pub const BATCH: usize = 1024;

/// Answers that the ring holds: those of a batch, and as many notices of buffers that are free
/// again. Beyond, the kernel keeps them until there is room.
pub const ANSWERS: u32 = 4096;

/// How often the ring may make no progress at all before it is given up.
pub const TRIES: u32 = 64;

/// Sockets that the ring knows by number, 8 bytes each. Further ones are sent to by their plain
/// descriptors.
pub const REGISTERED_FILES_MAX: u32 = 32_768;

/// Bytes of a buffer for sends without a copy; a larger order is copied. An order of 64 packets of
/// 1400 bytes fits.
pub const ZERO_COPY_BUFFER_BYTES: usize = 128 << 10;

/// Buffers of a ring for sends without a copy, made when they are needed. When receivers have
/// not acknowledged what is in all of them, orders are copied.
pub const ZERO_COPY_BUFFERS: usize = 32;
