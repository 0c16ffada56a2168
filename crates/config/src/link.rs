//! Links: outgoing bottlenecks that streams and sinks are put behind.

use std::collections::BTreeMap;
use std::time::Duration;

use outflow_link::{Medium, Policy, Scheduling, Size, Unit};
use toml::de::DeTable;

use crate::section::{Section, unknown};
use crate::value::{Fault, Given, Text, Value, type_fault, word};
use crate::{BitRate, ByteSize, Invalid, Share, Vocabulary, Weight, words};

/// Where nothing is said, a buffer holds what the link carries in that time ...
const BUFFER_TIME: Duration = Duration::from_millis(200);

/// ... but no less than that: a few packets.
const BUFFER_MIN: u64 = 15_000;

/// What each class below the highest that waits gets of a link at least, if nothing is said.
pub const LOWER_SHARE: Share = Share(5_000);

crate::section! {
    /// A link.
    pub struct LinkConfig {
        /// How much it carries, packets counted with their IP headers.
        rate: Option<LinkRate> = None,
        /// A rate that follows its receivers stays above this.
        rate_min: BitRate = BitRate(500_000),
        /// A rate that follows its receivers begins with this, and stays below.
        rate_max: BitRate = BitRate(20_000_000),
        /// How much each buffer holds.
        buffer: Option<ByteSize> = None,
        /// How much each buffer holds for each flow that shares it.
        buffer_per_flow: Option<ByteSize> = None,
        /// Which flows share a buffer, and which of them loses what when it is full.
        policy: LinkPolicy = LinkPolicy(Policy::Elastic),
        /// What is discarded at least.
        unit: LinkUnit = LinkUnit(Unit::Packet),
        /// Whose turn it is.
        scheduler: LinkScheduler = LinkScheduler(Scheduling::Wrr),
        /// What each class below the highest that waits gets of it at least, where the scheduler heeds classes.
        lower_share: Option<Share> = Some(LOWER_SHARE),
        /// How long packets are useful from when they come to it: later ones do not go. Unlike a buffer's size,
        /// it bounds the time whatever the rate is.
        useful_for: Option<Duration> = None,
        /// Whether a receiver is let in for which there is no room.
        admission: Admission = Admission::Off,
        /// What differs for the buffers of some applications.
        applications: Applications = Applications::default(),
    }
}

/// How much a link carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRate {
    /// So much.
    Fixed(BitRate),
    /// What its receivers report on says how much.
    Feedback,
}

words! {
    /// Whether a receiver is let in for which a link has no room beside those behind it.
    pub enum Admission: "a choice" {
        /// It is: the link drops what is too much.
        Off = "off",
        /// It is refused.
        Refuse = "refuse",
        /// It gets the best level for which there is room; if there is none, it is refused.
        Lower = "lower",
    }
}

/// A policy of a link, by the name that it has in the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkPolicy(pub Policy);

/// A scheduler of a link, by the name that it has in the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkScheduler(pub Scheduling);

/// What is discarded at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkUnit(pub Unit);

/// Which link something is behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkName(pub String);

/// What differs for some applications: flows of one medium.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applications(pub BTreeMap<&'static str, ApplicationConfig>);

crate::section! {
    /// What differs for an application of a link.
    pub struct ApplicationConfig {
        /// How much each of its buffers holds.
        buffer: Option<ByteSize> = None,
        /// How much each of its buffers holds for each flow that shares it.
        buffer_per_flow: Option<ByteSize> = None,
        /// What it weighs among applications, for the scheduler "shares".
        weight: Option<Weight> = None,
    }
}

impl LinkConfig {
    /// The rate at which it begins.
    pub fn rate_at_first(&self) -> BitRate {
        match self.rate {
            Some(LinkRate::Fixed(rate)) => rate,
            Some(LinkRate::Feedback) | None => self.rate_max,
        }
    }

    /// Whether its rate follows what receivers report.
    pub fn follows(&self) -> bool {
        self.rate == Some(LinkRate::Feedback)
    }

    /// How much a buffer holds.
    pub fn size(&self) -> Size {
        let by_time = || {
            let bits = u128::from(self.rate_at_first().0) * BUFFER_TIME.as_millis() / 1000;
            let bytes = u64::try_from(bits / 8).unwrap_or(u64::MAX).max(BUFFER_MIN);
            Size::Bytes(ByteSize(bytes).as_usize())
        };
        size(self.buffer, self.buffer_per_flow).unwrap_or_else(by_time)
    }

    /// How much the buffers of a medium hold, if that is said apart.
    pub fn size_of(&self, medium: Medium) -> Option<Size> {
        let application = self.applications.0.get(medium.as_str())?;
        size(application.buffer, application.buffer_per_flow)
    }

    /// What a medium weighs among applications.
    pub fn weight_of(&self, medium: Medium) -> Weight {
        let application = self.applications.0.get(medium.as_str());
        application.and_then(|application| application.weight).unwrap_or_default()
    }
}

fn size(buffer: Option<ByteSize>, per_flow: Option<ByteSize>) -> Option<Size> {
    let whole = buffer.map(|bytes| Size::Bytes(bytes.as_usize()));
    whole.or_else(|| per_flow.map(|bytes| Size::PerFlow(bytes.as_usize())))
}

impl Text for LinkRate {
    const KIND: &'static str = "a rate";
    const EXAMPLE: &'static str = "20 Mbit/s";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        match text {
            "feedback" => Ok(LinkRate::Feedback),
            _ => text.parse().map(LinkRate::Fixed).map_err(|mut invalid: Invalid| {
                invalid.help += "; or \"feedback\", to follow what receivers report";
                invalid
            }),
        }
    }
}

impl Text for LinkName {
    const KIND: &'static str = "the name of a link";
    const EXAMPLE: &'static str = "uplink";
    const NONE: Option<&'static str> = Some("off");

    fn from_text(text: &str) -> Result<Self, Invalid> {
        Ok(LinkName(text.to_owned()))
    }
}

macro_rules! named {
    ($($type:ident($of:ident): $kind:literal, $example:literal, $all:expr, $name:expr;)+) => {
        $(impl Text for $type {
            const KIND: &'static str = $kind;
            const EXAMPLE: &'static str = $example;

            fn from_text(text: &str) -> Result<Self, Invalid> {
                let known = $all.iter().map(|one: &$of| ($name(*one), *one));
                word(text, &known.collect::<Vec<_>>()).map($type)
            }
        })+
    };
}

named! {
    LinkPolicy(Policy): "a policy", "elastic", Policy::ALL, Policy::as_str;
    LinkScheduler(Scheduling): "a scheduler", "wrr", Scheduling::ALL, Scheduling::as_str;
    LinkUnit(Unit): "a unit", "packet", [Unit::Packet, Unit::Frame], unit_name;
}

/// The word for a unit.
pub const fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Packet => "packet",
        Unit::Frame => "frame",
    }
}

impl Value for Applications {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        let example = "[link.uplink.applications.audio]";
        let tables = given.get_ref().as_table();
        let tables = tables.ok_or_else(|| type_fault(given, "a table of tables", example))?;
        let mut all = BTreeMap::new();
        for (name, given) in tables {
            let media = Medium::ALL.map(|medium| (medium.as_str(), medium));
            let medium = word(name.get_ref(), &media).map_err(|invalid| (name.span(), invalid))?;
            let table = given.get_ref().as_table().ok_or_else(|| type_fault(given, "a table", example))?;
            all.insert(medium.as_str(), application(table, known)?);
        }
        Ok(Applications(all))
    }
}

fn application(table: &DeTable<'_>, known: &Vocabulary) -> Result<ApplicationConfig, Fault> {
    let mut read = ApplicationConfig::default();
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "buffer" => read.buffer = Value::read(value)?,
            "buffer_per_flow" => read.buffer_per_flow = Value::read(value)?,
            "weight" => read.weight = Value::read(value)?,
            other => {
                return Err((
                    key.span(),
                    unknown(other, " of an application", ApplicationConfig::KEYS, &known.own_sections),
                ));
            }
        }
    }
    Ok(read)
}
