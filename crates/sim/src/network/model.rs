//! What is simulated, as data.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_config::{BitRate, ByteSize, CLASS_SHARE, LOWER_SHARE, Share, Weight};
use outflow_link::{Link, LinkOptions, Medium, Policy, Scheduling, Unit};
use outflow_media::Time;
use serde::{Deserialize, Deserializer};

use super::impair::Impairments;
use super::nodes::NodeModel;
use super::paths::{EndModel, PathModel};
use super::segments::SegmentModel;
use super::traffic::Model;
use super::units::{duration, maybe, maybe_duration, maybe_weight, named, quantity, share_or_off, weight};
use crate::limits::OUTAGE_MIN;

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
    /// What each class below the highest that waits gets at least, where the scheduler heeds classes; with none, classes
    /// are strict.
    #[serde(default = "lower_share", deserialize_with = "share_or_off")]
    pub lower_share: Option<Share>,
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

fn lower_share() -> Option<Share> {
    Some(LOWER_SHARE)
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
        if self.lower_share.is_some_and(|share| !CLASS_SHARE.contains(&share)) {
            return Err("lower_share must be 1 % to 45 %, or \"off\"");
        }
        if self.lower_share != lower_share() && self.scheduler.0 != Scheduling::Priority {
            return Err("lower_share needs scheduler = \"priority\": others have no classes");
        }
        Ok(Some(LinkOptions {
            rate_bps: rate.0,
            policy: self.policy,
            unit: self.discard_unit,
            scheduling: self.scheduler.0,
            lower_share: Share::promised(self.lower_share),
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
        self.set_media(&mut link)?;
        Ok(Some(link))
    }

    /// Makes a link, which has a rate as this one has, be what this one says.
    pub(super) fn set<T>(&self, now: Time, link: &mut Link<T>) -> Result<(), &'static str> {
        if let Some(options) = self.options()? {
            link.set_options(now, options);
        }
        for medium in Medium::ALL {
            link.set_size_of(medium, None);
            link.set_weight_of(medium, 1);
        }
        self.set_media(link)
    }

    fn set_media<T>(&self, link: &mut Link<T>) -> Result<(), &'static str> {
        link.set_useful_for(self.useful_for);
        for (name, model) in &self.applications {
            let medium = Medium::ALL.into_iter().find(|medium| medium.as_str() == name);
            let medium = medium.ok_or("applications: possible are video, audio, data")?;
            link.set_weight_of(medium, model.weight.unwrap_or_default().get());
            if (model.buffer, model.buffer_per_flow, model.weight.is_some()) != (None, None, true) {
                link.set_size_of(medium, Some(size(model.buffer, model.buffer_per_flow)?));
            }
        }
        Ok(())
    }
}
