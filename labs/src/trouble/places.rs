//! The usual arrangement, and two places more: one of viewers whose network fails, and one of attackers.

use std::net::Ipv4Addr;

use anyhow::Result;

use crate::net::{Namespace, Paths, link};

/// The address of the viewers whose network fails.
pub(crate) const FRAGILE: Ipv4Addr = Ipv4Addr::new(10, 66, 3, 2);
/// The relay's address towards them.
pub(crate) const RELAY_FRAGILE: Ipv4Addr = Ipv4Addr::new(10, 66, 3, 1);
/// The relay's address towards attackers.
pub(crate) const RELAY_ATTACKED: Ipv4Addr = Ipv4Addr::new(10, 66, 4, 1);
/// Addresses that attackers have: limits count by address.
pub(crate) const ATTACKERS: [Ipv4Addr; 4] = [
    Ipv4Addr::new(10, 66, 4, 2),
    Ipv4Addr::new(10, 66, 4, 3),
    Ipv4Addr::new(10, 66, 4, 4),
    Ipv4Addr::new(10, 66, 4, 5),
];
/// A device of the fragile viewers or of the attackers.
pub(crate) const DEVICE: &str = "eth0";
/// The relay's device towards the fragile viewers.
pub(crate) const FRAGILE_DEVICE: &str = "out1";
const ATTACKED_DEVICE: &str = "out2";

/// Namespaces, joined.
pub struct Places {
    /// The source, the relay, the other viewers.
    pub paths: Paths,
    /// Viewers whose network fails.
    pub(crate) fragile: Namespace,
    pub(crate) attacker: Namespace,
}

impl Places {
    /// Makes them.
    pub fn new() -> Result<Self> {
        let places = Self {
            paths: Paths::new()?,
            fragile: Namespace::new("fragile")?,
            attacker: Namespace::new("attacker")?,
        };
        let relay = &places.paths.relay;
        link(&places.fragile, (DEVICE, FRAGILE), relay, (FRAGILE_DEVICE, RELAY_FRAGILE))?;
        link(&places.attacker, (DEVICE, ATTACKERS[0]), relay, (ATTACKED_DEVICE, RELAY_ATTACKED))?;
        for address in &ATTACKERS[1..] {
            places.attacker.ip(&["address", "add", &format!("{address}/24"), "dev", DEVICE])?;
        }
        Ok(places)
    }
}
