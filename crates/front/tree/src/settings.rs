//! What the configuration says of trees of relays: where a relay is, which others there are, and how streams
//! come from them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use outflow_config::Step::{Index, Key};
use outflow_config::{
    Address, Check, Endpoint, Fault, Given, Invalid, Protocol, Scheme, Secret, SecretUrl, Section, SourceUrl,
    Table, Value, check_name, out_of, section, type_fault, words,
};
use outflow_front_groups::GroupSettings;

use crate::limits::CHILDREN;

section! {
    /// A relay's place among others. Without a name there is none.
    pub struct Tree {
        /// What others call this relay; no two have the same.
        name: Option<String> = None,
        /// Host and port of `listen.poc` as other relays reach it.
        address: Option<String> = None,
        /// Other relays by host and port, the most preferred first: what is wanted here is asked of them.
        parents: Vec<String> = Vec::new(),
        /// Servers of NATS in which relays find each other.
        directory: Vec<SecretUrl> = Vec::new(),
        /// Credentials for NATS (`.creds`), as a path from the relay's working directory.
        credentials: Option<PathBuf> = None,
        /// Certificate of the authority that NATS's is signed by, as a path from the relay's working directory.
        ca: Option<PathBuf> = None,
        /// The key-value bucket in NATS.
        bucket: String = "outflow".to_owned(),
        /// Where the relay is: kilometres east and north of anywhere. The nearest relay is asked first.
        location: Place = Place::default(),
        /// How streams come from other relays.
        transport: TreeTransport = TreeTransport::Poc,
        /// Which streams may come from other relays.
        streams: TreeStreams = TreeStreams::Any,
        /// What relays of the tree show each other, beside their keys.
        token: Option<Secret> = None,
        /// Other relays that are served at the same time, of all streams.
        children: usize = 64,
    }
}

/// What comes from other relays: `source = "tree"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FromRelays;

impl Address for FromRelays {
    fn is_on_demand(&self) -> bool {
        true
    }
}

impl fmt::Display for FromRelays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

/// The table, and the word for a source.
const NAME: &str = "tree";

pub(crate) fn protocol() -> Protocol {
    Protocol {
        tables: vec![Table::of::<Tree>(NAME), Table::of::<GroupSettings>(NAME)],
        sources: &[Scheme {
            name: NAME,
            prefixes: &[NAME],
            example: NAME,
            parse: |text| match text {
                NAME => Ok(Arc::new(FromRelays)),
                _ => Err(Invalid::new(format!("'{text}' is no source"), "write \"tree\"")),
            },
        }],
        check: Some(check),
        relay_tokens: Some(|config| config.section::<Tree>().token.into_iter().collect()),
        ..Protocol::default()
    }
}

/// The source of a stream that comes from other relays.
pub(crate) fn of_relays() -> SourceUrl {
    SourceUrl::Pulled(Endpoint { scheme: NAME, address: Arc::new(FromRelays) })
}

/// A place on the operator's map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Kilometres east.
    pub x_km: i32,
    /// Kilometres north.
    pub y_km: i32,
}

words! {
    /// How streams come from other relays.
    pub enum TreeTransport: "a transport" {
        /// By the partial-order transport.
        Poc = "poc",
        /// By RTP, as to any player of RTSP over UDP.
        Rtp = "rtp",
        /// By a group, one copy for all relays behind an interface of the parent; by RTP over TCP until that comes.
        Multicast = "multicast",
    }
}

words! {
    /// Which streams may come from other relays.
    pub enum TreeStreams: "a choice" {
        /// Any that a receiver asks for.
        Any = "any",
        /// Those whose source is "tree".
        Configured = "configured",
    }
}

impl Value for Place {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let wanted = || type_fault(given, "a place, two whole numbers", "[-120, 40]");
        let list = given.get_ref().as_array().ok_or_else(wanted)?;
        let numbers = list.iter().map(|item| {
            let number = item.get_ref().as_integer()?;
            i32::from_str_radix(number.as_str(), number.radix()).ok()
        });
        match numbers.collect::<Option<Vec<_>>>().as_deref() {
            Some(&[x_km, y_km]) => Ok(Place { x_km, y_km }),
            _ => {
                let help = "write kilometres east and north of anywhere, like [-120, 40]";
                Err((given.span(), Invalid::new("a place is two whole numbers", help)))
            }
        }
    }
}

/// A relay of a tree has a name and an address, and knows where others are; no other key is of use without.
fn check(check: &mut Check<'_, '_, '_>) {
    let tree = check.config().section::<Tree>();
    let Some(name) = &tree.name else {
        return no_tree(check);
    };
    if let Err(invalid) = check_name(name) {
        check.add(&[Key("tree"), Key("name")], invalid.what, invalid.help);
    }
    check_places(check, &tree);
    if let Some(invalid) = out_of(tree.children, &CHILDREN, |n| n.to_string()) {
        check.add(&[Key("tree"), Key("children")], invalid.what, invalid.help);
    }
    outflow_front_groups::check(check);
    check_directory(check, &tree);
}

/// Whether other relays can reach this one, and this one its parents.
fn check_places(check: &mut Check<'_, '_, '_>, tree: &Tree) {
    if tree.address.is_none() {
        let help = "add address = \"192.0.2.7:7000\": the host and the port of [listen] poc";
        check.add(&[Key("tree")], "other relays cannot find this one".to_owned(), help);
    }
    for (key, list) in [("address", tree.address.as_slice()), ("parents", tree.parents.as_slice())] {
        for (index, place) in list.iter().enumerate().filter(|(_, place)| !is_place(place)) {
            let path = [Key("tree"), Key(key), Index(index)];
            let path = if key == "parents" { &path[..] } else { &path[..2] };
            let what = format!("'{place}' has no port, or no host");
            check.add(path, what, "write it like 192.0.2.7:7000");
        }
    }
    if check.config().listen.at("poc").is_none() {
        let help = "add [listen] poc = \"[::]:7000\", by which relays talk to each other";
        check.add(&[Key("tree")], "other relays cannot reach this one".to_owned(), help);
    }
}

fn check_directory(check: &mut Check<'_, '_, '_>, tree: &Tree) {
    if tree.directory.is_empty() {
        for (key, is_given) in [("credentials", tree.credentials.is_some()), ("ca", tree.ca.is_some())] {
            if is_given {
                let what = format!("{key} is for a directory, and there is none");
                check.add(&[Key("tree"), Key(key)], what, "add directory = \"nats://192.0.2.1:4222\"");
            }
        }
    }
    for (index, server) in tree.directory.iter().enumerate() {
        if !["nats://", "tls://"].iter().any(|scheme| server.shown().starts_with(scheme)) {
            // Passwords may be in there.
            let what = "this is no address of a NATS server".to_owned();
            let path = [Key("tree"), Key("directory"), Index(index)];
            check.add(&path, what, "write it like nats://192.0.2.1:4222, or tls://…");
        }
    }
}

fn no_tree(check: &mut Check<'_, '_, '_>) {
    let config = check.config();
    let groups = config.section::<GroupSettings>().changed(&GroupSettings::default());
    for key in config.section::<Tree>().changed(&Tree::default()).into_iter().chain(groups) {
        let help = "add name = \"…\", which no other relay has";
        check.add(&[Key("tree"), Key(key)], "a relay of a tree needs a name".to_owned(), help);
    }
    for (name, stream) in &config.streams {
        if stream.source == of_relays() {
            let help = "add [tree] with a name, an address, and parents or a directory";
            let what = "this relay knows of no others".to_owned();
            check.add(&[Key("streams"), Key(name), Key("source")], what, help);
        }
    }
}

fn is_place(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) && !text.contains("//")
    })
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;

    fn read<T: Value>(toml: &str) -> Result<T, String> {
        T::read(&DeValue::parse(toml).expect("TOML")).map_err(|(_, invalid)| invalid.to_string())
    }

    #[test]
    fn places_are_two_numbers() {
        assert_eq!(read("[-120, 40]"), Ok(Place { x_km: -120, y_km: 40 }));
        for bad in ["[1]", "[1, 2, 3]", "[1.5, 2]", "[\"a\", 2]", "[9999999999, 1]"] {
            assert!(read::<Place>(bad).is_err_and(|text| text.contains("[-120, 40]")), "{bad}");
        }
        assert!(read::<Place>("\"here\"").is_err_and(|text| text.contains("[-120, 40]")));
    }
}
