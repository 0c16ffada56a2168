//! Whether what the configuration says of multicast is possible.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use outflow_config::Step::{Index, Key};
use outflow_config::{Check, Datagrams, Section, SinkProtocol, SourceUrl, Written, out_of};

use super::{GroupUrl, Mld, Multicast, group};
use crate::limits::{
    DVMRP_METRIC, MULTICAST_INTERFACES_MAX, MULTICAST_SOURCES_MAX, MULTICAST_TABLE, QUERY_INTERVAL,
    QUERY_RESPONSE, ROBUSTNESS,
};

/// Whether interfaces and numbers are possible, and groups belong to one stream each.
pub(super) fn check(check: &mut Check<'_, '_, '_>) {
    let multicast = check.config().section::<Multicast>();
    interfaces(check, &multicast);
    numbers(check, &multicast);
    groups(check, &multicast);
}

fn interfaces(check: &mut Check<'_, '_, '_>, multicast: &Multicast) {
    let at = |key| [Key("multicast"), Key(key)];
    for (key, names) in [("interfaces", &multicast.interfaces.0), ("neighbours", &multicast.neighbours.0)] {
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                let path = [&at(key)[..], &[Index(index)]].concat();
                check.add(&path, format!("{} stands here twice", name.0), "leave one of them out");
            }
        }
    }
    let names: BTreeSet<_> = multicast.with_hosts_or_neighbours().map(|one| &one.0).collect();
    if names.len() > MULTICAST_INTERFACES_MAX {
        let what = format!("{} interfaces are too many", names.len());
        let help = format!("there is room for {MULTICAST_INTERFACES_MAX}: leave some out");
        check.add(&at("interfaces"), what, help);
    }
    upstream(check, multicast);
    let is_written = |keys: &[&str]| keys.iter().any(|key| check.is_written(&[Key("multicast")], key));
    if names.is_empty() && is_written(Multicast::KEYS) && !is_written(&["interfaces", "neighbours"]) {
        let help = "add interfaces = [\"eth1\"], those with hosts, or remove [multicast]";
        check.add(&[Key("multicast")], "[multicast] has no interfaces".to_owned(), help);
    }
}

/// What is wanted is joined as by a host, or routed as among routers.
fn upstream(check: &mut Check<'_, '_, '_>, multicast: &Multicast) {
    let Some(upstream) = &multicast.upstream else { return };
    let at = [Key("multicast"), Key("upstream")];
    if multicast.interfaces.0.contains(upstream) {
        let what = format!("{} has hosts: it is not upstream, too", upstream.0);
        check.add(&at, what, "leave it out here, or among interfaces");
    } else if !multicast.neighbours.0.is_empty() {
        let what = "with neighbours, there is no interface on which groups are joined as by a host";
        let help = format!(
            "leave upstream out: if {0} leads to routers of DVMRP, add it to neighbours; if to others, \
             leave neighbours out",
            upstream.0
        );
        check.add(&at, what.to_owned(), help);
    }
}

fn numbers(check: &mut Check<'_, '_, '_>, multicast: &Multicast) {
    let time = |value, allowed| out_of(value, allowed, |time| Written(*time).to_string());
    let number = |value, allowed| out_of(value, allowed, ToString::to_string);
    let found = [
        ("table", multicast.table.and_then(|table| number(table, &MULTICAST_TABLE))),
        ("metric", number(multicast.metric, &DVMRP_METRIC)),
        ("robustness", number(multicast.robustness, &ROBUSTNESS)),
        ("query_interval", time(multicast.query_interval, &QUERY_INTERVAL)),
        ("query_response", time(multicast.query_response, &QUERY_RESPONSE)),
        ("last_member_interval", time(multicast.last_member_interval, &QUERY_RESPONSE)),
        ("sources", number(multicast.sources.len(), &(0..=MULTICAST_SOURCES_MAX))),
    ];
    for (key, invalid) in found.into_iter().filter_map(|(key, invalid)| Some((key, invalid?))) {
        check.add(&[Key("multicast"), Key(key)], invalid.what, invalid.help);
    }
    if multicast.query_response > multicast.query_interval {
        let what = "hosts would be asked again before they have to answer".to_owned();
        let help = "lower query_response, or raise query_interval";
        check.add(&[Key("multicast"), Key("query_response")], what, help);
    }
}

/// A host that joins a group is sent all that is sent to it, whatever the port.
fn groups(check: &mut Check<'_, '_, '_>, multicast: &Multicast) {
    let mut taken: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for (name, stream) in &check.config().streams {
        let Some(group) = group(stream) else { continue };
        let path = [Key("streams"), Key(name), Key("group")];
        if !multicast.is_on() {
            let help = "add [multicast] interfaces = [\"eth1\"], or leave group out";
            check.add(&path, "no interface has hosts that could join it".to_owned(), help);
        }
        if let Some(other) = taken.insert(group.to.ip(), name) {
            let what = format!("streams '{other}' and '{name}' have one group, {}", group.to.ip());
            let help = "give each a group of its own: a host that joins one is sent all that goes there";
            check.add(&path, what, help);
        }
        group_of_sinks(check, name, &group);
        group_of_sources(check, name, &group);
        outflow_front_groups::check_taken(check, name, group.to.ip());
        if group.to.is_ipv6() && multicast.mld == Mld::Off {
            let help = "leave mld = \"off\" out, or choose a group of IPv4";
            check.add(&path, "hosts join no groups of IPv6".to_owned(), help);
        }
    }
}

/// A sink sends to a group whether or not a host joins it, and a host that joins would get both.
fn group_of_sinks(check: &mut Check<'_, '_, '_>, name: &str, group: &GroupUrl) {
    for (index, sink) in check.config().sinks.iter().enumerate() {
        let ip = sink.to.datagrams().map(|sink| sink.to.ip());
        if ip == Some(group.to.ip()) {
            let what = format!("{} is the group of stream '{name}', for hosts that join it", group.to.ip());
            let help = "leave this sink out, or choose another group";
            check.add(&[Key("sinks"), Index(index), Key("to")], what, help);
        }
    }
}

/// What comes in as one group and is another stream's is that stream's alone.
fn group_of_sources(check: &mut Check<'_, '_, '_>, name: &str, group: &GroupUrl) {
    for (other, stream) in check.config().streams.iter().filter(|(other, _)| *other != name) {
        if stream.source.udp().is_some_and(|source| source.at.ip() == group.to.ip()) {
            let what = format!("stream '{other}' comes in as {}, the group of '{name}'", group.to.ip());
            let help = "choose another group: it would be sent what goes out";
            check.add(&[Key("streams"), Key(name), Key("group")], what, help);
        }
    }
    let stream = &check.config().streams[name];
    if group.protocol == SinkProtocol::Rtp
        && let SourceUrl::Udp(source) = &stream.source
        && source.datagrams != Datagrams::Ts
    {
        let help = "write udp:// instead of rtp://";
        check.add(&[Key("streams"), Key(name), Key("group")], "these datagrams are no RTP".to_owned(), help);
    }
}

#[cfg(test)]
mod tests {
    use outflow_config::{Config, Protocols, diff};

    use crate::settings::{Forward, Multicast, protocol};

    fn mistake(text: &str) -> String {
        let errors = Config::parse(text, "o.toml", &Protocols::from_iter([protocol()])).expect_err(text);
        assert_eq!(errors.errors().len(), 1, "{errors}");
        let error = &errors.errors()[0];
        format!("{} {}: {}", error.line, error.what, error.help)
    }

    fn config(text: &str) -> Config {
        Config::parse(text, "o.toml", &Protocols::from_iter([protocol()]))
            .unwrap_or_else(|errors| panic!("{errors}"))
    }

    const ON: &str = "[multicast]\ninterfaces = [\"eth1\", \"eth2\"]\n";

    #[test]
    fn without_interfaces_there_is_no_igmp() {
        assert!(!config("").section::<Multicast>().is_on());
        let multicast =
            config(&format!("{ON}upstream = \"eth0\"\nsources = [\"10.9.0.0/16\"]")).section::<Multicast>();
        assert!(multicast.is_on() && !multicast.takes("eth3"));
        assert!(multicast.takes("eth0") && multicast.takes("eth2"));
        assert_eq!(
            (multicast.forward, multicast.fast_leave, multicast.robustness),
            (Forward::Auto, false, 2)
        );
        let wrong = mistake("[multicast]\nupstream = \"eth0\"");
        assert!(wrong.starts_with("1 [multicast] has no interfaces: add"), "{wrong}");
        let wrong = mistake("[streams.a]\ngroup = \"udp://239.1.1.1:5000\"");
        assert!(wrong.starts_with("2 no interface has hosts"), "{wrong}");
    }

    #[test]
    fn an_interface_has_one_part() {
        for key in ["interfaces", "neighbours"] {
            let wrong = mistake(&format!("[multicast]\n{key} = [\"a\", \"a\"]"));
            assert!(wrong.starts_with("2 a stands here twice"), "{wrong}");
        }
        let both =
            config(&format!("{ON}neighbours = [\"eth2\", \"eth3\"]\nmetric = 3")).section::<Multicast>();
        assert!(both.takes("eth3") && both.has_neighbours_on("eth2") && !both.has_neighbours_on("eth1"));
        assert!(config("[multicast]\nneighbours = [\"eth3\"]").section::<Multicast>().is_on());
        let wrong = mistake(&format!("{ON}neighbours = [\"eth3\"]\nupstream = \"eth0\""));
        assert!(wrong.starts_with("4 with neighbours, there is no interface"), "{wrong}");
        assert!(wrong.contains("leave upstream out"), "{wrong}");
        assert!(mistake(&format!("{ON}upstream = \"eth2\"")).starts_with("3 eth2 has hosts"));
        assert!(mistake("[multicast]\ninterfaces = [\"a b\"]").contains("is no network interface"));
        let many: Vec<_> = (0..1024).map(|number| format!("\"eth{number}\"")).collect();
        assert!(mistake(&format!("[multicast]\ninterfaces = [{}]", many.join(","))).contains("too many"));
    }

    #[test]
    fn numbers_are_what_igmp_and_the_kernel_have_room_for() {
        for bad in [
            "table = 0",
            "robustness = 8",
            "metric = 0",
            "metric = 32",
            "query_interval = \"10 h\"",
            "query_response = \"0 s\"",
            "last_member_interval = \"1 h\"",
            "query_response = \"200 s\"",
            "fast_leave = \"yes\"",
            "forward = \"kernel\"",
            "sources = [\"10.0.0.0/40\"]",
        ] {
            assert!(mistake(&format!("{ON}{bad}")).starts_with("3 "), "{bad}");
        }
        config(&format!("{ON}table = 100\nrobustness = 3\nfast_leave = true\nforward = \"relay\""));
    }

    #[test]
    fn a_group_is_one_streams() {
        let two = |first: &str, second: &str| {
            format!("{ON}[streams.a]\ngroup = \"{first}\"\n[streams.b]\ngroup = \"{second}\"\n")
        };
        let wrong = mistake(&two("udp://239.1.1.1:5000", "rtp://239.1.1.1:6000"));
        assert!(wrong.starts_with("6 streams 'a' and 'b' have one group, 239.1.1.1: give each"), "{wrong}");
        config(&two("udp://239.1.1.1:5000", "udp://239.1.1.2:5000"));
        assert!(mistake("[defaults]\ngroup = \"udp://239.1.1.1:5000\"").contains("the same for all streams"));
    }

    #[test]
    fn what_is_sent_to_those_that_join_is_not_sent_otherwise() {
        let group = format!("{ON}[streams.a]\ngroup = \"udp://239.1.1.1:5000\"\n");
        let sink = "[[sinks]]\nstream = \"a\"\nto = \"udp://239.1.1.1:6000\"\n";
        assert!(mistake(&format!("{group}{sink}")).starts_with("7 239.1.1.1 is the group of stream 'a'"));
        let other = "[streams.b]\nsource = \"udp://239.1.1.1:6000\"\n";
        assert!(mistake(&format!("{group}{other}")).starts_with("4 stream 'b' comes in as 239.1.1.1"));
        let images = format!(
            "{ON}[streams.a]\nsource = \"udp://0.0.0.0:5100?format=ppm\"\ngroup = \"rtp://239.1.1.1:5000\"\n"
        );
        assert!(mistake(&images).starts_with("5 these datagrams are no RTP"));
    }

    #[test]
    fn changes_take_effect_at_once() {
        let (old, new) = (config(ON), config(&format!("{ON}upstream = \"eth0\"\nfast_leave = true")));
        let changes = diff(&old, &new);
        assert_eq!(changes.settings, ["multicast.upstream", "multicast.fast_leave"]);
        assert!(changes.restart.is_empty(), "{changes}");
    }
}
