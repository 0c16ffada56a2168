//! Times and limits of what relays of a tree say to each other, with what happens when they are reached.

use core::ops::RangeInclusive;
use core::time::Duration;

use outflow_media::Backoff;

/// A relay that has nothing else to say says that it is there.
pub(super) const ALIVE_EVERY: Duration = Duration::from_millis(100);

/// A relay that says nothing for so long is taken for lost; a busy machine may be silent for a moment.
pub(super) const SILENCE: Duration = Duration::from_millis(450);

/// How long it may take to reach another relay. A relay that does not answer by then is lost.
pub(super) const CONNECT: Duration = Duration::from_millis(1_500);

/// A connection over which nothing was said but that both are there is closed after so long, unless it is to a
/// configured parent.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// Longest wait before a configured parent is tried again.
pub(super) const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(5);

/// Waits before it is tried again.
pub(super) const RECONNECT: Backoff = Backoff::new(Duration::from_millis(200), RECONNECT_WAIT_MAX);

/// Bytes of what is said at once. A relay that says more is a stranger, and the connection is closed.
pub(super) const SAID_BYTES_MAX: usize = 1 << 20;

/// Bytes that are put together, where several things are to be said.
pub(super) const BATCH_BYTES: usize = 16 << 10;

/// What waits to be said to one relay. A relay that reads so slowly is lost.
pub(super) const UNSAID_MAX: usize = 4096;

/// Connections with other relays. A further one is closed at once.
pub(super) const LINKS_MAX: usize = 4096;

/// What others and own tasks tell waits for the driver; they wait in turn.
pub(super) const INPUTS_MAX: usize = 1024;

/// How long a receiver that asks for a stream waits for it to come.
pub(super) const REACH: Duration = Duration::from_secs(5);

/// The same of another relay that asks which relays have a stream.
pub(super) const FETCH: Duration = Duration::from_millis(1_400);

/// How long a stream is kept for a receiver that waited for it, to join.
pub(super) const REACHED: Duration = Duration::from_secs(2);

/// How long another relay may take to say which relays have a stream.
pub(super) const LOOKUP: Duration = Duration::from_millis(1_500);

/// Callers that wait for a stream. A further one is told that there is none.
pub(super) const WAITING_MAX: usize = 4096;

/// Names of streams that are remembered. Of others nothing is understood.
pub(super) const NAMES_MAX: usize = 1 << 16;

/// Streams that are not configured and that a receiver asked for. A further one is not fetched.
pub(super) const ADOPTED_MAX: usize = 4096;

/// How long such a stream stays without receivers.
pub(super) const ADOPTED_LINGER: Duration = Duration::from_secs(5);

/// How long a feed stays that nothing here wants.
pub(super) const UNWANTED_LINGER: Duration = Duration::from_secs(5);

/// How often what is no longer needed is looked for.
pub(super) const SWEEP: Duration = Duration::from_secs(1);

/// How often it is tried to take a stream of a parent before another is looked for, and the wait between.
pub(super) const TRIES: u32 = 3;
/// See [`TRIES`].
pub(super) const TRY_AGAIN: Duration = Duration::from_millis(100);

/// How long what a relay sends is passed on that is the parent no more, until another one takes its place.
pub(super) const LEFT: Duration = Duration::from_secs(10);

/// One that has sent nothing for so long is not waited for when another one begins.
pub(super) const LEFT_QUIET: Duration = Duration::from_millis(100);

/// How long to wait for a parent to say how many levels a stream has, if its description did not, before packets of
/// fewer are passed on, and how many packets meanwhile.
pub(super) const LEVELS_WAIT: Duration = Duration::from_millis(200);
/// See [`LEVELS_WAIT`].
pub(super) const LEVELS_PACKETS: usize = 4096;

/// How long a relay may take to show its part of the tree, and how many are asked.
pub(super) const VIEW: Duration = Duration::from_secs(1);
/// See [`VIEW`].
pub(super) const VIEW_RELAYS_MAX: usize = 4096;
/// Relays that are asked for their part at the same time.
pub(super) const VIEW_AT_ONCE: usize = 64;

/// A group that is silent for so long, and for several times as long as ever lately: it is asked by unicast whether
/// there is something.
pub(super) const GROUP_QUIET: Duration = Duration::from_millis(400);

/// For how long packets may come by unicast alone before they are taken for what a group should have brought.
pub(super) const GROUP_GRACE: Duration = Duration::from_millis(300);

/// How long the newest packet of each track is waited for by the group before it goes on without.
pub(super) const GROUP_MEET: Duration = Duration::from_millis(300);

/// How long a group may bring nothing after it was joined, or nothing that fits, while unicast does.
pub(super) const GROUP_WAIT: Duration = Duration::from_secs(3);

/// Waits until a group that brought nothing is joined again.
pub(super) const GROUP_AGAIN: Backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(300));

/// Packets of a track that are remembered, to be found again where another way takes over.
pub(super) const GROUP_KNOWN_MAX: usize = 4096;

/// Packets of the other way that are held until it takes over. Of more, the oldest are dropped: they would come
/// too late.
pub(super) const GROUP_HELD_MAX: usize = 16_384;

/// Packets of each track by which another parent's are known again. Where more was published since a new parent's
/// packets began to come, they go on from what is left.
pub(super) const KNOWN_MAX: usize = 256;

/// Packets of a new parent that wait until it is known whether they were published already. Beyond, those of RTP that
/// are too old are dropped, and datagrams of a transport stream are those of another.
pub(super) const PENDING_MAX: usize = 4096;

/// How long that may last. What comes then is published, as that of another stream if nothing was known again.
pub(super) const JOINT_WAIT: Duration = Duration::from_millis(300);
/// The same of RTP, where timestamps say that it is older than what was published.
pub(super) const JOINT_WAIT_RTP: Duration = Duration::from_secs(2);

/// Other relays that are served.
pub(crate) const CHILDREN: RangeInclusive<usize> = 0..=100_000;
