//! Limits on what is read and made, with what happens when they are reached.

/// Programmes of a transport stream that are looked at. The rest of a larger multiplex is relayed,
/// but none of it can become the programme whose frames are told.
pub const PROGRAMMES_MAX: usize = 64;

/// Elementary streams of a programme that are looked at; the rest is relayed, and not described.
pub const PROGRAMME_STREAMS_MAX: usize = 64;

/// Bytes of packets that are kept of one table (PAT or PMT): a section of full length, with room
/// for packets without payload among them. A table that takes more is waited for again.
pub const TABLE_PACKETS_BYTES_MAX: usize = 12 * 188;

/// Packets of a transport stream within which a frame has to show what it is. One that has not counts as
/// of the lowest layer.
pub const UNTOLD_PACKETS_MAX: usize = 64;

/// Datagrams on the way at once whose [`Findings`](crate::Findings) are in memory that is used again. That of
/// more is asked for, and freed behind them.
pub const FINDINGS_LENT_MAX: usize = 4096;

/// Bytes of a PES packet that is put together, as many as an access unit may have elsewhere; a longer one is dropped and
/// counted.
pub const PES_COLLECTED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Tracks that are put into one transport stream, so that one section describes them. Those
/// beyond are left out.
pub const MUX_TRACKS_MAX: usize = 32;

// One bit each where tables are read.
const _: () = assert!(PROGRAMMES_MAX <= u64::BITS as usize);
