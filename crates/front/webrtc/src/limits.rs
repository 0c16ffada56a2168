//! Limits of WebRTC, with what happens when they are reached.

use core::time::Duration;

/// Bytes of a file with a certificate and its key. A longer one is none.
pub(crate) const IDENTITY_BYTES_MAX: u64 = 64 << 10;

/// Addresses of the relay's own that a peer is told, of those that its interfaces have; the others it is not told.
pub(crate) const CANDIDATES_MAX: usize = 8;

/// Bytes of a datagram. A longer one is left out, and counted: no peer sends such.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 2048;

/// Batches of datagrams that are read before others have their turn.
pub(crate) const BATCHES_A_TURN: usize = 8;

/// Words of peers to the task that reads their socket which wait for it. One that finds no room is lost: the peer is
/// found by the name in its next check.
pub(crate) const NEWS_MAX: usize = 4096;

/// Addresses that datagrams of one peer come from. Those of one more are found by the name in its checks alone.
pub(crate) const PLACES_MAX: usize = outflow_ice::limits::PATHS_MAX + 2;

/// Viewers that have got an answer and have not come yet. A further one is answered with 503. Each comes within
/// [`CONSENT`](outflow_ice::limits::CONSENT), or is over.
pub(crate) const COMING_MAX: usize = 10_000;

/// The same of one host (of IPv6, a network of 64 bits).
pub(crate) const COMING_OF_HOST_MAX: usize = 250;

/// Connections of peers by TCP. A further one is closed at once. Each takes two descriptors, and some kilobytes beside the
/// buffers of its sockets.
pub(crate) const TCP_MAX: usize = 8_000;

/// The same of one host (of IPv6, a network of 64 bits): all viewers of a network without UDP may come from one address. A
/// browser begins one for each address that it was told, and keeps one.
pub(crate) const TCP_OF_HOST_MAX: usize = 1_000;

/// A connection by TCP that has not begun with a check, and got an answer to it, within this time is closed.
pub(crate) const TCP_BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// One whose peer says nothing for so long, or the relay nothing to it, is closed: a session has ended by then.
pub(crate) const TCP_SILENT_MAX: Duration = outflow_ice::limits::CONSENT;

/// Bytes that are read of a connection by TCP, or written to it, at once; then others have their turn.
pub(crate) const TCP_TURN_BYTES: usize = 16 << 10;

/// What is asked for as the send buffer of a connection by TCP, of which the kernel gives twice as much, for its own use,
/// too. What waits in it is late: 128 KiB are half a second of 2 Mbit/s, and carry 10 Mbit/s to a peer that is 100 ms away.
/// A datagram that finds no room is dropped, and counted.
pub(crate) const TCP_SEND_BUFFER_BYTES: usize = 64 << 10;

/// How long it is known of a packet what it was made of, so that it can be sent once more: as long as its bytes are there.
pub(crate) const KEPT_FOR: Duration = outflow_engine::limits::RECENT_FOR;

/// Packets of a track of which that is known; then it is not of the oldest.
pub(crate) const KEPT_MAX: usize = 1024;

/// Places for them at first: sound needs no more.
pub(crate) const KEPT_AT_FIRST: usize = 64;

/// Packets of a track of which it is known that they were sent once more; the oldest of more may be sent again.
pub(crate) const REPEATED_MAX: usize = 64;

/// A packet is sent once more no sooner than this after the last time: both may still be on their way.
pub(crate) const REPEAT_AFTER: Duration = Duration::from_millis(20);

/// What a viewer is sent a second, in bits, while it catches up with the newest packet, and of packets that are sent once
/// more: this, or as many times what the stream has a second, if that is more.
pub(crate) const CATCH_UP_BPS: u64 = 10_000_000;

/// See [`CATCH_UP_BPS`].
pub(crate) const CATCH_UP_TIMES: u64 = 2;

/// Where the way carries less than that, it is what the way carries; but beside the stream there is always room for this
/// share of it, for what is sent once more.
pub(crate) const REPAIRS_PERCENT: u64 = 10;

/// What the stream has a second is measured for this long, again and again.
pub(crate) const MEASURED_AFTER: Duration = Duration::from_millis(500);

/// Bytes that go at once while it does.
pub(crate) const CATCH_UP_BURST: u64 = 32 << 10;

/// A packet that came to the relay within this time is not held back: the viewer is up.
pub(crate) const LIVE: Duration = Duration::from_millis(60);

/// How often a stream is told what the way of a viewer carries ...
pub(crate) const ESTIMATE_EVERY: Duration = Duration::from_millis(250);

/// ... or after this time, where it is less than this share of what was told.
pub(crate) const ESTIMATE_SOONEST: Duration = Duration::from_millis(100);

/// See [`ESTIMATE_SOONEST`].
pub(crate) const ESTIMATE_FALLS_PERCENT: u64 = 85;

/// ... or at once, where it is less than this share.
pub(crate) const ESTIMATE_BREAKS_PERCENT: u64 = 60;

/// A way is probed for up to this share of the most that the viewer was ever sent: a better level has to leave some room.
pub(crate) const PROBE_WANTED_PERCENT: u64 = 130;

/// How long a probe takes, ...
pub(crate) const PROBE_FOR: Duration = Duration::from_millis(20);

/// ... in this many packets at least, ...
pub(crate) const PROBE_PACKETS_LEAST: u64 = 12;

/// ... and at most.
pub(crate) const PROBE_PACKETS_MAX: u64 = 100;

/// More is told to a stream than a way has carried so far only once a trial has shown it: so much is sent for this time.
pub(crate) const TRIAL_FOR: Duration = Duration::from_millis(500);

/// How often packets of a trial go.
pub(crate) const TRIAL_STEP: Duration = Duration::from_millis(5);

/// It is judged this long after its last packet, once the viewer has said what came.
pub(crate) const TRIAL_JUDGED_AFTER: Duration = Duration::from_millis(250);

/// It fails where the estimate falls below this share of what is tried.
pub(crate) const TRIAL_FAILS_PERCENT: u64 = 95;

/// And it fails where no more than this share of what is tried gets through.
pub(crate) const TRIAL_COMES_PERCENT: u64 = 90;

/// What is gained has to be worth it: what was carried so far is less than this share of what is tried.
pub(crate) const TRIAL_GAINS_PERCENT: u64 = 90;

/// The next one is begun this long after one that failed, then twice as long ...
pub(crate) const TRIAL_AFTER: Duration = Duration::from_secs(5);

/// ... up to this.
pub(crate) const TRIAL_AFTER_MAX: Duration = Duration::from_secs(20);

/// Probes and trials are packets that were sent before, the largest of this many.
pub(crate) const PROBE_CHOICE: usize = 16;

/// Pictures are left out once packets have waited for this long at least, or wait longer and longer ...
pub(crate) const THIN_STANDS: Duration = Duration::from_millis(100);

/// ... until the stream has less than this share of what the way carries.
pub(crate) const THIN_BELOW_PERCENT: u64 = 95;

/// While a queue stands, this share of what gets through is sent, so that it goes.
pub(crate) const THIN_DRAINS_PERCENT: u64 = 85;

/// A picture that others need goes if it came to the relay within this time ...
pub(crate) const THIN_NEEDED_AGE: Duration = Duration::from_millis(400);

/// ... and one that none needs, within this.
pub(crate) const THIN_SPARE_AGE: Duration = Duration::from_millis(150);

/// Bytes that go at once to a viewer whose way carries less than the stream has.
pub(crate) const HELD_BURST: u64 = 5_000;

/// Bytes of the lowest layer that such a viewer lacks go at once, as long as no more than this is owed by what is new.
pub(crate) const HELD_REPAIRS: i64 = 8_000;

/// A key frame for a viewer that pictures were left out for is asked for no more often: all others get it, too.
pub(crate) const THIN_KEY_EVERY: Duration = Duration::from_secs(3);

/// What gets through is measured over this time.
pub(crate) const THROUGH_OVER: Duration = Duration::from_millis(500);

/// The picture of a viewer that is so far away, there and back, is covered by repair packets if something is lost: a packet
/// that is sent once more comes this much after its turn, and some 20 ms, until the next packet shows that it is lacking. A
/// browser's picture waits for that up to 200 ms, not longer (libwebrtc: `rtt_mult_add_cap_ms` of its jitter buffer).
pub(crate) const FEC_ROUND_TRIP: Duration = Duration::from_millis(180);

/// The round trip is the shortest one of this time, or of twice it: it has in it what the viewer waits to tell of packets.
pub(crate) const FEC_ROUND_TRIP_OVER_MS: u64 = 2_000;

/// Packets of a thousand that have to be lost for that.
pub(crate) const FEC_LOSES_PERMILLE: u32 = 5;

/// It ends at this share of the round trip, and of what has to be lost.
pub(crate) const FEC_STAYS_PERCENT: u32 = 80;

/// What is lost is known of this number of packets at least ...
pub(crate) const FEC_TOLD_LEAST: u32 = 100;

/// ... and of these at most: then each counts half as much.
pub(crate) const FEC_LOST_OF: u32 = 1000;

/// Repair packets have this many times the share of bytes that is lost of the picture ...
pub(crate) const FEC_TIMES_LOST: u32 = 2;

/// ... and this many of a thousand bytes more, as losses are not spread evenly, ...
pub(crate) const FEC_LITTLE_PERMILLE: u32 = 20;

/// ... but no more than these: one for three.
pub(crate) const FEC_PERMILLE_MAX: u32 = 334;

/// Bytes that repair packets may have, where few were wanted; what is not spent beyond is lost.
pub(crate) const FEC_CREDIT_BYTES: i64 = 3_000;

/// Bytes that those of a key frame may have ahead.
pub(crate) const FEC_KEY_DEBT_BYTES: i64 = 6_000;

/// Packets of RTCP a second that are read of a viewer; others are passed over.
pub(crate) const RTCP_PER_SECOND: u64 = 100;

/// And how many at once.
pub(crate) const RTCP_BURST: u64 = 100;

/// Bytes of a payload, beyond which it goes as two. One that cannot be split is not sent.
pub(crate) const PAYLOAD_BYTES_MAX: usize = outflow_rtp::limits::PAYLOAD_BYTES_MAX;

/// Bytes of a dependency descriptor that find room beside that: one with the structure of three spatial and three temporal
/// layers has 64. A longer one takes room from the payload.
pub(crate) const DESCRIPTOR_BYTES_SPARE: usize = 100;

/// A key frame whose number is higher by more than this is of another numbering: its number at a viewer is the next one.
pub(crate) const FRAMES_GAP_MAX: i16 = 2048;

/// Names by which checks are for one peer: the newest, and the one before, until it uses that.
pub(crate) const NAMES_MAX: usize = 2;

/// Packets that wait to be sealed for a viewer; then the stream waits.
pub(crate) const UNSENT_MAX: usize = 256;

/// Places for them that a viewer keeps that has nothing to send.
pub(crate) const UNSENT_USUAL: usize = 32;

/// What the relay has to say to a viewer that waits to be sent, beside packets; what finds no room is lost.
pub(crate) const REPLIES_MAX: usize = 64;

/// Packets of RTCP of a viewer that wait to be read; what finds no room is lost.
pub(crate) const EVENTS_MAX: usize = 32;

/// A packet of a publisher counts as missing, and is asked for, if it has not come this long after one behind it.
pub(crate) const ASK_AFTER: Duration = Duration::from_millis(10);

/// It is asked for again after this time ...
pub(crate) const ASK_AGAIN: Duration = Duration::from_millis(50);

/// ... this many times in all.
pub(crate) const ASK_TIMES: u8 = 8;

/// Packets of a track that are asked for at once; then the oldest are not any more.
pub(crate) const MISSING_MAX: usize = 256;

/// Which of a publisher's layers is the best is taken for known this long after its first packet, even if only one has
/// come ...
pub(crate) const LAYERS_SHOWN_AFTER: Duration = Duration::from_millis(500);

/// ... or when this many packets wait for that.
pub(crate) const LAYERS_HELD_MAX: usize = 2048;

/// How often a publisher is told what has come.
pub(crate) const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Parcels of datagrams of a publisher that wait for its task. What finds no room is lost, and asked for again.
pub(crate) const PARCELS_MAX: usize = 64;
