//! What the configuration says of groups that peers ask for: keys of `[tree]`.

use std::net::IpAddr;
use std::time::Duration;

use outflow_config::Step::Key;
use outflow_config::{Check, Written, out_of, section};
use outflow_media::Network;
use outflow_routing::membership::Family;

use crate::limits::{HOLD, TTL};

section! {
    /// Groups that streams go to because a peer asks for that.
    pub struct GroupSettings {
        /// Groups from which each stream gets one, for relays (and players of RTSP) that take it by multicast. None:
        /// nothing is sent by multicast at a player's request. A range of each family at most.
        groups: Vec<Network> = Vec::new(),
        /// Hops that packets to these groups may take.
        ttl: usize = 1,
        /// For how long less has to be wanted before less is asked for, or nothing.
        hold: Duration = Duration::from_secs(2),
    }
}

impl GroupSettings {
    /// The groups of a family, if there are some.
    pub fn of(&self, family: Family) -> Option<Network> {
        self.groups.iter().find(|range| Family::of(range.last()) == family).copied()
    }
}

/// The table of [`GroupSettings`].
const TABLE: &str = "tree";

/// Writes down a mistake in the groups, and what to do.
pub fn add(check: &mut Check<'_, '_, '_>, what: String, help: &str) {
    check.add(&[Key(TABLE), Key("groups")], what, help);
}

/// Whether the numbers are possible, and the groups can be joined and are not sent to otherwise.
pub fn check(check: &mut Check<'_, '_, '_>) {
    let config = check.config();
    let GroupSettings { groups, ttl, hold } = config.section();
    if let Some(invalid) = out_of(hold, &HOLD, |time| Written(*time).to_string()) {
        check.add(&[Key(TABLE), Key("hold")], invalid.what, invalid.help);
    }
    if let Some(invalid) = out_of(ttl, &TTL, |n| n.to_string()) {
        check.add(&[Key(TABLE), Key("ttl")], invalid.what, invalid.help);
    }
    for range in &groups {
        if !can_be_joined(range) {
            let what = format!("{range} are not all multicast groups that can be joined");
            let help = "choose some that hosts join at one source (RFC 4607), as \"232.128.0.0/24\" or \
                        \"ff35::8000:0/112\"";
            add(check, what, help);
        }
    }
    let of_v4 = groups.iter().filter(|range| range.v4().is_some()).count();
    if of_v4.max(groups.len() - of_v4) > 1 {
        let what = "groups are two ranges of one family".to_owned();
        add(check, what, "write one range of IPv4, one of IPv6, or both");
    }
    for sink in &config.sinks {
        if let Some(to) = sink.to.datagrams().map(|sink| sink.to.ip()) {
            check_taken(check, &sink.stream, to);
        }
    }
}

/// Whether hosts can join all groups of a range, beyond their machine.
fn can_be_joined(range: &Network) -> bool {
    let is_one = |group: IpAddr| match group {
        IpAddr::V4(group) => group.is_multicast(),
        // From the scope of a link on (RFC 7346).
        IpAddr::V6(group) => group.is_multicast() && group.octets()[1] & 0x0f >= 2,
    };
    let all_hosts = Family::ALL.map(Family::all_nodes);
    is_one(range.nth(0)) && is_one(range.last()) && !all_hosts.iter().any(|group| range.contains(*group))
}

/// Whether a group that a stream is sent to anyway is none of these.
pub fn check_taken(check: &mut Check<'_, '_, '_>, stream: &str, to: IpAddr) {
    let groups = check.config().section::<GroupSettings>().groups;
    if groups.iter().any(|range| range.contains(to)) {
        let what = format!("stream '{stream}' is sent to {to} already");
        add(check, what, "choose groups that nothing else is sent to");
    }
}
