//! Ports, times and limits of relays of a tree, with what happens when they are reached: times as live
//! (`front/tree/src/limits.rs`).

use core::ops::RangeInclusive;
use core::time::Duration;

/// The port at which relays and the directory are talked to.
pub(super) const CONTROL: u16 = 4433;

/// The port from which media goes.
pub(super) const MEDIA: u16 = 5004;

/// The ports at which media comes, one for each turn of a parent: what a parent sent in a turn before is told by that.
pub(super) const TURNS: RangeInclusive<u16> = 16_384..=32_767;

/// A relay that has nothing else to say says that it is there.
pub(super) const ALIVE_EVERY: Duration = Duration::from_millis(100);

/// A relay that says nothing for so long is taken for lost.
pub(super) const SILENCE: Duration = Duration::from_millis(450);

/// How long a relay may take to answer at first. A relay that does not answer by then is lost.
pub(super) const CONNECT: Duration = Duration::from_millis(1_500);

/// A relay to which nothing was said but that this one is there is not talked to any more after so long, unless it is
/// a parent or a child.
pub(super) const IDLE: Duration = Duration::from_secs(5);

/// How often a parent is asked to begin before another is looked for, and the wait between.
pub(super) const TRIES: u32 = 5;
/// See [`TRIES`].
pub(super) const TRY_AGAIN: Duration = Duration::from_millis(100);

/// How long packets of a new parent may be older than what was handed on, before they are handed on all the same.
pub(super) const JOINT_WAIT: Duration = Duration::from_secs(2);

/// How long what a relay sends is handed on that is the parent no more, until another one takes its place.
pub(super) const LEFT: Duration = Duration::from_secs(10);

/// Receivers that get nothing for longer are in the dark.
pub(super) const DARK: Duration = Duration::from_millis(500);

/// The size of the stream's ring.
pub(super) const RING_BYTES: usize = 8_000_000;

/// Entries in a datagram of the directory, which is to fit into a packet of 1500 bytes. Others go in further ones.
pub(super) const OFFERS_MAX: usize = 6;
