//! Routers on a link: found by their probes, gone when none come (section 3.2).

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use outflow_media::{Rate, Time, TokenBucket};

use super::limits::{
    FLASH_INTERVAL_MIN, MESSAGES_A_SECOND, MESSAGES_BURST, NEIGHBOUR_TIMEOUT, NEIGHBOURS_MAX,
    RESTART_INTERVAL_MIN, UNLISTED_TIMEOUT,
};
use super::packet::{GENERATIONS, LEVELS, PRUNES, Packet};
use super::{Refusal, earliest};

/// A router on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    generation: u32,
    capabilities: u8,
    gone_at: Time,
    /// Until when it counts as one that hears us; none if it never said so, or long not.
    one_way_at: Option<Time>,
    /// Whether its last probe named us.
    names_us: bool,
    copied_at: Option<Time>,
    changed_at: Option<Time>,
    messages: TokenBucket,
}

/// What a probe changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Probed {
    /// It hears us, which it did not before.
    pub(super) is_up: bool,
    /// It is to be told all routes: it did not know us before.
    pub(super) is_new: bool,
    /// It is another generation: it has forgotten all.
    pub(super) has_restarted: bool,
    /// It understands levels now, or does not any more.
    pub(super) has_other_levels: bool,
}

impl Neighbour {
    /// Whether each of both hears the other.
    pub const fn is_two_way(&self) -> bool {
        self.one_way_at.is_some()
    }

    /// Whether it understands levels.
    pub const fn has_levels(&self) -> bool {
        self.capabilities & LEVELS != 0
    }

    /// What it can do, as in its probes.
    pub const fn capabilities(&self) -> u8 {
        self.capabilities
    }

    /// Whether it may send a message more now.
    fn may_send(&mut self, now: Time) -> bool {
        self.messages.pass(now, Rate::per_second(MESSAGES_A_SECOND.into()))
    }

    /// Whether it may be sent a copy of all routes; then it counts as sent.
    pub(super) fn take_copy(&mut self, now: Time) -> bool {
        let may = self.copied_at.is_none_or(|at| now >= at + FLASH_INTERVAL_MIN);
        if may {
            self.copied_at = Some(now);
        }
        may
    }
}

/// The routers on one link.
#[derive(Debug, Default)]
pub struct Neighbours {
    known: BTreeMap<Ipv4Addr, Neighbour>,
}

impl Neighbours {
    /// A probe has come, which names us or not. `most` may be known on this link.
    pub(super) fn handle_probe(
        &mut self,
        now: Time,
        packet: &Packet<'_>,
        generation: u32,
        names_us: bool,
        most: usize,
    ) -> Result<Probed, Refusal> {
        let needed = PRUNES | GENERATIONS;
        if packet.major != 3 || packet.capabilities & needed != needed {
            return Err(Refusal::Version);
        }
        if !self.known.contains_key(&packet.source) && self.known.len() >= most.min(NEIGHBOURS_MAX) {
            return Err(Refusal::NeighboursFull);
        }
        let new = Neighbour {
            generation,
            capabilities: packet.capabilities,
            gone_at: now,
            one_way_at: None,
            names_us: false,
            copied_at: None,
            changed_at: None,
            messages: TokenBucket::new(MESSAGES_BURST.into()),
        };
        let neighbour = self.known.entry(packet.source).or_insert(new);
        let probed = Probed {
            is_up: names_us && !neighbour.is_two_way(),
            is_new: names_us && (!neighbour.names_us || neighbour.generation != generation),
            has_restarted: neighbour.generation != generation,
            has_other_levels: (neighbour.capabilities ^ packet.capabilities) & LEVELS != 0,
        };
        // Each time much is to be forgotten: that is not done for a neighbour that says so all the time.
        if probed.has_restarted || probed.has_other_levels {
            if neighbour.changed_at.is_some_and(|at| now < at + RESTART_INTERVAL_MIN) {
                return Err(Refusal::TooFast);
            }
            neighbour.changed_at = Some(now);
        }
        neighbour.generation = generation;
        neighbour.names_us = names_us;
        neighbour.capabilities = packet.capabilities;
        neighbour.gone_at = now + NEIGHBOUR_TIMEOUT;
        neighbour.one_way_at = match neighbour.one_way_at {
            _ if names_us => Some(neighbour.gone_at),
            // One that was restarted does not know us at first.
            Some(at) => Some(at.min(now + UNLISTED_TIMEOUT)),
            None => None,
        };
        Ok(probed)
    }

    /// A message other than a probe has come from there.
    pub(super) fn handle_message(&mut self, now: Time, source: Ipv4Addr) -> Result<(), Refusal> {
        let neighbour = self.known.get_mut(&source).filter(|neighbour| neighbour.is_two_way());
        match neighbour.map(|neighbour| neighbour.may_send(now)) {
            None => Err(Refusal::UnknownNeighbour),
            Some(false) => Err(Refusal::TooFast),
            Some(true) => Ok(()),
        }
    }

    /// The neighbours that are not there both ways any more.
    pub(super) fn handle_timeout(&mut self, now: Time) -> Vec<Ipv4Addr> {
        let mut gone = Vec::new();
        self.known.retain(|address, neighbour| {
            if neighbour.one_way_at.is_some_and(|at| at <= now) {
                neighbour.one_way_at = None;
                gone.push(*address);
            }
            neighbour.gone_at > now
        });
        gone
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let ends = |neighbour: &Neighbour| earliest([Some(neighbour.gone_at), neighbour.one_way_at]);
        self.known.values().filter_map(ends).min()
    }

    /// All that are heard, in order: those that our probes name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Ipv4Addr, &Neighbour)> {
        self.known.iter().map(|(address, neighbour)| (*address, neighbour))
    }

    /// One that is heard.
    pub fn get(&self, address: Ipv4Addr) -> Option<&Neighbour> {
        self.known.get(&address)
    }

    pub(super) fn get_mut(&mut self, address: Ipv4Addr) -> Option<&mut Neighbour> {
        self.known.get_mut(&address)
    }

    /// Whether any neighbour is there to be told routes. If not, the link is a leaf (section 3.5.1).
    pub fn has_two_way(&self) -> bool {
        self.known.values().any(Neighbour::is_two_way)
    }
}
