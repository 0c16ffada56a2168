//! What is simulated, as data.

#![allow(clippy::disallowed_methods, reason = "a session description is read where a capture is")]

use core::time::Duration;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

use outflow_config::{BitRate, ByteSize, Weight};
use outflow_link::{Link, LinkOptions, Medium, Policy, Scheduling, Unit};
use outflow_packet::Level;
use serde::{Deserialize, Deserializer};

use super::impair::Impairments;
use super::nodes::NodeModel;
use super::paths::{EndModel, PathModel};
use super::segments::SegmentModel;
use super::traffic::{CapturedModel, Model};
use super::units::{duration, maybe, maybe_duration, maybe_weight, named, quantity, weight};
use crate::capture::Capture;
use crate::limits::{FLOWS_MAX, OUTAGE_MIN, SECONDS_MAX};

/// A network and what goes through it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// All chance comes from it.
    pub seed: u64,
    /// How long it runs.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// What is sent before does not count.
    #[serde(default, deserialize_with = "duration")]
    pub warm_up: Duration,
    /// What counts as good.
    #[serde(default)]
    pub counting: Counting,
    /// Links by name.
    pub links: BTreeMap<String, LinkModel>,
    /// Traffic by name.
    #[serde(default)]
    pub traffic: BTreeMap<String, TrafficModel>,
    /// Nodes that relay, by name.
    #[serde(default)]
    pub relays: BTreeMap<String, RelayNode>,
    /// The receivers behind relays, by name.
    #[serde(default)]
    pub receivers: BTreeMap<String, ReceiverModel>,
    /// Where programs run when it is emulated, by name.
    #[serde(default)]
    pub ends: BTreeMap<String, EndModel>,
    /// What their packets go through.
    #[serde(default)]
    pub paths: Vec<PathModel>,
    /// Nodes that speak packets of IP, by name.
    #[serde(default)]
    pub nodes: BTreeMap<String, NodeModel>,
    /// What joins them, and ends, by name.
    #[serde(default)]
    pub segments: BTreeMap<String, SegmentModel>,
}

/// A node with the core that runs live.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayNode {
    /// The size of each stream's ring.
    #[serde(default = "ring", deserialize_with = "quantity")]
    pub ring: ByteSize,
}

/// Receivers of a stream at a relay.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverModel {
    /// The traffic that goes to the relay; receivers take turns among its flows.
    pub traffic: String,
    /// How many there are.
    #[serde(default = "one")]
    pub count: usize,
    /// The links between the relay and each of them.
    pub via: Vec<String>,
    /// The level that they ask for: 1 is the best.
    #[serde(default = "best")]
    pub level: u8,
    /// Each joins at some moment up to then.
    #[serde(default, deserialize_with = "duration")]
    pub join_within: Duration,
}

/// What of a frame can be used of which parts are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    /// Nothing.
    #[default]
    Frames,
    /// What arrived.
    Portions,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkModel {
    /// Bits a second. Without one, it takes everything at once.
    #[serde(default, deserialize_with = "maybe")]
    pub rate: Option<BitRate>,
    /// How much each buffer holds.
    #[serde(default, deserialize_with = "maybe")]
    pub buffer: Option<ByteSize>,
    /// How much each buffer holds for every flow that shares it.
    #[serde(default, deserialize_with = "maybe")]
    pub buffer_per_flow: Option<ByteSize>,
    /// What differs for some media: video, audio, data.
    #[serde(default)]
    pub applications: BTreeMap<String, BufferModel>,
    /// How long packets are useful from when they come: later ones do not go.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub useful_for: Option<Duration>,
    /// Which traffic shares a buffer, and which loses what when it is full.
    #[serde(default = "policy", deserialize_with = "policy_named")]
    pub policy: Policy,
    /// Whose turn it is.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// What is discarded at least.
    #[serde(default, deserialize_with = "unit_named")]
    pub discard_unit: Unit,
    /// How long packets travel.
    #[serde(default, deserialize_with = "duration")]
    pub delay: Duration,
    /// What else goes wrong.
    #[serde(default)]
    pub impairments: Impairments,
}

/// How much the buffers of a medium hold, and what it weighs among media.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferModel {
    /// Each.
    #[serde(default, deserialize_with = "maybe")]
    pub buffer: Option<ByteSize>,
    /// For every flow that shares it.
    #[serde(default, deserialize_with = "maybe")]
    pub buffer_per_flow: Option<ByteSize>,
    /// Where the scheduler heeds it.
    #[serde(default, deserialize_with = "maybe_weight")]
    pub weight: Option<Weight>,
}

/// A scheduler by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduler(pub Scheduling);

/// How much a buffer holds.
pub type Size = outflow_link::Size;

/// Flows of one kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TrafficModel {
    /// What they send.
    #[serde(flatten)]
    pub model: Model,
    /// How many there are; of a capture, how many times it is sent.
    #[serde(default = "one")]
    pub flows: usize,
    /// The links that they go through, in this order.
    #[serde(default)]
    pub via: Vec<String>,
    /// The node at which they begin, if they do not go through links by themselves.
    pub from: Option<String>,
    /// The relay at the end of its way; it is received there if none is named. If they begin at a node that needs it,
    /// the address and port that they are sent to.
    pub to: Option<String>,
    /// Each starts at some moment up to then.
    #[serde(default, deserialize_with = "duration")]
    pub start_within: Duration,
    /// What of the same application shares a buffer; the model's name if nothing is said.
    pub application: Option<String>,
    /// The smaller, the sooner, where the scheduler heeds it.
    #[serde(default)]
    pub class: u8,
    /// What each flow, and where it goes to a relay, its stream there, weighs among those of its medium, where the
    /// scheduler heeds it.
    #[serde(default, deserialize_with = "weight")]
    pub weight: Weight,
}

/// Why a network is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// It is not TOML of the right shape.
    #[error("{0}")]
    Syntax(String),
    /// A value makes no sense.
    #[error("{key}: {must}: correct it in the scenario")]
    Value {
        /// The value's name.
        key: String,
        /// What it must be.
        must: String,
    },
    /// A path is not possible.
    #[error("the path from {from} to {to}: {why}")]
    Path {
        /// Where it begins.
        from: String,
        /// Where it leads.
        to: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Two things cannot be joined.
    #[error("{one} and {other} cannot be joined: {why}")]
    Joined {
        /// The one.
        one: String,
        /// The other one.
        other: String,
        /// What is wrong, and what to do.
        why: String,
    },
}

fn ring() -> ByteSize {
    ByteSize(8_000_000)
}

fn best() -> u8 {
    1
}

fn one() -> usize {
    1
}

fn policy() -> Policy {
    Policy::Elastic
}

fn policy_named<'de, D: Deserializer<'de>>(given: D) -> Result<Policy, D::Error> {
    named(given, Policy::ALL, Policy::as_str)
}

fn unit_named<'de, D: Deserializer<'de>>(given: D) -> Result<Unit, D::Error> {
    named(given, &[Unit::Packet, Unit::Frame], |unit| match unit {
        Unit::Packet => "packet",
        Unit::Frame => "frame",
    })
}

impl Default for Scheduler {
    fn default() -> Self {
        Scheduler(Scheduling::Wrr)
    }
}

impl<'de> Deserialize<'de> for Scheduler {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        named(given, Scheduling::ALL, Scheduling::as_str).map(Scheduler)
    }
}

impl<'de> Deserialize<'de> for Counting {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        named(given, &[Counting::Frames, Counting::Portions], |one| match one {
            Counting::Frames => "frames",
            Counting::Portions => "portions",
        })
    }
}

/// What a buffer holds of which one of two things is said.
fn size(buffer: Option<ByteSize>, buffer_per_flow: Option<ByteSize>) -> Result<Size, &'static str> {
    match (buffer, buffer_per_flow) {
        (Some(bytes), None) => Ok(Size::Bytes(bytes.as_usize())),
        (None, Some(bytes)) => Ok(Size::PerFlow(bytes.as_usize())),
        (None, None) => Err("needs buffer or buffer_per_flow, because it has a rate"),
        (Some(_), Some(_)) => Err("has buffer and buffer_per_flow: one of them is enough"),
    }
}

impl LinkModel {
    /// The link's options; `None` if it takes everything at once.
    fn options(&self) -> Result<Option<LinkOptions>, &'static str> {
        let Some(rate) = self.rate else { return Ok(None) };
        if rate.0 == 0 {
            return Err("rate must be above 0");
        }
        Ok(Some(LinkOptions {
            rate_bps: rate.0,
            policy: self.policy,
            unit: self.discard_unit,
            scheduling: self.scheduler.0,
            size: size(self.buffer, self.buffer_per_flow)?,
            slack: Duration::ZERO,
        }))
    }

    /// Checks what it says.
    ///
    /// # Errors
    /// What must be otherwise.
    pub fn check(&self) -> Result<(), &'static str> {
        self.link::<()>().map(drop)
    }

    /// The link; `None` if it takes everything at once.
    pub(super) fn link<T>(&self) -> Result<Option<Link<T>>, &'static str> {
        if self.impairments.outages.is_some_and(|outages| outages.last < OUTAGE_MIN) {
            return Err("outages must last for 1 ms or longer on average");
        }
        let Some(options) = self.options()? else { return Ok(None) };
        let mut link = Link::new(options);
        link.set_useful_for(self.useful_for);
        for (name, model) in &self.applications {
            let medium = Medium::ALL.into_iter().find(|medium| medium.as_str() == name);
            let medium = medium.ok_or("applications: possible are video, audio, data")?;
            link.set_weight_of(medium, model.weight.unwrap_or_default().get());
            if (model.buffer, model.buffer_per_flow, model.weight.is_some()) != (None, None, true) {
                link.set_size_of(medium, Some(size(model.buffer, model.buffer_per_flow)?));
            }
        }
        Ok(Some(link))
    }
}

/// Captures that were read, by file and session description.
#[derive(Debug, Clone, Default)]
pub struct Captures(BTreeMap<(PathBuf, Option<PathBuf>), Arc<Capture>>);

impl Captures {
    /// Reads what a model sends, unless that was done before.
    fn read(&mut self, model: &CapturedModel) -> Result<&Capture, String> {
        match self.0.entry((model.file.clone(), model.sdp.clone())) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let sdp = model.sdp.as_ref().map(|file| {
                    std::fs::read_to_string(file)
                        .map_err(|error| format!("cannot read {}: {error}", file.display()))
                });
                let capture = Capture::open_with(&model.file, sdp.transpose()?.as_deref());
                Ok(place.insert(Arc::new(capture.map_err(|error| error.to_string())?)))
            }
        }
    }
}

impl Network {
    /// Reads a network, and the captures that it names.
    ///
    /// # Errors
    /// It is not TOML, has unknown or missing keys, values that make no sense, or names a file that cannot be
    /// read.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let read: Network = toml::from_str(text).map_err(|error| NetworkError::Syntax(error.to_string()))?;
        read.checked(&mut Captures::default())
    }

    /// The network of a table. Captures are read once.
    ///
    /// # Errors
    /// The same.
    pub fn from_table(table: toml::Table, captures: &mut Captures) -> Result<Self, NetworkError> {
        let read = table.try_into().map_err(|error: toml::de::Error| NetworkError::Syntax(error.to_string()));
        let network: Network = read?;
        network.checked(captures)
    }

    fn checked(mut self, captures: &mut Captures) -> Result<Self, NetworkError> {
        let wrong =
            |key: &str, must: &str| Err(NetworkError::Value { key: key.to_owned(), must: must.to_owned() });
        if self.duration.is_zero() || self.duration > Duration::from_secs(SECONDS_MAX) {
            return wrong("duration", "must be above 0, and at most a million seconds");
        }
        if self.warm_up >= self.duration {
            return wrong("warm_up", "must be shorter than the duration");
        }
        for (name, link) in &self.links {
            if let Err(must) = link.check() {
                return wrong(&format!("links.{name}"), must);
            }
        }
        let (mut flows, links, relays) = (0_usize, &self.links, &self.relays);
        for (name, traffic) in &mut self.traffic {
            if let Err(must) = traffic.check(links, relays, captures) {
                return wrong(&format!("traffic.{name}"), &must);
            }
            flows = flows.saturating_add(traffic.flows);
        }
        self.check_nodes()?;
        for (name, receiver) in &self.receivers {
            if let Err(must) = receiver.check(links, &self.traffic) {
                return wrong(&format!("receivers.{name}"), &must);
            }
            flows = flows.saturating_add(receiver.count);
        }
        if flows > FLOWS_MAX {
            return wrong("traffic", &format!("has more than {FLOWS_MAX} flows"));
        }
        // Whatever cannot be joined is told before anything runs.
        super::world::World::new(&self, &[], 0)?;
        Ok(self)
    }
}

/// Whether all links of a way are there.
fn known(via: &[String], links: &BTreeMap<String, LinkModel>) -> Result<(), String> {
    let Some(unknown) = via.iter().find(|link| !links.contains_key(*link)) else { return Ok(()) };
    let links: Vec<_> = links.keys().map(String::as_str).collect();
    Err(format!("there is no link '{unknown}': possible are {}", links.join(", ")))
}

impl TrafficModel {
    fn check(
        &mut self,
        links: &BTreeMap<String, LinkModel>,
        relays: &BTreeMap<String, RelayNode>,
        captures: &mut Captures,
    ) -> Result<(), String> {
        self.model.check()?;
        known(&self.via, links)?;
        if self.from.is_none() && self.via.is_empty() && self.to.is_none() {
            return Err(
                "needs via, the links that it goes through, or from, the node at which it begins".to_owned()
            );
        }
        if let Some(to) = self.to.as_ref().filter(|_| self.from.is_none()) {
            if !relays.contains_key(to) {
                let relays: Vec<_> = relays.keys().map(String::as_str).collect();
                return Err(format!("there is no relay '{to}': possible are {}", relays.join(", ")));
            }
            if !matches!(self.model, Model::H264(_)) {
                return Err("relays read what packets hold: write model = \"h264\"".to_owned());
            }
        }
        if let Model::Capture(model) = &mut self.model {
            let capture = captures.read(model)?;
            model.take(capture);
        }
        Ok(())
    }
}

impl ReceiverModel {
    fn check(
        &self,
        links: &BTreeMap<String, LinkModel>,
        traffic: &BTreeMap<String, TrafficModel>,
    ) -> Result<(), String> {
        known(&self.via, links)?;
        if Level::new(self.level).is_none() {
            return Err(format!("level must be 1 to {}", Level::MAX));
        }
        let goes_to_a_relay = |traffic: &&TrafficModel| traffic.to.is_some() && traffic.flows > 0;
        match traffic.get(&self.traffic).filter(goes_to_a_relay) {
            Some(_) => Ok(()),
            None => Err(format!("'{}' is no traffic that goes to a relay (to = \"NAME\")", self.traffic)),
        }
    }
}
