//! Every limit of sending and receiving datagrams, with what happens when it is reached.

/// Bytes of a piece of datagrams, which is one packet of IP until it is cut (UDP over IPv6, with its headers).
/// More than that goes as several pieces.
pub const PIECE_BYTES_MAX: usize = 65_487;

/// Pieces that are received by one system call, some 360 datagrams where they are joined. What is more waits for
/// the next call; 32 of them were no faster.
pub const BATCH_PIECES: usize = 8;

/// Errors of single datagrams in a row that are passed over. Beyond, others have their turn.
pub const ERRORS_IN_A_ROW_MAX: usize = 64;

/// Datagrams that are put into an outbox before they are sent, and what has come is read.
pub const DATAGRAMS_A_TURN: usize = 64;

/// Peers of which it is known by which own address they were reached. At a further one all are forgotten: each is
/// known again with its next datagram.
pub const OWN_ADDRESSES_MAX: usize = 8192;

/// Addresses of one peer of which that is known. At a further one the oldest is forgotten.
pub const OWN_OF_PEER_MAX: usize = 4;

/// Datagrams of a parcel, which are handed over to another thread together. Those behind them go with the next.
pub const PARCEL_DATAGRAMS_MAX: usize = 64;
