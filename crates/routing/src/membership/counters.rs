//! Why a message, or a part of one, had no effect, and how often.

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident $name:literal,)*) => {
        /// Why a message, or a part of one, had no effect. There is a counter of each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $reason,)*
        }

        impl Reason {
            /// All reasons, in the order of their counters.
            pub const ALL: &'static [Reason] = &[$(Reason::$reason,)*];

            /// The name of the counter.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Reason::$reason => $name,)*
                }
            }
        }
    };
}

reasons! {
    /// The packet is shorter than its headers or its contents say.
    Truncated "truncated",
    /// The header is none of this version of IP.
    NotIp "not_ip",
    /// The checksum of the IPv4 header is wrong.
    HeaderChecksum "header_checksum",
    /// It is a fragment: no message is so long.
    Fragment "fragment",
    /// Another protocol, or a type that is not known (RFC 2236 section 2.1, RFC 3376 section 4).
    OtherType "other_type",
    /// TTL or hop limit is not 1: it was sent from beyond the link, or could go there (RFC 3376 section 4).
    HopLimit "hop_limit",
    /// Without the Router Alert option (RFC 3376 section 9.2, RFC 3810 section 5).
    RouterAlert "router_alert",
    /// The checksum of the message is wrong.
    Checksum "checksum",
    /// It was not sent to where such messages are sent.
    Destination "destination",
    /// The source is not on the link, or not link-local with IPv6.
    Source "source",
    /// The source is this interface itself.
    Own "own",
    /// A length that no version of a query has (RFC 3376 section 7.1).
    QueryLength "query_length",
    /// A query of sources, but of no group.
    SourcesOfNoGroup "sources_of_no_group",
    /// The group is no multicast address.
    NotMulticast "not_multicast",
    /// The group is never forwarded beyond the link, so routers do not keep it.
    LocalGroup "local_group",
    /// A record of a type that is not known (RFC 3376 section 4.2.12).
    UnknownRecord "unknown_record",
    /// The extension does not end where the packet does, so all of it is ignored (RFC 9279).
    Extension "extension",
    /// A level that is older than the one that is known of this host and group.
    LateLevel "late_level",
    /// A level of a group that the host is not known as a member of.
    LevelOfNoMember "level_of_no_member",
    /// A group of the source-specific range without a list of sources to receive (RFC 4604 section 2.2).
    NotSourceSpecific "not_source_specific",
    /// No host was known to be a member of the group that is left.
    UnknownGroup "unknown_group",
    /// Hosts of an older version are members, which such a record is ignored for (RFC 3376 section 7.3.2).
    OlderHosts "older_hosts",
    /// A query from 0.0.0.0, as of a snooping switch: it takes no part in the election (RFC 4541).
    QuerySource "query_source",
    /// A query of an older version than this router is to use. It is processed; the administrator has to
    /// see to it that all routers use the same (RFC 3376 section 7.3.1).
    OlderQuery "older_query",
    /// More groups than an interface may have.
    GroupLimit "group_limit",
    /// More sources than a group may have. Each is counted.
    SourceLimit "source_limit",
    /// A new group, by a host that there is no place for.
    HostLimit "host_limit",
    /// A new group, by a host that is a member of as many as it may.
    HostGroupLimit "host_group_limit",
    /// More messages a second than are taken from a host.
    RateLimit "rate_limit",
}

/// How often there was each reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters([u64; Reason::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Counters([0; Reason::ALL.len()])
    }
}

impl Counters {
    /// How often there was this one.
    pub const fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// All of them with their names, for people and for metrics.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Reason::ALL.iter().map(|reason| (reason.name(), self.get(*reason)))
    }

    pub(super) const fn count(&mut self, reason: Reason) {
        self.add(reason, 1);
    }

    pub(super) const fn add(&mut self, reason: Reason, times: u64) {
        self.0[reason as usize] = self.0[reason as usize].saturating_add(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_counter_of_its_own() {
        let mut counters = Counters::default();
        for (i, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, i);
            counters.add(*reason, i as u64 + 1);
        }
        let mut all: Vec<_> = counters.iter().collect();
        assert!(all.iter().zip(1..).all(|((_, count), number)| *count == number));
        all.sort_unstable();
        all.dedup_by_key(|(name, _)| *name);
        assert_eq!(all.len(), Reason::ALL.len());
    }
}
