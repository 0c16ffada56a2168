//! Every limit of the directory, with what happens when it is reached.

use std::time::Duration;

use outflow_media::Backoff;

/// Bytes of a stream's name. An entry with a longer one is not said, and not read.
pub const NAME_BYTES_MAX: usize = 255;

/// Bytes of a text in a relay's record: its name, its version, an address.
pub const TEXT_BYTES_MAX: usize = 255;

/// Bytes of a file of credentials or certificates. A longer one is none.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of an entry as JSON. Longer ones are not read, and counted.
pub const ENTRY_BYTES_MAX: usize = 2048;

/// Bytes of a relay's record as JSON. Of one that would be longer, streams are left out at the end.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

/// Bytes of any message in the bucket, with its headers. The server refuses a longer one.
pub(crate) const MESSAGE_BYTES_MAX: i32 = 65 << 10;

/// Addresses in a relay's record. Further ones are left out.
pub const RECORD_ADDRESSES_MAX: usize = 16;

/// Keys that a relay has in the directory. What it says of further streams is not said, and counted.
pub const OWN_MAX: usize = 1 << 16;

/// Values that were sent to NATS and are not answered yet. Further ones wait.
pub(crate) const IN_FLIGHT_MAX: usize = 256;

/// Without an answer to a value for so long, NATS is away.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// A connection that is not made in so long is given up, and the next server is asked.
pub(crate) const CONNECT_WAIT: Duration = Duration::from_secs(4);

/// How often a silent server is asked whether it is there. After the third time without an answer, it is away.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(4);

/// Waits between two attempts to reach NATS, from the shortest to the longest.
pub(crate) const REACH_AGAIN: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(8));

/// A connection that lasted so long was a good one: the wait begins with the shortest again.
pub(crate) const GOOD_FOR: Duration = Duration::from_secs(10);

/// How long a relay that leaves waits until NATS knows. What it does not know by then expires.
pub const LEAVE_WAIT: Duration = Duration::from_secs(1);

/// How often expired entries are looked for.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long a lookup waits for entries. What has come by then is the answer.
pub const LOOKUP_WAIT: Duration = Duration::from_millis(500);

/// How long a question for all relays waits.
pub const RELAYS_WAIT: Duration = Duration::from_secs(2);

/// Records of relays that are read. Further ones are left out.
pub const RELAYS_MAX: usize = 16 << 10;

/// Entries of a stream that are read at a lookup, and streams with more are not watched: their entries are
/// said so often that a part of them, which is another one each time, is the better answer.
pub const READ_MAX: usize = 512;

/// How long such a part answers lookups.
pub(crate) const PART_LIFE: Duration = Duration::from_secs(5);

/// Streams whose entries are being read. Further ones wait for their turn.
pub(crate) const READING_MAX: usize = 16;

/// How long a stream is watched after it was looked up last.
pub(crate) const WATCH_LIFE: Duration = Duration::from_secs(60);

/// Streams that are watched. One more, and the one that was looked up the longest ago is watched no more; if
/// all were looked up just now, the further one is read, and not watched.
pub const WATCHES_MAX: usize = 256;

/// Streams that are watched or were read just now. Lookups of further ones have no answer, and are to be
/// repeated.
pub const READS_MAX: usize = 1024;

/// Entries in an answer that are the nearest, and others by chance.
pub const NEAREST: usize = 10;
/// See [`NEAREST`].
pub const OTHERS: usize = 6;

/// Events that wait for their reader. Of further ones only the newest is kept.
pub(crate) const EVENTS_MAX: usize = 16;
