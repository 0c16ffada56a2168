//! The door's limits, with what happens when they are reached.

use std::time::Duration;

use outflow_media::Backoff;

/// Wrong tokens that may come from an address at once. From then on it is refused whatever it shows, until
/// [`FORGIVEN_EVERY`] has passed. Users that mistype, and players that try each password, stay far below.
pub const WRONG_TOKENS: u32 = 20;

/// After that time a wrong token is forgiven: an address that goes on guessing may do so once in it.
pub const FORGIVEN_EVERY: Duration = Duration::from_secs(3);

/// Addresses whose wrong tokens are remembered. Beyond, the one that would be forgiven first is forgotten.
pub const FAILING_ADDRESSES_MAX: usize = 4096;

/// Time between two lines of the log about the same thing; what happens in between is counted in the next line.
pub const LOG_EVERY: Duration = Duration::from_secs(10);

/// How long TCP waits at most before it sends again to a peer that answers nothing. Without a bound it waits about as
/// long as the path was broken already, so that a viewer whose network is back gets nothing for as long again. Paths
/// that take longer to answer are none for live media. The kernel gives up a connection after 15 such tries
/// (net.ipv4.tcp_retries2): that is half a minute then. Before Linux 6.15 there is no such bound.
pub(crate) const BACK_OFF_MAX: Duration = Duration::from_secs(2);

/// Bytes of a certificate chain or a key in PEM. A longer file is none.
pub(crate) const PEM_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a signed token. A longer one is wrong.
pub(crate) const JWT_BYTES_MAX: usize = 8 << 10;

/// Keys of a set that signed tokens may name. Those behind are left out.
pub(crate) const JWT_KEYS_MAX: usize = 64;

/// Characters of a signed token's subject that are told.
pub(crate) const JWT_NAME_CHARS_MAX: usize = 64;

/// How far the clock of what signs a token may be ahead of ours, in seconds.
pub(crate) const JWT_SKEW_S: i64 = 60;

/// Bytes of a set of keys that signed tokens are verified by. A longer one is refused.
pub(crate) const JWKS_BYTES_MAX: u64 = 256 << 10;

/// How long it may take to fetch it. Then that has failed.
pub(crate) const JWKS_WITHIN: Duration = Duration::from_secs(10);

/// How often it is looked at, ...
pub(crate) const JWKS_EVERY: Duration = Duration::from_secs(600);

/// ... and how often at most, where tokens come that are signed by a key that is not in it.
pub(crate) const JWKS_EACH: Duration = Duration::from_secs(60);

/// How long a set is good that cannot be had again. Then no signed token is taken.
pub(crate) const JWKS_STALE: Duration = Duration::from_secs(24 * 3600);

/// Waits until one that could not be had is looked for again.
pub(crate) const JWKS_AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Questions to the hook of `[access.hook]` that are open at once, ...
pub(crate) const HOOK_OPEN_MAX: usize = 64;

/// ... of which this number are for sessions that are there, ...
pub(crate) const HOOK_OPEN_OF_SESSIONS: usize = 16;

/// ... and of peers of one address. Further ones wait, within the same time.
pub(crate) const HOOK_OPEN_OF_ADDRESS: usize = 16;

/// How long the hook may take to answer. Then it has failed.
pub(crate) const HOOK_WITHIN: Duration = Duration::from_secs(2);

/// Bytes of its answer. A longer one cannot be read.
pub(crate) const HOOK_ANSWER_BYTES_MAX: u64 = 4 << 10;

/// Its answers that are kept. Beyond, the one that is good no longer first is forgotten.
pub(crate) const HOOK_ANSWERS_MAX: usize = 4096;

/// How long an answer is good at least, ...
pub(crate) const HOOK_TTL_MIN: Duration = Duration::from_secs(1);

/// ... at most, and if a yes does not say ...
pub(crate) const HOOK_TTL_MAX: Duration = Duration::from_secs(60);

/// ... and if a no does not: a peer may have got its right just after it asked.
pub(crate) const HOOK_TTL_NO: Duration = Duration::from_secs(5);

/// How soon a hook that has failed is asked again for a session, ...
pub(crate) const HOOK_AGAIN: Duration = Duration::from_secs(1);

/// ... and for how long, before that ends the session.
pub(crate) const HOOK_GRACE: Duration = Duration::from_secs(10);

/// How long after it has expired, or was revoked, a grant may still be used, at most.
pub const GRANTS_LOOK_EVERY: Duration = Duration::from_millis(500);

/// Refusals that are told in a second; the others are counted in the next one that is ...
pub(crate) const REFUSALS_TOLD: u64 = 5;

/// ... and at once.
pub(crate) const REFUSALS_AT_ONCE: u64 = 50;

/// How often the files of the certificate are looked at, at a handshake.
pub const CERTIFICATE_LOOK_EVERY: Duration = Duration::from_secs(5);

/// Descriptors that are kept for connections that come when there are none left ...
pub const SPARE_DESCRIPTORS: usize = 32;

/// ... or when this part of them is taken. Such connections are served in a hurry, by fronts that have something to say
/// in a moment, and else closed and counted as refused.
pub const SCARCE_PERCENT: u64 = 95;

/// How long a connection has that is served in a hurry.
pub const HURRY: Duration = Duration::from_secs(2);

/// How many are served in a hurry at once. A further one takes the place of the oldest.
pub const HURRIED_MAX: usize = 32;

/// How long those have to close that give their places up.
pub const HURRY_UP: Duration = Duration::from_millis(1);

/// What a peer is told to wait that is refused because the relay has too much to do.
pub const OVERLOAD_WAIT: Duration = Duration::from_secs(10);

/// Waits after connections that could not be accepted, until one can be.
pub const ACCEPT_AGAIN: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
