//! Every limit of the driver, with what happens when it is reached.

/// Packets that are sealed by one key: 2^22, half of what RFC 9001 section 6.6 allows AES-GCM for packets of up
/// to 64 KiB. The next one is derived from it then, at both ends, by the number of the packet.
pub const KEY_PACKETS: u64 = 1 << 22;

/// Packet numbers of a connection that are sealed and opened: 2^48, enough for 89 years at 100,000 a second.
/// Those from it on are not; the connection has to end.
pub const PACKETS_MAX: u64 = 1 << 48;

/// Numbers before [`PACKETS_MAX`] at which a connection is told that its keys are spent.
pub const LAST_PACKETS: u64 = 1 << 12;

/// Packets of a connection that did not open: 2^52 (RFC 9001 section 6.6). After this many, no further
/// one is opened; the connection has to end.
pub const FORGERIES_MAX: u64 = 1 << 52;

/// Characters of a passphrase. A shorter one is refused: it would be guessed.
pub const PASSPHRASE_CHARS_MIN: usize = 12;

/// Bytes of a text of keys. A longer one is refused before it is read.
pub const KEYS_BYTES_MAX: usize = 4096;

/// Clients that wait to be looked at. Further ones are refused.
pub const PENDING_MAX: usize = 1024;

/// Those of one address, or of one IPv6 network of 64 bits. Further ones are refused: others find room.
pub const PENDING_OF_ADDRESS_MAX: usize = PENDING_MAX / 2;

/// Batches of datagrams that are read before anything else is done.
pub const BATCHES_A_TURN: usize = 16;
