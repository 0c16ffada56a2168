//! A stream: its keys, and what they say of what it carries and which services it has.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outflow_graph::{Content, Contents, Plan};

use crate::link::LinkName;
use crate::rules::Rules;
use crate::section::Section;
use crate::services::{self, Branches, Elements};
use crate::{BitRate, Brings, ByteSize, Datagrams, Share, SourceUrl, Weight, section, words};

section! {
    /// One stream.
    pub struct StreamConfig {
        /// Where it comes from; a list names streams that carry the same in different quality, the best
        /// first.
        source: SourceUrl = SourceUrl::Push,
        /// Description of an `rtp://` source that is not MP2T, as a path from the relay's
        /// working directory.
        sdp: Option<PathBuf> = None,
        /// How many bytes are kept for receivers that lag.
        ring: ByteSize = ByteSize(8_000_000),
        /// Which receivers lose packets when the ring is full.
        when_full: WhenFull = WhenFull::SlowestSink,
        /// A receiver that loses packets for that long without ever catching up is disconnected.
        hopeless_after: Duration = Duration::from_secs(10),
        /// A source that is silent for that long is announced as away.
        source_timeout: Duration = Duration::from_secs(2),
        /// Whether a publisher takes the place of one that is there.
        takeover: Takeover = Takeover::Silent,
        /// A publisher that sends no media for that long is let go.
        publish_timeout: Duration = Duration::from_secs(10),
        /// How many receivers it may have.
        max_receivers: usize = 20_000,
        /// The class of its receivers, where nothing else is said.
        priority: Priority = Priority::Normal,
        /// The part of a worker's time that is kept for it: it goes before all others within that.
        reserve: Option<Share> = None,
        /// The rate that each of its receivers reserves of a link that admits; none if only what is measured counts.
        reserve_rate: Option<BitRate> = None,
        /// How long a packet may wait so that more go to a receiver by one send.
        latency_budget: Duration = Duration::ZERO,
        /// The rate at which bursts are spread out; none if they go as they come.
        pace: Option<BitRate> = None,
        /// The link that its receivers are behind, where they do not name another.
        link: Option<LinkName> = None,
        /// What it weighs among streams: its share of a link and of a worker.
        weight: Weight = Weight::default(),
        /// Elements of its services, by name.
        elements: Elements = Elements::default(),
        /// Branches that its services make, by name.
        branches: Branches = Branches::default(),
        /// What is to change in its services when something is measured, by name.
        rules: Rules = Rules::default(),
        /// In which contexts elements run that name none.
        contexts: ContextChoice = ContextChoice::Auto,
        /// How much of a core the stream's services may take; none if they may take all they need.
        cpu_budget: Option<Share> = None,
    } and more of "streams"
}

impl StreamConfig {
    /// Keys of a protocol; their defaults if the program does not have the protocol.
    pub fn section<T: Section>(&self) -> T {
        self.more.get()
    }

    /// The services of the stream, the short form of branches written out.
    pub fn plan(&self) -> Plan {
        services::plan(&self.elements, &self.branches)
    }

    /// What the stream may carry, as far as its source tells before it comes.
    pub fn contents(&self) -> Contents {
        let ts = Contents::of(&[Content::Ts]);
        match &self.source {
            SourceUrl::Udp(source) if source.datagrams == Datagrams::Ppm => Contents::PNM,
            SourceUrl::Udp(source) if source.datagrams == Datagrams::Data => Contents::of(&[Content::Data]),
            SourceUrl::Udp(_) => ts,
            SourceUrl::Rtp(_) if self.sdp.is_none() => ts,
            pulled if pulled.brings() == Brings::Ts => ts,
            _ => ts.with(Contents::RTP),
        }
    }

    /// Files that elements name, made relative to the configuration's.
    pub(crate) fn place_files(&mut self, file: &Path) {
        services::place_files(&mut self.elements, &mut self.branches, file);
    }
}

/// Keys of a stream that `[defaults]` cannot say for all, beside those of protocols.
pub(crate) const STREAM_OWN_KEYS: [&str; 5] = ["source", "sdp", "elements", "branches", "rules"];

words! {
    /// Which receivers are served first.
    pub enum Priority: "a priority" {
        /// Before all others.
        High = "high",
        /// What is not said otherwise.
        Normal = "normal",
        /// After all others.
        Low = "low",
    }
}

words! {
    /// In which contexts elements run that name none.
    pub enum ContextChoice: "a choice" {
        /// In the stream's own worker, or, if they are plug-ins or take much of it, in a context of the
        /// stream's own.
        Auto = "auto",
        /// In the stream's own worker.
        Worker = "worker",
    }
}

words! {
    /// Whether a publisher takes the place of one that is there.
    pub enum Takeover: "a choice" {
        /// Always: the newest one publishes.
        Always = "always",
        /// If that one has sent no media for as long as makes a source count as away.
        Silent = "silent",
        /// Never: that one has to leave first.
        Never = "never",
    }
}

words! {
    /// Which receivers lose packets when a ring is full.
    pub enum WhenFull: "a policy" {
        /// The receivers that lag most, and only they.
        SlowestSink = "slowest-sink",
        /// All of them: what arrives while it is full is not taken.
        Tail = "tail",
        /// All of them, by chance, the more the fuller it is (random early detection).
        Red = "red",
    }
}
