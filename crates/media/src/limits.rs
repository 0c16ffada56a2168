//! Every limit on what is read, with what happens when it is reached.

/// Bytes of a session description; a longer one is refused.
pub const SDP_BYTES_MAX: usize = 64 * 1024;

/// Tracks of a session description; one with more of them is refused.
pub const SDP_TRACKS_MAX: usize = 16;

/// Places that an RTP packet may be early when access units are put together. When one is earlier
/// still, the packets missing in front of the window are given up. Networks that reorder do so by
/// a few packets; a larger window would hold up audio, with few packets a second, at every loss.
pub const REORDER_PACKETS_MAX: usize = 8;

/// How far behind the newest an RTP packet may be to count as late. One further behind belongs to
/// a source that began again.
pub const LATE_PACKETS_MAX: u16 = 100;

/// How far ahead of the newest an RTP packet may be to count as the next one after a loss. One
/// further ahead belongs to a source that began again (RFC 3550 appendix A.1).
pub const LOST_PACKETS_MAX: u16 = 3000;

/// Frames that a reader keeps in mind for late packets. A packet of an older frame is told to
/// belong to the oldest one.
pub const REMEMBERED_FRAMES: usize = 8;

/// Bytes of an access unit that is put together; a longer one is dropped and counted.
pub const UNIT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of parameter sets kept for key frames that come without them; further ones are not kept.
pub const PARAMETER_SET_BYTES_MAX: usize = 4096;

/// Frames in one packet of AAC; a packet with more of them is malformed.
pub const AAC_FRAMES_MAX: usize = 64;

/// Seconds that a timestamp may be from where its arrival puts it when tracks are brought
/// together. One further away begins the track again; a sender report further away is not believed.
pub const CLOCK_DEVIATION_SECONDS_MAX: u32 = 10;

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

/// Tracks that are put into one transport stream, so that one section describes them. Those
/// beyond are left out.
pub const MUX_TRACKS_MAX: usize = 32;

// A late packet must not be taken for the next one after a loss, on numbers of 16 bits.
const _: () = assert!((LATE_PACKETS_MAX as u32) + (LOST_PACKETS_MAX as u32) < 1 << 15);
const _: () = assert!((REORDER_PACKETS_MAX as u32) < LOST_PACKETS_MAX as u32);
const _: () = assert!(PARAMETER_SET_BYTES_MAX < UNIT_BYTES_MAX);
// One bit each where tables are read.
const _: () = assert!(PROGRAMMES_MAX <= u64::BITS as usize);
