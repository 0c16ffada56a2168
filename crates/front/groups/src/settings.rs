//! What the configuration says of groups that peers ask for: keys of `[tree]`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use outflow_config::Step::Key;
use outflow_config::{Check, Written, out_of, section};
use outflow_media::Prefix;

use crate::limits::{HOLD, TTL};

section! {
    /// Groups that streams go to because a peer asks for that.
    pub struct GroupSettings {
        /// Groups from which each stream gets one, for relays (and players of RTSP) that take it by multicast. None:
        /// nothing is sent by multicast at a player's request.
        groups: Option<Prefix> = None,
        /// Hops that packets to these groups may take.
        ttl: usize = 1,
        /// For how long less has to be wanted before less is asked for, or nothing.
        hold: Duration = Duration::from_secs(2),
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
    let Some(groups) = groups else { return };
    let last = groups.nth(groups.count() - 1);
    if !(groups.nth(0).is_multicast() && last.is_multicast()) || groups.contains(Ipv4Addr::new(224, 0, 0, 1))
    {
        let what = format!("{groups} are not all multicast groups that can be joined");
        let help = "choose some that hosts join at one source, as \"232.128.0.0/24\" (RFC 4607)";
        add(check, what, help);
    }
    for sink in &config.sinks {
        if let Some(IpAddr::V4(to)) = sink.to.datagrams().map(|sink| sink.to.ip()) {
            check_taken(check, &sink.stream, to);
        }
    }
}

/// Whether a group that a stream is sent to anyway is none of these.
pub fn check_taken(check: &mut Check<'_, '_, '_>, stream: &str, to: Ipv4Addr) {
    let groups = check.config().section::<GroupSettings>().groups;
    if groups.is_some_and(|groups| groups.contains(to)) {
        let what = format!("stream '{stream}' is sent to {to} already");
        add(check, what, "choose groups that nothing else is sent to");
    }
}
