//! What a configuration says, and what holds where it says nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outflow_graph::View;
use outflow_packet::Level;

use crate::access::{AccessToken, TokenKeys};
use crate::access_hook::{HookConfig, HookKeys};
use crate::extension::Extensions;
use crate::jwt::{JwtConfig, JwtKeys};
use crate::link::{ApplicationConfig, LinkConfig, LinkName};
use crate::listen::{Listen, RTP_PORTS};
use crate::memory::Memory;
use crate::rules::RULE_KEYS;
use crate::section::Section;
use crate::services::{BRANCH_KEYS, ELEMENT_KEYS};
use crate::stream::{Priority, StreamConfig};
use crate::{BitRate, Secret, SectionKeys, Share, SinkUrl, Weight, section, words};

/// A checked configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// Where the relay listens.
    pub listen: Listen,
    /// Which client may do what.
    pub access: Access,
    /// Certificate and key, if connections are to be encrypted.
    pub tls: Option<Tls>,
    /// How much the relay takes on.
    pub limits: Limits,
    /// How packets are sent.
    pub fanout: Fanout,
    /// What streams are like that do not say otherwise.
    pub defaults: StreamConfig,
    /// The streams, by name; each is shared, so that a change of one leaves the others where they are.
    pub streams: BTreeMap<String, Arc<StreamConfig>>,
    /// Links that streams and sinks may be behind, by name.
    pub links: BTreeMap<String, LinkConfig>,
    /// Receivers that are sent to without asking, in the order of the file; their names differ.
    pub sinks: Vec<SinkConfig>,
    /// What is logged, and how.
    pub log: Log,
    /// Tables of protocols.
    pub tables: Extensions,
    /// Tokens that other relays show, which may play everything.
    pub relay_tokens: Vec<Secret>,
    /// The text says how to relay, if anything, and not what: no `[streams]`, no sinks, no table of a protocol.
    pub is_blank: bool,
}

impl Config {
    /// The table of a protocol; its default if the program does not have the protocol.
    pub fn section<T: Section>(&self) -> T {
        self.tables.get()
    }
}

section! {
    /// Tokens, by the right that they give. A right without tokens is open: publishing and playing
    /// to every client, control to root and the relay's own user on this machine.
    pub struct Access {
        /// To be a stream's source.
        publish: Vec<Secret> = Vec::new(),
        /// To receive a stream.
        play: Vec<Secret> = Vec::new(),
        /// To look at everything and to change it.
        control: Vec<Secret> = Vec::new(),
        /// Tokens with names: for rights on some streams, from some addresses, until some day.
        tokens: Vec<AccessToken> = Vec::new(),
        /// Signed tokens.
        jwt: Option<JwtConfig> = None,
        /// What is asked which peer may come in.
        hook: Option<HookConfig> = None,
    }
}

section! {
    /// How much the relay takes on.
    pub struct Limits {
        /// Receivers of all streams together.
        receivers: usize = 20_000,
        /// Connections of all listeners together.
        connections: usize = 25_000,
        /// Connections from one address.
        connections_per_address: usize = 5_000,
        /// Threads that carry packets; 0 stands for one a core.
        workers: usize = 0,
        /// Whether each of them keeps to a processor of its own, and everything else, as services and plug-ins, to
        /// the others; with `workers = 0`, one is left to that.
        pin_workers: bool = false,
        /// Above this many receivers, other cores share the stream. To send them a packet takes a
        /// millisecond or more; to wake another core takes some microseconds.
        split: usize = 1_024,
        /// The part of a worker's time that receivers of the normal class are promised, whatever those of the high
        /// class need; none if classes are strict.
        normal_share: Option<Share> = Some(Share(5_000)),
        /// The same of the low class, whatever those above it need.
        low_share: Option<Share> = Some(Share(5_000)),
        /// How much memory the relay may take; above 80 % of it, it takes on no more.
        memory: Memory = Memory::Auto,
        /// Workers busy-poll for this long before they sleep. Receivers get packets sooner, and the
        /// core is busy; if other threads want it, the worker sleeps at once.
        poll: Duration = Duration::ZERO,
        /// A relay that is told to end by a signal goes on for this long, or until its receivers have left; it takes
        /// no others meanwhile. A second signal ends it.
        drain: Duration = Duration::ZERO,
    }
}

section! {
    /// By which ways packets leave.
    pub struct Fanout {
        /// How receivers are reached that get plain UDP.
        udp: UdpPath = UdpPath::Auto,
        /// Whether system calls are batched by io_uring.
        io_uring: Switch = Switch::Auto,
    }
}

section! {
    /// What is logged, and how.
    pub struct Log {
        /// From which severity on.
        level: LogLevel = LogLevel::Info,
        /// How a line looks.
        format: LogFormat = LogFormat::Text,
    }
}

section! {
    /// The keys of `[tls]` as they stand in the file.
    pub(crate) struct TlsKeys {
        /// Certificate chain.
        certificate: Option<PathBuf> = None,
        /// Private key.
        key: Option<PathBuf> = None,
    }
}

section! {
    /// The keys of `[[sinks]]` as they stand in the file.
    pub(crate) struct SinkKeys {
        /// Name of the stream.
        stream: Option<String> = None,
        /// Name of one of its branches.
        branch: Option<String> = None,
        /// What is to be seen of images.
        view: View = View::default(),
        /// The quality.
        level: Level = Level::BEST,
        /// Address of the receiver.
        to: Option<SinkUrl> = None,
        /// Name of the receiver.
        name: Option<String> = None,
        /// Class of the receiver.
        priority: Option<Priority> = None,
        /// How long a packet may wait for company.
        latency_budget: Option<Duration> = None,
        /// The rate at which bursts are spread out.
        pace: Option<BitRate> = None,
        /// The link that it is behind.
        link: Option<LinkName> = None,
        /// What it weighs there.
        weight: Weight = Weight::default(),
        /// The rate that it reserves there.
        reserve_rate: Option<BitRate> = None,
    }
}

/// Certificate and key, PEM files as paths from the relay's working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain, the relay's own certificate first.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// A receiver that is sent to without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkConfig {
    /// Its name; the address if none is given.
    pub name: String,
    /// The stream it receives.
    pub stream: String,
    /// The branch of it; the stream as it comes in if none is given.
    pub branch: Option<String>,
    /// What it is to see of images; all there is if nothing is given.
    pub view: View,
    /// The quality; the best if nothing is given.
    pub level: Level,
    /// Where it is.
    pub to: SinkUrl,
    /// Its class; that of the stream if none is given.
    pub priority: Priority,
    /// How long a packet may wait for company; as the stream says if nothing is given.
    pub latency_budget: Duration,
    /// The rate at which bursts are spread out; as the stream says if nothing is given.
    pub pace: Option<BitRate>,
    /// The link that it is behind; that of the stream if nothing is given.
    pub link: Option<LinkName>,
    /// What it weighs there among the receivers of its stream.
    pub weight: Weight,
    /// The rate that it reserves there; as its stream says if nothing is given.
    pub reserve_rate: Option<BitRate>,
}

words! {
    /// The way to receivers that are reached by plain UDP.
    pub enum UdpPath: "a way" {
        /// The cheapest that works here and pays for the number of receivers.
        Auto = "auto",
        /// System calls of the relay, without privileges.
        User = "user",
        /// In the kernel: a packet is cloned by a BPF program, on any Ethernet device.
        Tc = "tc",
        /// In the kernel: frames are given straight to the driver, on devices that take them.
        Xdp = "xdp",
    }
}

words! {
    /// Whether something is used.
    pub enum Switch: "a choice" {
        /// Where the system has it.
        Auto = "auto",
        /// Never.
        Off = "off",
    }
}

words! {
    /// Severity of a log line.
    pub enum LogLevel: "a level" {
        /// Every decision.
        Trace = "trace",
        /// What helps to find a mistake.
        Debug = "debug",
        /// What an operator wants to know.
        Info = "info",
        /// What an operator should look at.
        Warn = "warn",
        /// What does not work.
        Error = "error",
    }
}

words! {
    /// How a log line looks.
    pub enum LogFormat: "a format" {
        /// For people.
        Text = "text",
        /// For programs: one object a line.
        Json = "json",
    }
}

/// Tables and keys that belong to no protocol.
pub(crate) fn own_sections() -> Vec<SectionKeys> {
    let all: [(&str, &[&'static str]); 16] = [
        ("[listen]", &[RTP_PORTS]),
        ("[access]", Access::KEYS),
        ("[[access.tokens]]", TokenKeys::KEYS),
        ("[access.jwt]", JwtKeys::KEYS),
        ("[access.hook]", HookKeys::KEYS),
        ("[tls]", TlsKeys::KEYS),
        ("[limits]", Limits::KEYS),
        ("[fanout]", Fanout::KEYS),
        ("[streams.NAME]", StreamConfig::KEYS),
        ("[streams.NAME.elements.NAME]", ELEMENT_KEYS),
        ("[streams.NAME.branches.NAME]", BRANCH_KEYS),
        ("[streams.NAME.rules.NAME]", RULE_KEYS),
        ("[link.NAME]", LinkConfig::KEYS),
        ("[link.NAME.applications.NAME]", ApplicationConfig::KEYS),
        ("[[sinks]]", SinkKeys::KEYS),
        ("[log]", Log::KEYS),
    ];
    all.map(|(header, keys)| SectionKeys { header: header.to_owned(), keys: keys.to_vec() }).into()
}

/// The tables at the top of a configuration, beside those of protocols.
pub(crate) const TABLES: [&str; 10] =
    ["listen", "access", "tls", "limits", "fanout", "defaults", "streams", "link", "sinks", "log"];

/// Those of them that say what to relay; the others say how.
pub(crate) const TABLES_OF_WHAT: [&str; 2] = ["streams", "sinks"];
