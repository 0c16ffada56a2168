//! Times and limits of trees, with what happens when they are reached.

use core::time::Duration;

use outflow_media::Backoff;

/// How often a source says that it is there. The beat goes down the tree from relay to relay: two messages a
/// stream, relay and second. By the next one every relay knows which relay is not below which.
pub const BEAT: Duration = Duration::from_millis(500);

/// Without a beat for so long, the way up is broken somewhere, though the parent may be there: the relay
/// looks for another, and is none for others.
pub const DRY: Duration = Duration::from_millis(1250);

/// Without an answer for so long, another candidate is asked, too.
pub const ASK_WAIT: Duration = Duration::from_millis(150);

/// Without an answer for so long, a candidate is given up.
pub const ASK_LIFE: Duration = Duration::from_millis(1500);

/// Candidates that are asked at the same time. A further one is asked when one of them has answered.
pub const ASKS_MAX: usize = 3;

/// How long a relay without a parent keeps its children, while those it may take do not answer: longer than the
/// next beat takes to come to others. Then it lets them go, and may take any relay.
pub const PATIENCE: Duration = Duration::from_millis(600);

/// How often a child says again what it wants, and how long a parent serves one that does not.
pub const RENEW: Duration = Duration::from_secs(4);
/// See [`RENEW`].
pub const CHILD_LIFE: Duration = Duration::from_secs(13);

/// How often a relay looks for a better parent.
pub const REVIEW: Duration = Duration::from_secs(20);

/// How long a candidate that was lost, one that is full and one without the stream are not asked again; up to
/// 16 times as long if it refuses again and again.
pub const LOST_REST: Duration = Duration::from_secs(3);
/// See [`LOST_REST`].
pub const FULL_REST: Duration = Duration::from_secs(2);
/// See [`LOST_REST`].
pub const NO_PATH_REST: Duration = Duration::from_millis(500);

/// For how long a candidate that agreed and did not send the stream comes after all others, and is asked only where
/// there is no other. Meanwhile it rests as one that was lost, up to 16 times as long.
pub const FAILED_MEMORY: Duration = Duration::from_secs(300);

/// How long a candidate is not asked again that would have been the parent and could not be taken, because its
/// path never was smaller.
pub const IN_VAIN_REST: Duration = Duration::from_secs(60);

/// Waits between two questions to the directory by a relay that finds no parent.
pub const LOOKUPS: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(8));

/// What a relay says to the directory is said again so often, changes at most so often, and is to be
/// forgotten after so long.
pub const REGISTER_AGAIN: Duration = Duration::from_secs(10);
/// See [`REGISTER_AGAIN`].
pub const REGISTER_LEAST: Duration = Duration::from_secs(1);
/// See [`REGISTER_AGAIN`].
pub const ENTRY_LIFE: Duration = Duration::from_secs(30);

/// Possible parents that are remembered of a stream. The worst makes room for a better one.
pub const CANDIDATES_MAX: usize = 16;

/// Candidates that are remembered for nothing but that they are not to be asked now. Of a further one, the one
/// that may be asked first is forgotten, and may be asked too early.
pub const RESTING_MAX: usize = 64;

/// Others that a message names at the most. Those that are named beyond are not read.
pub const OTHERS_MAX: usize = 6;

/// Beats between two that name others.
pub const OTHERS_EVERY: u64 = 16;

const _: () = assert!(PATIENCE.as_millis() > BEAT.as_millis() && DRY.as_millis() > 2 * BEAT.as_millis());

/// How deep a tree is at the most. A relay that would be deeper is refused.
pub const DEPTH_MAX: u16 = 64;

/// Streams of a node. A further one is not handled, and counted: a child gets no answer and asks
/// another, a receiver waits in vain.
pub const STREAMS_MAX: usize = 1 << 16;
