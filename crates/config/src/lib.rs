//! The configuration: text in, checked values out.
//!
//! [`Config::parse`] reads TOML and gives either a [`Config`] in which everything is checked, or
//! [`ConfigErrors`] that name every mistake with its line, and what to do. [`diff`] says what
//! changed between two of them, so that a reload touches nothing else, and [`Graph`] shows what a
//! configuration amounts to: the elements a packet passes, and how they are connected.
//!
//! There is no I/O here: whoever reads the file gives its text and its name.

mod address;
mod check;
mod diff;
mod error;
mod graph;
mod invalid;
mod limits;
mod link;
mod model;
mod multicast;
mod name;
mod plan;
mod poc;
mod read;
mod rules;
mod section;
mod services;
mod sink;
mod source;
mod tree;
mod units;
mod value;

pub use check::{latency_budget, pace};
pub use diff::{Changes, diff};
pub use error::{ConfigError, ConfigErrors};
pub use graph::{Contract, Edge, Element, Graph, Node};
pub use invalid::Invalid;
pub use link::{ApplicationConfig, LinkConfig, LinkName, LinkRate, unit_name};
pub use model::{
    Access, Config, ContextChoice, Encryption, Fanout, Limits, Listen, Log, LogFormat, LogLevel, Poc,
    Priority, SECTIONS, SectionKeys, SinkConfig, StreamConfig, Switch, Tls, Transport, UdpPath, WhenFull,
};
pub use multicast::{Forward, GroupUrl, Interface, Interfaces, Multicast, Prefix, Prefixes};
pub use name::check_name;
pub use plan::plan;
pub use poc::PocUrl;
pub use rules::{Action, Condition, Measure, Rule, Rules};
pub use services::{BranchConfig, Branches, Elements};
pub use sink::{DatagramSink, SinkProtocol, SinkUrl};
pub use source::{Datagrams, RtspSource, Secret, SourceUrl, UdpSource};
pub use tree::{Place, Tree, TreeStreams, TreeTransport};
pub use units::{BitRate, ByteSize, Share, Written, parse_duration};
