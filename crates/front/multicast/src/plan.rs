//! What the configuration says of groups.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_config::Config;
use outflow_multicast::Relayed;
use outflow_routing::membership::Family;

use crate::described::Groups;
use crate::received::{Received, received};
use crate::settings::{Forward, GroupUrl, Multicast, group, is_its_group};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// Where, and how hosts are asked.
    pub(super) settings: Multicast,
    /// Which stream is which group.
    pub(super) groups: BTreeMap<IpAddr, Served>,
    /// Streams that come in as groups.
    pub(super) received: BTreeMap<String, Received>,
    /// What packets of groups are that do not say it themselves.
    pub(super) described: Groups,
}

/// A group that is a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) stream: String,
    pub(super) group: GroupUrl,
    /// What of it the relay sends; the kernel forwards the rest.
    pub(super) relayed: Relayed,
    /// Where it comes in as this group already: no host is sent it there a second time.
    pub(super) comes_by: Option<String>,
}

impl Plan {
    pub(super) fn new(config: &Config) -> Self {
        let settings = config.section::<Multicast>();
        let with_group = config.streams.iter().filter_map(|(name, stream)| {
            let group = group(stream)?;
            let is_forwarded = settings.forward == Forward::Auto && is_its_group(stream, &settings);
            let own = stream.source.udp().filter(|source| source.at.ip() == group.to.ip());
            let served = Served {
                stream: name.clone(),
                relayed: if is_forwarded { Relayed::Lower } else { Relayed::All },
                comes_by: own.and_then(|source| source.interface.clone()),
                group,
            };
            Some((served.group.to.ip(), served))
        });
        let groups = with_group.collect();
        Plan { settings, groups, received: received(config), described: Groups::new() }
    }

    /// What the driver of a family is to know of it.
    pub(super) fn relayed(&self, family: Family) -> BTreeMap<IpAddr, Relayed> {
        let all = self.groups.iter().filter(|(group, _)| Family::of(**group) == family);
        all.map(|(group, served)| (*group, served.relayed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use outflow_config::Protocols;

    use super::*;
    use crate::settings::protocol;

    fn served(forward: &str, stream: &str) -> Served {
        let text = format!(
            "[multicast]\ninterfaces = [\"eth1\"]\nupstream = \"eth0\"\nforward = \"{forward}\"\n[streams.a]\n\
             group = \"udp://239.1.1.1:5000\"\n{stream}"
        );
        let config = Config::parse(&text, "o.toml", &Protocols::from_iter([protocol()]))
            .unwrap_or_else(|errors| panic!("{errors}"));
        Plan::new(&config).groups[&IpAddr::from([239, 1, 1, 1])].clone()
    }

    #[test]
    fn the_kernel_forwards_the_best_of_what_comes_in_as_the_group() {
        let group = "source = \"udp://239.1.1.1:5000?interface=eth0\"";
        let of = served("auto", group);
        assert_eq!((of.relayed, of.comes_by.as_deref()), (Relayed::Lower, Some("eth0")));
        let of = served("relay", group);
        assert_eq!((of.relayed, of.comes_by.as_deref()), (Relayed::All, Some("eth0")));
    }

    #[test]
    fn the_relay_sends_all_of_what_comes_otherwise() {
        let of = served("auto", "source = \"push\"");
        assert_eq!((of.relayed, of.comes_by), (Relayed::All, None));
        let of = served("auto", "source = \"udp://239.1.1.1:6000?interface=eth0\"");
        assert_eq!((of.relayed, of.comes_by.as_deref()), (Relayed::All, Some("eth0")), "to another port");
    }
}
