//! What belongs together in a tree of relays.

use std::net::{IpAddr, Ipv4Addr};

use super::{Check, Index, Key, out_of};
use crate::limits::{CHILDREN, TREE_HOLD, TTL};
use crate::section::Section;
use crate::tree::Tree;
use crate::units::Written;
use crate::{SourceUrl, check_name};

impl Check<'_, '_, '_> {
    /// A relay of a tree has a name and an address, and knows where others are; no other key is of use without.
    pub(super) fn tree(&mut self) {
        let tree = &self.config.tree;
        let Some(name) = &tree.name else {
            return self.no_tree();
        };
        if let Err(invalid) = check_name(name) {
            self.add(&[Key("tree"), Key("name")], invalid.what, invalid.help);
        }
        if tree.address.is_none() {
            let help = "add address = \"192.0.2.7:7000\": the host and the port of [listen] poc";
            self.add(&[Key("tree")], "other relays cannot find this one".to_owned(), help);
        }
        for (key, list) in [("address", tree.address.as_slice()), ("parents", tree.parents.as_slice())] {
            for (index, place) in list.iter().enumerate().filter(|(_, place)| !is_place(place)) {
                let path = [Key("tree"), Key(key), Index(index)];
                let path = if key == "parents" { &path[..] } else { &path[..2] };
                let what = format!("'{place}' has no port, or no host");
                self.add(path, what, "write it like 192.0.2.7:7000");
            }
        }
        if self.config.listen.poc.is_none() {
            let help = "add [listen] poc = \"0.0.0.0:7000\", by which relays talk to each other";
            self.add(&[Key("tree")], "other relays cannot reach this one".to_owned(), help);
        }
        if let Some(invalid) = out_of(tree.hold, &TREE_HOLD, |time| Written(*time).to_string()) {
            self.add(&[Key("tree"), Key("hold")], invalid.what, invalid.help);
        }
        if let Some(invalid) = out_of(tree.children, &CHILDREN, |n| n.to_string()) {
            self.add(&[Key("tree"), Key("children")], invalid.what, invalid.help);
        }
        self.tree_groups();
        if tree.directory.is_empty() {
            for (key, is_given) in [("credentials", tree.credentials.is_some()), ("ca", tree.ca.is_some())] {
                if is_given {
                    let what = format!("{key} is for a directory, and there is none");
                    self.add(&[Key("tree"), Key(key)], what, "add directory = \"nats://192.0.2.1:4222\"");
                }
            }
        }
        for (index, server) in tree.directory.iter().enumerate() {
            if !["nats://", "tls://"].iter().any(|scheme| server.starts_with(scheme)) {
                // Passwords may be in there.
                let what = "this is no address of a NATS server".to_owned();
                let path = [Key("tree"), Key("directory"), Index(index)];
                self.add(&path, what, "write it like nats://192.0.2.1:4222, or tls://…");
            }
        }
    }

    /// What streams are sent to for relays below is nobody else's, and by RTSP they are told of it.
    fn tree_groups(&mut self) {
        let tree = &self.config.tree;
        if let Some(invalid) = out_of(tree.ttl, &TTL, |n| n.to_string()) {
            self.add(&[Key("tree"), Key("ttl")], invalid.what, invalid.help);
        }
        let Some(groups) = tree.groups else { return };
        let path = [Key("tree"), Key("groups")];
        let last = groups.nth(groups.count() - 1);
        if !(groups.nth(0).is_multicast() && last.is_multicast()) || groups.has(Ipv4Addr::new(224, 0, 0, 1)) {
            let what =
                format!("{}/{} are not all multicast groups that can be joined", groups.address, groups.bits);
            let help = "choose some that hosts join at one source, as \"232.128.0.0/24\" (RFC 4607)";
            self.add(&path, what, help);
        }
        if self.config.listen.rtsp.is_none() {
            let help = "add [listen] rtsp = \"0.0.0.0:8554\", or leave groups out";
            self.add(&path, "by RTSP relays ask for groups, and there is none".to_owned(), help);
        }
        let own = self
            .config
            .streams
            .iter()
            .filter_map(|(name, stream)| Some((name, IpAddr::V4(*stream.group.as_ref()?.to.ip()))));
        let sinks = self.config.sinks.iter();
        let sinks = sinks.filter_map(|sink| Some((&sink.stream, sink.to.datagrams()?.to.ip())));
        let is_in = |ip: IpAddr| matches!(ip, IpAddr::V4(ip) if groups.has(ip));
        for (name, ip) in own.chain(sinks).filter(|(_, ip)| is_in(*ip)) {
            let what = format!("stream '{name}' is sent to {ip} already");
            self.add(&path, what, "choose groups that nothing else is sent to");
        }
    }

    fn no_tree(&mut self) {
        for key in self.config.tree.changed(&Tree::default()) {
            let help = "add name = \"…\", which no other relay has";
            self.add(&[Key("tree"), Key(key)], "a relay of a tree needs a name".to_owned(), help);
        }
        for (name, stream) in &self.config.streams {
            if stream.source == SourceUrl::Relays {
                let help = "add [tree] with a name, an address, and parents or a directory";
                let what = "this relay knows of no others".to_owned();
                self.add(&[Key("streams"), Key(name), Key("source")], what, help);
            }
        }
    }
}

fn is_place(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) && !text.contains("//")
    })
}
