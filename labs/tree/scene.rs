//! Seven relays, each in a namespace of its own, and NATS beside the origin.
//!
//! ```text
//!                 origin
//!            ┌──────┴──────┐
//!         region-1      region-2          each line a veth pair; all of them forward packets,
//!        ┌───┴───┐     ┌───┴───┐          so that each relay reaches each along the lines
//!     edge-1  edge-2 edge-3  edge-4
//! ```

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::Result;
use outflow_labs::net::{Namespace, link};
use outflow_labs::relay::{Relay, listen};
use tempfile::TempDir;

use crate::source::{description, port};

/// The relays; the first one is the origin.
pub(crate) const RELAYS: usize = 7;
/// The relay above each; the origin has none and names itself.
pub(crate) const ABOVE: [usize; RELAYS] = [0, 0, 0, 1, 1, 2, 2];
pub(crate) const NAMES: [&str; RELAYS] =
    ["origin", "region-1", "region-2", "edge-1", "edge-2", "edge-3", "edge-4"];
/// Kilometres east and north: the region is by far the nearest for an edge, whatever else it finds in the directory.
/// Farther than on earth, as round trips are measured by answers, of which a busy machine's may take some 10 ms, and
/// those to relays that were never asked are guessed from the distance: all links are to stay what they are.
const PLACES: [[i32; 2]; RELAYS] = [
    [0, 0],
    [-75_000, 0],
    [75_000, 0],
    [-77_500, 10_000],
    [-77_500, -10_000],
    [77_500, 10_000],
    [77_500, -10_000],
];
/// A relay's device to the one above it.
pub(crate) const UP: &str = "above0";
/// Where relays listen for each other.
pub(crate) const PORT: u16 = 7000;
/// `[tree] hold` of all relays.
pub(crate) const HOLD: Duration = Duration::from_millis(500);

/// Where a relay is reached.
pub(crate) fn address(relay: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, 0, relay as u8 + 1)
}

/// Where NATS is: beside the origin.
pub(crate) fn nats() -> SocketAddrV4 {
    SocketAddrV4::new(address(0), 4222)
}

/// The namespaces, joined.
pub(crate) fn namespaces() -> Result<Vec<Namespace>> {
    let all = NAMES.iter().map(|name| Namespace::new(name)).collect::<Result<Vec<_>>>()?;
    for (relay, namespace) in all.iter().enumerate() {
        namespace.sysctl("net.ipv4.ip_forward", "1")?;
        namespace.sysctl("net.ipv4.conf.all.rp_filter", "0")?;
        namespace.ip(&["address", "add", &format!("{}/32", address(relay)), "dev", "lo"])?;
    }
    for relay in 1..RELAYS {
        let (above, here) = (&all[ABOVE[relay]], &all[relay]);
        let [near, far] = [1, 2].map(|end| Ipv4Addr::new(10, 87, relay as u8, end));
        link(above, (&down(relay), near), here, (UP, far))?;
        route(here, "default", near, relay)?;
        // All on the way from the origin know the way down.
        let mut below = relay;
        while below != 0 {
            let (at, via) = (ABOVE[below], Ipv4Addr::new(10, 87, below as u8, 2));
            route(&all[at], &format!("{}/32", address(relay)), via, at)?;
            below = at;
        }
    }
    Ok(all)
}

/// The device of the link to a relay, at the one above it.
fn down(relay: usize) -> String {
    format!("down{relay}")
}

/// What is sent that way has the address by which others know the relay.
fn route(at: &Namespace, to: &str, via: Ipv4Addr, relay: usize) -> Result<()> {
    at.ip(&["route", "add", to, "via", &via.to_string(), "src", &address(relay).to_string()])?;
    Ok(())
}

/// The relays, and the descriptions of what comes to the origin.
#[derive(Debug)]
pub(crate) struct Tree<'n> {
    namespaces: &'n [Namespace],
    folder: TempDir,
    streams: Vec<String>,
    relays: Vec<Option<Relay<'n>>>,
}

impl<'n> Tree<'n> {
    /// Starts all of them; these streams come to the origin, by their numbers.
    pub(crate) fn start(namespaces: &'n [Namespace], streams: Vec<String>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for (number, name) in (0..).zip(&streams) {
            std::fs::write(folder.path().join(format!("{name}.sdp")), description(number))?;
        }
        let mut tree = Self { namespaces, folder, streams, relays: Vec::new() };
        tree.relays.resize_with(RELAYS, || None);
        (0..RELAYS).try_for_each(|relay| tree.restart(relay))?;
        Ok(tree)
    }

    /// A relay that runs.
    pub(crate) fn relay(&mut self, relay: usize) -> Option<&mut Relay<'n>> {
        self.relays[relay].as_mut()
    }

    /// Ends a relay without a goodbye.
    pub(crate) fn kill(&mut self, relay: usize) {
        self.relays[relay] = None;
    }

    /// Starts a relay.
    pub(crate) fn restart(&mut self, relay: usize) -> Result<()> {
        let started = Relay::start(&self.namespaces[relay], &self.configuration(relay))?;
        self.relays[relay] = Some(started);
        Ok(())
    }

    fn configuration(&self, relay: usize) -> String {
        let parents: Vec<usize> = match relay {
            0 => Vec::new(),
            1 | 2 => vec![0],
            // The other region and the origin are there should its own fail.
            _ => vec![ABOVE[relay], 3 - ABOVE[relay], 0],
        };
        let parents: Vec<String> = parents.iter().map(|at| format!("{}:{PORT}", address(*at))).collect();
        let mut text = listen()
            + &format!(
                "poc = \"0.0.0.0:{PORT}\"\n[poc]\nencryption = \"off\"\n\
                 [tree]\nname = \"{}\"\naddress = \"{}:{PORT}\"\nparents = {parents:?}\n\
                 directory = \"nats://{}\"\nlocation = {:?}\nhold = \"{} ms\"\n",
                NAMES[relay],
                address(relay),
                nats(),
                PLACES[relay],
                HOLD.as_millis()
            );
        if relay == 0 {
            for (number, name) in (0..).zip(&self.streams) {
                let file = self.folder.path().join(format!("{name}.sdp"));
                text += &format!(
                    "[streams.{name}]\nsource = \"rtp://127.0.0.1:{}\"\nsdp = \"{}\"\n",
                    port(number),
                    file.display()
                );
            }
        }
        text
    }

    /// Fails if a relay has died or panicked.
    pub(crate) fn healthy(&mut self) -> Result<()> {
        self.relays.iter_mut().flatten().try_for_each(Relay::healthy)
    }
}
