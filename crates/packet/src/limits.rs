//! Limits on packets and their tracks, with what happens when they are reached.

use core::time::Duration;

/// Tracks of one stream. A description with more is refused when it is bound.
pub const TRACKS_MAX: usize = 16;

/// Packets that an element holds back, or a link of each flow, until their frames show what they are. Beyond, they
/// are judged as what they are known to be.
pub const HELD_PACKETS_MAX: usize = 32;

/// Bytes of a packet with its mark ([`gmc::Mark`](crate::gmc::Mark)): what IPv6 and UDP leave of 1500, as routers cannot
/// read fragments. One that would be longer is split, if its codec is one of those that can be; of other tracks, the
/// packets from there on go without, and so everywhere.
pub const MARKED_BYTES_MAX: usize = 1500 - 48;

/// A foreign SSRC is taken over once the stream's own has been silent for this long.
pub const SSRC_SILENCE: Duration = Duration::from_millis(500);

/// Timestamps that are further apart are not those of the same source, whichever relay hands it on.
pub const SAME_CLOCK: Duration = Duration::from_secs(120);

const _: () = assert!(TRACKS_MAX <= 32, "a TrackMask has 32 bits");

/// What levels cost is measured in steps of that length ...
pub const RATE_TABLE_STEP: Duration = Duration::from_millis(500);

/// ... of which this many are kept, the one that goes on included: a group of pictures or two.
pub const RATE_TABLE_PARTS: usize = 9;
