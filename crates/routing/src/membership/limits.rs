//! Every limit of group membership, with what happens when it is reached.

use core::time::Duration;

/// Groups of an interface. A report of a further one is refused ([`Reason::GroupLimit`]); those that are
/// known are served.
///
/// [`Reason::GroupLimit`]: super::Reason::GroupLimit
pub const GROUPS_MAX: usize = 4096;

/// Sources of a group, so that a record or a query of them always fits one packet of 1280 bytes. Further
/// ones are refused one by one ([`Reason::SourceLimit`]): what is left out of a list of excluded sources is
/// received.
///
/// [`Reason::SourceLimit`]: super::Reason::SourceLimit
pub const SOURCES_MAX: usize = 64;

/// Hosts of an interface that are known individually. Further ones may refresh groups that are there, and
/// then count as wanting the best; a group that is new is refused ([`Reason::HostLimit`]).
///
/// [`Reason::HostLimit`]: super::Reason::HostLimit
pub const HOSTS_MAX: usize = 1024;

/// Groups of a host that it is known as a member of. With further ones it is a host that is not known
/// ([`Reason::HostGroupLimit`]).
///
/// [`Reason::HostGroupLimit`]: super::Reason::HostGroupLimit
pub const HOST_GROUPS_MAX: usize = 512;

/// Messages a second that are taken from a host, and from all hosts together that are not known. Further
/// ones are refused ([`Reason::RateLimit`]).
///
/// [`Reason::RateLimit`]: super::Reason::RateLimit
pub const MESSAGES_A_SECOND: u32 = 500;

/// Messages that may come at once before [`MESSAGES_A_SECOND`] is enforced: IGMPv2 has one for each group.
pub const MESSAGES_AT_ONCE: u32 = 1000;

/// Groups that a host side is a member of. Joining a further one is refused.
pub const JOINED_MAX: usize = 1024;

/// Bytes of an IP packet that is written: what every IPv6 link carries. What does not fit goes into
/// another one.
pub const PACKET_BYTES_MAX: usize = 1280;

/// Levels of a report whose sequence is behind by up to so much, so soon after the newer one, are late. What
/// is further behind or later comes from a host that has begun again.
pub const LATE_SEQUENCES: u32 = 1024;
/// See [`LATE_SEQUENCES`].
pub const LATE_WITHIN: Duration = Duration::from_secs(10);

/// How often hosts that are members of nothing are looked for, when there is no place for a new one.
pub const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Largest robustness that is configured (RFC 3376 section 4.1.6): a larger one is lowered to it.
pub const ROBUSTNESS_MAX: u8 = 7;
