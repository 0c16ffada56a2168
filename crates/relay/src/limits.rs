//! Limits of streams, with what happens when it is reached.

use core::time::Duration;

/// Packets of one order to a sink that lags. The rest follows after the others had their turn.
pub const ORDER_PACKETS_MAX: usize = 64;

/// Packets that are looked at for sinks that lag before others have their turn: those that have lost a key frame go past
/// all that needs it.
pub const LOOKED_AT_MAX: usize = 256;

/// A sink that is looked at counts as this many packets.
pub const LOOKED_AT_A_SINK: usize = 16;

/// This many more packets to a sink make a send of datagrams about twice as long (segmented sends;
/// `labs/fanout` measures them): an order goes to the fewer sinks, the more packets it has.
pub const DATAGRAMS_AS_ONE: u64 = 32;

/// The same for writes to connections.
pub const WRITTEN_AS_ONE: u64 = 12;

/// This many bytes owed are sent even though the latency budget would allow for more: one gathered
/// write of that size costs little more than the stack's work per byte.
pub const GATHER_BYTES_MAX: usize = 60 << 10;

/// What a paced receiver gets at once: what its rate brings in this time ...
pub const PACE_BURST_TIME: Duration = Duration::from_millis(1);

/// ... but a packet in any case.
pub const PACE_BURST_BYTES_MIN: usize = 1500;

/// Bytes that a datagram receiver is sent at once when it joins; the rest of the kept GOP follows
/// paced. Well below the 208 KiB that a UDP socket buffers on Linux by default.
pub const CATCH_UP_BURST_BYTES: usize = 96 << 10;

/// How many times the stream's own rate the rest of the kept GOP is sent with.
pub const CATCH_UP_SPEED: u64 = 8;

/// The slowest pace of catching up, for streams whose rate is not known yet.
pub const CATCH_UP_BPS_MIN: u64 = 16_000_000;

/// How long a derived branch (RTP turned into a transport stream) outlives its last sink.
pub const BRANCH_LINGER: Duration = Duration::from_secs(5);

/// How long a rendition is waited for when the first one has come. Then, with the next key frame, sinks that
/// want it are served by another one.
pub const RENDITION_AWAITED: Duration = Duration::from_secs(1);

/// Packets that wait, after a gap in what a replica was handed, until they show whether their frame
/// is a key frame, which its first few do. Beyond, they are lost like those before, and the next
/// frame may be one.
pub const GAP_HELD_PACKETS_MAX: usize = 64;

/// Views of one stream that receivers may ask for at a time, those included whose last receiver has left
/// less than [`BRANCH_LINGER`] ago. Another one is refused: each is work, and memory.
pub const VIEWS_MAX: usize = 32;

/// Packets that wait for services at most; with one more they are worked on at once.
pub const SERVICE_BATCH: usize = 64;

/// Packets that wait while services are put in place that run in several contexts. Beyond, they are
/// dropped for the services (`context-full`).
pub const SERVICE_HELD_MAX: usize = 8192;

/// Between two RTCP sender reports of a track (RFC 3550, section 6.2: 5 s minimum).
pub const SENDER_REPORT_EVERY: Duration = Duration::from_secs(5);

/// Over how long bit rates are measured.
pub const RATE_WINDOW: Duration = Duration::from_secs(1);

/// A receiver may ask for a level once in this time, ...
pub const LEVEL_REQUEST_EVERY: Duration = Duration::from_millis(100);

/// ... and for this many more at once. Beyond, requests are refused and counted.
pub const LEVEL_REQUESTS_BURST: u32 = 10;

/// A receiver that says what its way carries gets a better level only if that leaves this much room.
pub const LEVEL_HEADROOM_PERCENT: u64 = 10;

const _: () = assert!(CATCH_UP_BURST_BYTES < 208 << 10, "a burst must fit a default receive buffer");
