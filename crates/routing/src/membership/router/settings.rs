//! What a router is to do.

use core::time::Duration;

use crate::membership::limits::{GROUPS_MAX, HOST_GROUPS_MAX, HOSTS_MAX, ROBUSTNESS_MAX};
use crate::membership::{Link, Version};

/// What a router is to do. Times are those of RFC 3376 section 8 (RFC 3810 section 9).
#[derive(Debug, Clone)]
pub struct RouterSettings {
    /// The interface.
    pub link: Link,
    /// The version that queries are sent in: that of the oldest router of the link (section 7.3.1).
    pub version: Version,
    /// How many packets may be lost in a row, plus one; 1 to 7 (section 8.1). It is also how many queries are
    /// sent at the start, and when a host leaves.
    pub robustness: u8,
    /// Between general queries (section 8.2).
    pub query_interval: Duration,
    /// How long hosts may take to answer these; no longer than `query_interval` (section 8.3).
    pub query_response: Duration,
    /// How long they may take when a host has left, and when they are asked again (section 8.8).
    pub last_member_interval: Duration,
    /// Whether a group ends at once when its only host leaves it that is known, unless there may be others.
    /// A host of which all reports were lost since the last but one query goes without until the next one.
    pub fast_leave: bool,
    /// Groups of the interface, [`GROUPS_MAX`] at most.
    pub groups_max: usize,
    /// Hosts that are known individually, [`HOSTS_MAX`] at most.
    pub hosts_max: usize,
    /// Groups of a host that it is known as a member of, [`HOST_GROUPS_MAX`] at most.
    pub host_groups_max: usize,
}

impl RouterSettings {
    /// What the RFCs recommend.
    pub fn new(link: Link) -> Self {
        RouterSettings {
            link,
            version: Version::V3,
            robustness: 2,
            query_interval: Duration::from_secs(125),
            query_response: Duration::from_secs(10),
            last_member_interval: Duration::from_secs(1),
            fast_leave: false,
            groups_max: GROUPS_MAX,
            hosts_max: HOSTS_MAX,
            host_groups_max: HOST_GROUPS_MAX,
        }
    }

    pub(super) fn within_limits(mut self) -> Self {
        self.robustness = self.robustness.clamp(1, ROBUSTNESS_MAX);
        self.query_response = self.query_response.min(self.query_interval);
        self.groups_max = self.groups_max.min(GROUPS_MAX);
        self.hosts_max = self.hosts_max.min(HOSTS_MAX);
        self.host_groups_max = self.host_groups_max.min(HOST_GROUPS_MAX);
        self
    }
}
