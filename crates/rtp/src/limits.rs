//! Limits on what is read, with what happens when they are reached.

use outflow_media::limits::PARAMETER_SET_BYTES_MAX;

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

/// Bytes of a payload that is made, or is to fit every way: with all headers, and what tunnels add, a path of 1400 bytes carries
/// it (what browsers send themselves is as long). What is longer goes as several.
pub const PAYLOAD_BYTES_MAX: usize = 1200;

/// Frames in one packet of AAC; a packet with more of them is malformed.
pub const AAC_FRAMES_MAX: usize = 64;

/// Packets that one message may ask for; what else it asks for is passed over.
pub const NACKS_MAX: usize = 256;

/// Packets that one message about a transport tells of; of more, runs of lost ones are passed over at the beginning.
/// What it says of others it has a bit for, at least.
pub const TRANSPORT_STATUSES_MAX: u16 = 4096;

/// Bytes of what a message about a transport says, so that it fits into a datagram with what is around it; it goes on
/// in another one.
pub const TRANSPORT_FEEDBACK_BYTES_MAX: usize = 1000;

/// Packets of a transport of which the arrival is kept until it is told, and in case earlier ones still come. The
/// oldest are forgotten then, and when half as many are untold, they are told at once. Numbers that leap further
/// belong to one that began again.
pub const ARRIVALS_MAX: usize = 2048;

/// Characters of a name or password of an offer (RFC 8839, section 5.4); one with more is refused.
pub const OFFER_CREDENTIAL_MAX: usize = 256;

/// Media of an offer of WebRTC; one with more is refused.
pub const OFFER_MEDIA_MAX: usize = 16;

/// Payload types of a media of an offer, and feedback of one; further ones are passed over.
pub const OFFER_PAYLOADS_MAX: usize = 64;

/// Sizes of a picture that a media of an offer is sent at; further ones are passed over.
pub const OFFER_RIDS_MAX: usize = 8;

/// Sources that a media of an offer names, and fingerprints of an offer; further ones are passed over.
pub const OFFER_SOURCES_MAX: usize = 32;

// A late packet must not be taken for the next one after a loss, on numbers of 16 bits.
const _: () = assert!((LATE_PACKETS_MAX as u32) + (LOST_PACKETS_MAX as u32) < 1 << 15);
const _: () = assert!((REORDER_PACKETS_MAX as u32) < LOST_PACKETS_MAX as u32);
const _: () = assert!(PARAMETER_SET_BYTES_MAX < UNIT_BYTES_MAX);
