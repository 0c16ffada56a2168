//! Every limit of the core, with what happens when it is reached.

use core::time::Duration;

/// Tracks of one stream. A description with more is refused when it is bound.
pub const TRACKS_MAX: usize = 16;

/// Packets that a ring holds, whatever their size. Beyond, the oldest go, as when its bytes are full.
pub const RING_PACKETS_MAX: usize = 1 << 18;

/// The smallest ring that can be asked for; a smaller wish is raised to it.
pub const RING_BYTES_MIN: usize = 64 << 10;

/// A full ring gives up this share of itself at once (one part in this many), so that the sinks
/// that lag are visited once for many packets, not for each.
pub const RING_GIVE_UP_PARTS: usize = 16;

/// Random early detection: what a packet changes the mean of what a ring owes, as a power of two
/// (w_q = 1/512; Floyd and Jacobson, 1993, section 6, advise 0.002).
pub const RED_WEIGHT_LOG2: u32 = 9;

/// Random early detection: the thresholds are this many of [`RED_PARTS`] parts of the ring. Below the
/// lower one nothing is refused, above the upper one everything. The upper is three times the lower
/// (Floyd, "RED: Discussions of Setting Parameters", 1997).
pub const RED_MIN_PARTS: u64 = 1;

/// See [`RED_MIN_PARTS`].
pub const RED_MAX_PARTS: u64 = 3;

/// See [`RED_MIN_PARTS`].
pub const RED_PARTS: u64 = 4;

/// Random early detection: just below the upper threshold, one packet in this many is marked to be
/// refused (1 / max_p; Floyd, 1997, advises 0.1).
pub const RED_ONE_IN: u64 = 10;

/// Packets of one order to a sink that lags. The rest follows after the others had their turn.
pub const ORDER_PACKETS_MAX: usize = 64;

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

/// What was offered to a link's buffer counts half after that: so its share of the service follows it.
pub const OFFERED_HALVED_AFTER: Duration = Duration::from_secs(10);

/// Flows of one medium are alike whose mean rates are within this factor of each other ...
pub const SIMILAR_RATES: u64 = 4;

/// ... and whose frames a second are within this one.
pub const SIMILAR_FRAME_RATES: u64 = 2;

/// Over how long that is measured: a few groups of pictures.
pub const SIMILAR_WINDOW: Duration = Duration::from_secs(5);

/// Groups of flows of one medium that are told apart. A flow that is like none of them stays where it is.
pub const SIMILAR_GROUPS_MAX: u32 = 8;

/// How often the rate of a link that follows its receivers may change.
pub const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// How long it holds what a receiver said that its way carries: five times the longest that is usual between two
/// reports (RFC 3550, section 6.2: 5 s).
pub const FOLLOW_LIMIT_HOLDS: Duration = Duration::from_secs(25);

/// Packets that receivers must have reported on before: a share of fewer is chance.
pub const FOLLOW_EXPECTED_MIN: u64 = 20;

/// How long a rendition is waited for when the first one has come. Then, with the next key frame, sinks that
/// want it are served by another one.
pub const RENDITION_AWAITED: Duration = Duration::from_secs(1);

/// Packets that wait, after a gap in what a replica was handed, until they show whether their frame
/// is a key frame, which its first few do. Beyond, they are lost like those before, and the next
/// frame may be one.
pub const GAP_HELD_PACKETS_MAX: usize = 64;

/// Lanes that an element works in at a time. A configuration with more is refused.
pub const LANES_MAX: usize = 16;

/// Elements of one stream. A plan with more is refused.
pub const ELEMENTS_MAX: usize = 256;

/// Declared branches of one stream. A plan with more is refused.
pub const BRANCHES_MAX: usize = 64;

/// Views of one stream that receivers may ask for at a time, those included whose last receiver has left
/// less than [`BRANCH_LINGER`] ago. Another one is refused: each is work, and memory.
pub const VIEWS_MAX: usize = 32;

/// One batch in this many is timed.
pub const SAMPLE_EVERY: u64 = 16;

/// Parts of a core in which budgets are counted.
pub const BUDGET_PARTS: u64 = 100_000;

/// A budget saves up what it brings in this part of a second, no more.
pub const BUDGET_BURST_PARTS: u64 = 10;

/// Packets that elements make lie in blocks of this many bytes, of which each is free again when the last
/// of its packets has gone out. A larger packet has a block of its own.
pub const POOL_BLOCK_BYTES: usize = 64 << 10;

/// Bytes of an uncompressed frame that is gathered: one of 8K with three bytes a pixel has 99.5
/// million. Larger ones can be worked on in fragments alone; those that another program writes are
/// dropped (`oversized`).
pub const FRAME_BYTES_MAX: usize = 128 << 20;

/// Packets of a codestream that are kept behind one that is missing. Those beyond are dropped.
pub const CODESTREAM_AHEAD_MAX: usize = 8192;

/// Packets that wait for services at most; with one more they are worked on at once.
pub const SERVICE_BATCH: usize = 64;

/// Packets that wait while services are put in place that run in several contexts. Beyond, they are
/// dropped for the services (`context-full`).
pub const SERVICE_HELD_MAX: usize = 8192;

/// Frames of a track whose verdict an element remembers. A packet of an older frame is judged again, and
/// what needs an older frame is not known to miss it; needs reach back 32 frames at most.
pub const REMEMBERED_VERDICTS: usize = 64;

/// Packets that an element holds back, or a link of each flow, until their frames show what they are. Beyond, they
/// are judged as what they are known to be.
pub const HELD_PACKETS_MAX: usize = 32;

/// Packets that a copy may come behind its original. A larger wish is refused.
pub const COPY_AFTER_MAX: u64 = 32;

/// RTP sources that an element tells apart where it removes copies, encrypts or decrypts. With one more,
/// the one that was silent for longest is forgotten.
pub const FLOWS_MAX: usize = 64;

/// Packets of a flow in a row that come too late to be told from copies, before the flow is taken to
/// have begun again.
pub const LATE_IN_A_ROW_MAX: u8 = 16;

/// How often the numbers of an encrypted source that one joins late may have begun again; its receiver
/// has to find out. Beyond, it is not found: that many packets take three days at 1000 packets a second.
pub const ROLLOVERS_MAX: u32 = 4096;

/// Rollovers that are tried with each packet of an encrypted source, until one is right.
pub const ROLLOVERS_AT_ONCE: u32 = 8;

/// Between two RTCP sender reports of a track (RFC 3550, section 6.2: 5 s minimum).
pub const SENDER_REPORT_EVERY: Duration = Duration::from_secs(5);

/// A foreign SSRC is taken over once the stream's own has been silent for this long.
pub const SSRC_SILENCE: Duration = Duration::from_millis(500);

/// Timestamps that are further apart are not those of the same source, whichever relay hands it on.
pub const SAME_CLOCK: Duration = Duration::from_secs(120);

/// Over how long bit rates are measured.
pub const RATE_WINDOW: Duration = Duration::from_secs(1);

/// What levels cost is measured in steps of that length ...
pub const RATE_TABLE_STEP: Duration = Duration::from_millis(500);

/// ... of which this many are kept, the one that goes on included: a group of pictures or two.
pub const RATE_TABLE_PARTS: usize = 9;

/// A receiver may ask for a level once in this time, ...
pub const LEVEL_REQUEST_EVERY: Duration = Duration::from_millis(100);

/// ... and for this many more at once. Beyond, requests are refused and counted.
pub const LEVEL_REQUESTS_BURST: u32 = 10;

/// A receiver that says what its way carries gets a better level only if that leaves this much room.
pub const LEVEL_HEADROOM_PERCENT: u64 = 10;

const _: () = assert!(REMEMBERED_VERDICTS > 32, "needs reach back 32 frames");
const _: () = assert!(TRACKS_MAX <= 32, "a TrackMask has 32 bits");
const _: () = assert!(CATCH_UP_BURST_BYTES < 208 << 10, "a burst must fit a default receive buffer");
const _: () =
    assert!(RED_MIN_PARTS < RED_MAX_PARTS && RED_MAX_PARTS <= RED_PARTS, "thresholds lie in a ring");
const _: () = assert!(RING_BYTES_MIN / RING_GIVE_UP_PARTS >= 2048, "a full ring must give up a packet");
