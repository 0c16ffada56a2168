//! Every limit of the control plane, with what happens when it is reached.

use core::time::Duration;

use outflow_engine::limits::{BEAT_EVERY, SNAPSHOT_EVERY};
use outflow_graph::limits::LONG_TURN;
use outflow_media::Backoff;

/// Packets between a publisher's connection and its worker. Beyond, the connection waits (TCP) or
/// the packet is dropped and counted (`ingest-full`).
pub const INGEST_QUEUE_PACKETS: usize = 4096;

/// What receivers say that a publisher's front has not taken. Beyond, it is left out: it is said again.
pub const FEEDBACK_MAX: usize = 4;

/// How long a worker goes on taking a stream's packets after the last receiver that it served has
/// left, before it lets them go.
pub const REPLICA_LINGER: Duration = Duration::from_secs(5);

/// A worker that has not said for so long that it goes on hangs: the relay says that it is not well, and systemd's
/// watchdog is left to bark.
pub const WORKER_LATE: Duration = Duration::from_secs(3);

/// The same of the control plane.
pub const CONTROL_LATE: Duration = Duration::from_secs(5);

const _: () = assert!(WORKER_LATE.as_millis() > 2 * BEAT_EVERY.as_millis(), "one that idles is not late");

/// How often it is looked at how much the relay has to do.
pub(crate) const OVERLOAD_LOOK: Duration = Duration::from_millis(250);

/// What is taken of a thing that the relay needs, in thousandths, from which on it sheds: what it does at each level,
/// [`Overload`](crate::Overload) says. It is to be so at two looks.
pub(crate) const OVERLOAD_FROM: [u64; 3] = [800, 900, 950];

/// The level is left when so much less is taken ...
pub(crate) const OVERLOAD_BACK: u64 = 50;

/// ... for so long.
pub(crate) const OVERLOAD_REST: Duration = Duration::from_secs(5);

/// The next level comes this long after the one before: what is done there is to have its time.
pub(crate) const OVERLOAD_RISE: Duration = Duration::from_secs(1);

/// A worker that has been at work this long without a pause, or a control plane that is this late, can do no more.
pub(crate) const LAG_MAX: Duration = Duration::from_secs(2);

/// How often receivers of the low class are ended, if they are ...
pub(crate) const SHED_EVERY: Duration = Duration::from_secs(1);

/// ... this part of them at a time, and one at least.
pub(crate) const SHED_PERCENT: usize = 5;

/// How often workers make snapshots that have too much to do, at least.
pub(crate) const SNAPSHOT_SELDOM: Duration = Duration::from_secs(5);

/// How often memory is given back that the allocator keeps, while there is little.
pub(crate) const GIVE_BACK_EVERY: Duration = Duration::from_secs(10);

/// How long a relay that ends waits for its threads. One that hangs is left behind, and said to be.
pub const END_WITHIN: Duration = Duration::from_secs(2);

/// How often it looks whether they have ended.
pub(crate) const END_LOOK: Duration = Duration::from_millis(1);

/// How long a source that is pulled, or a receiver that is connected to, is left alone after its first failure.
pub const RECONNECT_WAIT_MIN: Duration = Duration::from_secs(1);

/// How long it is left alone at most.
pub const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(30);

/// Waits until it is connected to again.
pub const RECONNECT_AGAIN: Backoff = Backoff::new(RECONNECT_WAIT_MIN, RECONNECT_WAIT_MAX);

/// A connection that held this long counts as good: its next failure is the first one again.
pub const RECONNECT_GOOD_AFTER: Duration = Duration::from_secs(60);

/// So long new services are watched. If they fail within that time, those before them are put back.
pub(crate) const TRIAL_TIME: Duration = Duration::from_secs(5);

/// How often they are looked at meanwhile.
pub(crate) const TRIAL_LOOK: Duration = Duration::from_millis(250);

const _: () = assert!(TRIAL_TIME.as_millis() > 2 * SNAPSHOT_EVERY.as_millis(), "a trial sees snapshots");

/// Services that name no context get one of their own when they take more than this share of a core ...
pub(crate) const OWN_CONTEXT_ABOVE_PERCENT: u64 = 30;

/// ... or hold their thread for longer than these milliseconds at a time, which receivers of all streams of the
/// worker wait for, ...
pub(crate) const OWN_CONTEXT_ABOVE_MS: u64 = 5;

/// ... for that long (or once for longer than [`LONG_TURN`]), ...
pub(crate) const OWN_CONTEXT_AFTER: Duration = Duration::from_secs(5);

/// ... and are back in the stream's worker when they take less than this ...
pub(crate) const OWN_CONTEXT_BELOW_PERCENT: u64 = 10;

/// ... or no longer at a time, but not before ...
pub(crate) const OWN_CONTEXT_BELOW_MS: u64 = 2;

/// ... so long has passed.
pub(crate) const OWN_CONTEXT_HOLD: Duration = Duration::from_secs(60);

const _: () = assert!(OWN_CONTEXT_BELOW_PERCENT < OWN_CONTEXT_ABOVE_PERCENT, "it must not swing");
const _: () = assert!(OWN_CONTEXT_BELOW_MS < OWN_CONTEXT_ABOVE_MS, "it must not swing");
const _: () = assert!((OWN_CONTEXT_ABOVE_MS as u128) < LONG_TURN.as_millis(), "a longer one sooner");

/// Events that are kept for followers that have not taken them. Beyond, these miss the oldest.
pub(crate) const EVENTS_KEPT: usize = 1024;

/// Decisions of rules that are kept to be looked at; older ones are in the log.
pub(crate) const DECISIONS_KEPT: usize = 200;

/// How long a configuration file has to be left alone before it is read: a program that writes it may be at it.
pub(crate) const FILE_STILL: Duration = Duration::from_millis(100);

/// How often one that is not is looked at ...
pub(crate) const FILE_LOOK: Duration = Duration::from_millis(25);

/// ... and how many times. Then it is refused, as is one that comes through a pipe and does not end by then.
pub(crate) const FILE_LOOKS: u32 = 80;

/// A reload that leaves fewer than one in this many streams is refused unless it says that it is meant ...
pub(crate) const STREAMS_LEFT_ONE_IN: usize = 2;

/// ... where there were at least this many.
pub(crate) const STREAMS_LEFT_OF: usize = 4;

/// Waits until what a reload could not do is tried again.
pub(crate) const RELOAD_AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Bytes of the session description of a source. A longer file is none.
pub(crate) const SDP_BYTES_MAX: u64 = 1 << 20;
