//! What belongs together in a tree of relays.

use super::{Check, Index, Key, out_of};
use crate::limits::{CHILDREN, TREE_HOLD};
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

    fn no_tree(&mut self) {
        for key in self.config.tree.changed(&Tree::default()) {
            let help = "add name = \"…\", which no other relay has";
            self.add(&[Key("tree"), Key(key)], "a relay of a tree needs a name".to_owned(), help);
        }
        for (name, stream) in &self.config.streams {
            if stream.source == SourceUrl::Tree {
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
