//! Every limit of the engine, with what happens when it is reached.

use core::time::Duration;

use outflow_socket::limits::GSO_BYTES_MAX;

/// Bytes of one receive slot. A datagram that is larger is copied once.
pub const SLOT_BYTES: usize = 2048;

/// Datagrams read by one system call.
pub const RECEIVE_BATCH: usize = 32;

/// The same from a socket that had fewer than this the last time.
pub const RECEIVE_FEW: usize = 8;

/// Bytes of a receive block; packets in the ring keep their block alive.
pub const BLOCK_BYTES: usize = 512 << 10;

/// The largest datagram, or the largest run of them that the kernel has put together.
pub const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Batches read from one source socket before the others have their turn.
pub const RECEIVE_ROUNDS: usize = 8;

/// Packets taken from one publisher's queue before the others have their turn.
pub const INGEST_ROUND_PACKETS: usize = 512;

/// Packets on their way from the worker that has a stream's source to another one that serves it, too.
/// Beyond, they are dropped there and counted (`hand-over-full`), and the receivers with that worker
/// go on at a key frame. Such a queue takes half a megabyte.
pub const HAND_OVER_PACKETS: usize = 4096;

/// How long a source's sender must be silent before packets from another address are taken.
pub const SENDER_SILENCE: Duration = Duration::from_millis(500);

/// How long one task may take before the next of its class has its turn, and tasks are done at all
/// before the worker looks for new packets: a higher class waits no longer than about that.
pub const WORK_ROUND: Duration = Duration::from_micros(200);

/// Where a higher class is served by the same worker, lower ones do one in this many parts of what they
/// otherwise would before they look for it: rounds, orders and reading. What comes for the higher class
/// then waits about 25 us, not 200; each look costs about a microsecond.
pub const PARTS_BELOW: u32 = 8;

/// Packets that a link lets go are sent together if they are due within that time: waking up for each would
/// cost more than they do.
pub const LINK_WAKE: Duration = Duration::from_millis(1);

/// A link that is asked this late makes up for it; one that sleeps longer loses the time, so that no burst
/// is larger than what goes in it.
pub const LINK_SLACK: Duration = Duration::from_millis(2);

/// Packets that a link lets go at once; then others have their turn.
pub const LINK_BATCH: usize = 256;

/// Sinks of one order that the relay's own system calls carry out: together about a
/// [`WORK_ROUND`], at 3 us a datagram and 6 us a write.
pub const ORDER_SINKS: outflow_relay::Room = outflow_relay::Room { datagram: 64, stream: 32 };

/// Sinks of one order that goes through the kernel's classifier: about a [`WORK_ROUND`], too.
pub const TC_ORDER_SINKS: usize = 512;

/// Sinks of one order that goes as frames, which cost a fifth, and ten microseconds an order.
pub const XDP_ORDER_SINKS: usize = 2048;

/// From how many UDP receivers on the kernel's fan-out is worth its call.
pub const KERNEL_SINKS_MIN: usize = 8;

/// From how many on frames are worth the longer call that sends them.
pub const XDP_SINKS_MIN: usize = 32;

/// This many equal packets go through the classifier together more cheaply than as frames: a clone of
/// all of them costs about as much as of one, which is as much as five frames (labs/fanout).
pub const GATHERED_BY_TC: usize = 5;

/// Entries of a worker's table of receivers, at most (88 bytes each). A receiver without a place is served by
/// the relay's own system calls.
pub const KERNEL_TARGETS_MAX: usize = 1 << 18;

/// How often neighbours and routes are kept fresh.
pub const ROUTES_REFRESH: Duration = Duration::from_millis(500);

/// How often routes that no receiver needs any more are looked for.
pub const ROUTES_TIDY: Duration = Duration::from_secs(30);

/// Messages given to the kernel by one system call.
pub const SEND_BATCH: usize = 256;

/// Receivers of one order from which on one batch is cheaper than a write each.
pub const URING_SINKS_MIN: usize = 2;

/// Distinct framings of one order that are put together for the ring. Receivers with further ones
/// get a write each.
pub const FRAMINGS_MAX: usize = 16;

/// Receivers of one order from which on its bytes are put together before they are sent by
/// `sendmmsg`: 20 % cheaper for ten packets to a thousand receivers.
pub const GATHERED_SINKS_MIN: usize = 8;

/// Receivers of one order from which on sockets of their own pay (7 % at 8 receivers); below,
/// `sendmmsg` does as well.
pub const CONNECTED_SINKS_MIN: usize = 8;

/// Sends from sockets of their own that go in one batch; further receivers are in the next.
pub const CONNECTED_BATCH: usize = 256;

/// Sockets of their own that receivers get while one order is carried out: 20 to 50 us each. The
/// others get theirs with the next orders.
pub const CONNECTED_PER_ORDER: usize = 4;

/// Sockets of their own that a worker's receivers get beside its RTP ports; further receivers are
/// served by `sendmmsg`. The kernel searches all sockets of a port to make one more, and for each
/// stray packet that comes in there; and with some thousand in use, what they win is lost again
/// to the processor's caches.
pub const CONNECTED_AT_SHARED_PORTS_MAX: usize = 2048;

/// The part of the process's descriptors that these sockets may take, one in this many. Receivers
/// that find none are served by `sendmmsg`.
pub const CONNECTED_SHARE: u64 = 2;

/// Orders that a receiver is served without such a socket after its own has failed.
pub const CONNECTED_PAUSE_ORDERS: u16 = 1000;

/// Bytes of an order from which on TCP sends them without a copy; below, keeping the pages costs
/// more than copying.
pub const ZERO_COPY_BYTES_MIN: usize = 16 << 10;

/// Receive buffer that is asked of the kernel for source sockets.
pub const SOURCE_BUFFER_BYTES: usize = 8 << 20;

/// The same for sockets of RTCP: some hundred reports. What floods them is lost before it holds the worker up.
pub const REPORTS_BUFFER_BYTES: usize = 256 << 10;

/// Send buffer that is asked of the kernel for UDP sockets that serve receivers.
pub const UDP_SEND_BUFFER_BYTES: usize = 8 << 20;

/// Send buffer of a receiver's TCP connection. What a dead receiver holds in the kernel is at
/// most twice that (the kernel doubles it); what it lags beyond, it lags in the ring.
pub const TCP_SEND_BUFFER_BYTES: usize = 128 << 10;

/// Bytes that wait in user space for a receiver's connection besides ring packets: the rest of a
/// packet, responses, reports. A connection with more is ended.
pub const UNSENT_BYTES_MAX: usize = 64 << 10;

/// Events taken from the kernel at once.
pub const EVENTS: usize = 256;

/// A worker that looks for packets instead of sleeping lost its core to others for longer than that:
/// from now on it sleeps when it has nothing to do, for [`POLL_REST`]. A thread that sleeps goes first when
/// packets come; one that does not sleep waits for its turn.
pub const POLL_GAP: Duration = Duration::from_micros(500);

/// See [`POLL_GAP`].
pub const POLL_REST: Duration = Duration::from_secs(1);

/// How often a worker says that it goes on, at least, though it has nothing to do.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);

/// After which time what another process goes on with is let go here, too: to close thousands of sockets takes time
/// that the other one needs first.
pub const LETS_GO_AFTER: Duration = Duration::from_millis(300);

/// How long a worker takes at most to finish what has come, when it is to stand still for an upgrade. One that has more
/// to do is not handed over.
pub const FINISH_WITHIN: Duration = Duration::from_millis(100);

/// How often snapshots are made, at least.
pub const SNAPSHOT_EVERY: Duration = Duration::from_millis(500);

/// With many receivers snapshots are made more seldom: so much time for each. A receiver takes about
/// a microsecond, so that is one percent of a core.
pub const SNAPSHOT_EVERY_RECEIVER: Duration = Duration::from_micros(100);

/// A snapshot that is this late because of other work goes before it: an overloaded relay has to be seen
/// to be overloaded.
pub const SNAPSHOT_LATE: Duration = Duration::from_millis(500);

/// Commands that a worker carries out before it looks at packets again, if they take less than a
/// [`WORK_ROUND`]. The rest follow in the next rounds.
pub const COMMANDS_A_ROUND: usize = 256;

/// Bytes of an RTCP packet of a receiver: a datagram of the usual networks. A longer one is not read, and
/// counted (`rtcp-size`).
pub const RTCP_BYTES_MAX: usize = 1500;

/// RTCP packets that are read of a receiver in a second ...
pub const RTCP_PER_SECOND: u64 = 50;

/// ... and at once; further ones are counted (`rtcp-rate`). Early feedback of a player (RFC 4585) stays below that.
pub const RTCP_BURST: u64 = 100;

/// RTCP packets of a receiver that wait for its worker. Further ones are dropped and counted (`rtcp-full`).
pub const RTCP_WAITING_MAX: u8 = 4;

/// How long the source of a receiver's reports by UDP has to be silent before another one is taken for the receiver's.
/// Reports come every five seconds (RFC 3550, section 6.2). Until then those of others are counted (`foreign-report`).
pub const REPORTER_SILENCE: Duration = Duration::from_secs(15);

/// Reports, and requests for a key frame, that are looked at in one RTCP packet: both of each track. Further ones
/// are counted (`rtcp-parts`).
pub const RTCP_REPORTS_MAX: usize = 2 * outflow_packet::limits::TRACKS_MAX;

/// Requests for a level, or a rate, that are taken of one RTCP packet. Further ones are counted (`rtcp-parts`).
pub const RTCP_REQUESTS_MAX: usize = 4;

/// RTCP packets that a worker reads from its port before it looks at packets again.
pub const RTCP_ROUND: usize = 128;

/// Receivers that are sent their RTCP sender reports before other tasks have their turn.
pub const REPORT_STEP: usize = 64;

/// Receivers that a snapshot takes in before other tasks have their turn.
pub const SNAPSHOT_STEP: usize = 64;

/// What receivers have reported is shown this long: they report every five seconds or more often (RFC 3550,
/// section 6.2).
pub const REPORTED_SHOWN: Duration = Duration::from_secs(10);

/// How long a peer may leave data unacknowledged, or not take it, before the TCP stack gives it up.
/// A receiver's media are an exception: `hopeless_after` judges there.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a block in which packets are put together for receivers that keep them until they have come. A longer
/// packet has a block of its own.
pub const PEER_BLOCK_BYTES: usize = 64 << 10;

/// Bytes of packets that the peers of a worker were given and that they may send once more. Beyond, the oldest cannot be
/// sent again: it is five seconds of 100 Mbit/s.
pub const RECENT_BYTES_MAX: usize = 64 << 20;

/// The same of packets.
pub const RECENT_MAX: usize = 1 << 17;

/// Packets of which it is known where they are among these: one that is given to several receivers, one after the other,
/// as those that catch up are, stands there once.
pub const RECENT_KNOWN: usize = 1 << 12;

/// How long packets stay there, once they were given.
pub const RECENT_FOR: Duration = Duration::from_secs(1);

/// Parcels of datagrams from such receivers that wait for a worker, of 64 datagrams at most. What finds no room is
/// dropped and counted at the socket (`unread`), as if the network had lost it.
pub const PEER_PARCELS_MAX: usize = 256;

/// Addresses of the machine from which RTP is sent though the system would choose others, a worker. A
/// receiver that asks at a further one is sent to from what the system chooses, with a warning.
pub const NEAR_PORTS_MAX: usize = 64;

const _: () = assert!(
    2 * outflow_context::limits::CONTEXT_SHOWN.as_millis() <= SNAPSHOT_EVERY.as_millis(),
    "each snapshot has something new of contexts"
);
const _: () = assert!(RECEIVE_BATCH * SLOT_BYTES <= BLOCK_BYTES, "a batch must fit a block");
const _: () = assert!(GSO_BYTES_MAX < DATAGRAM_BYTES_MAX, "a segmented send is one datagram to the stack");

/// The turn on a processor that a worker asks for: the shortest that Linux gives.
pub const WORKER_TURN: Duration = Duration::from_micros(100);
