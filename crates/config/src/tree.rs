//! Trees of relays: where a relay is, who else there is, and how streams come from them.

use std::path::PathBuf;
use std::time::Duration;

use crate::Invalid;
use crate::Prefix;
use crate::Secret;
use crate::section::section;
use crate::value::{Fault, Given, Value, type_fault, words};

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
        directory: Vec<String> = Vec::new(),
        /// Credentials for NATS (`.creds`), as a path from the relay's working directory.
        credentials: Option<PathBuf> = None,
        /// Certificate of the authority that NATS's is signed by, as a path from the relay's working directory.
        ca: Option<PathBuf> = None,
        /// The key-value bucket in NATS.
        bucket: String = "outflow".to_owned(),
        /// Where the relay is: kilometres east and north of anywhere. Who is nearer is asked first.
        location: Place = Place::default(),
        /// How streams come from other relays.
        transport: TreeTransport = TreeTransport::Poc,
        /// Groups from which each stream gets one, for relays (and players of RTSP) that take it by multicast. None:
        /// nothing is sent by multicast because somebody asks for it.
        groups: Option<Prefix> = None,
        /// Hops that packets to these groups may take.
        ttl: usize = 1,
        /// Which streams may come from other relays.
        streams: TreeStreams = TreeStreams::Any,
        /// What relays of the tree show each other, beside their keys.
        token: Option<Secret> = None,
        /// Other relays that are served at the same time, of all streams.
        children: usize = 64,
        /// For how long less has to be wanted before less is asked for, or nothing.
        hold: Duration = Duration::from_secs(2),
    }
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
        /// Any that somebody asks for.
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

impl Value for Vec<String> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        match given.get_ref().as_array() {
            Some(list) => list.iter().map(String::read).collect(),
            // One is a list, too.
            None => String::read(given).map(|text| vec![text]),
        }
    }
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

    #[test]
    fn one_address_is_a_list_of_one() {
        assert_eq!(read("\"nats://a:4222\""), Ok(vec!["nats://a:4222".to_owned()]));
        assert_eq!(read("[\"a\", \"b\"]"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert!(read::<Vec<String>>("[1]").is_err());
    }
}
