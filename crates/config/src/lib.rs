//! The configuration: text in, checked values out.
//!
//! [`Config::parse`] reads TOML and gives either a [`Config`] in which everything is checked, or
//! [`ConfigErrors`] that name every mistake with its line, and what to do. [`diff`] says what
//! changed between two of them, so that a reload touches nothing else, and [`Graph`] shows what a
//! configuration amounts to: the elements a packet passes, and how they are connected.
//!
//! A protocol says in a [`Protocol`] what is its own: tables and keys ([`section!`]), listeners, and how its addresses
//! are written. [`Protocols`] are those of a program.
//!
//! There is no I/O here: the caller reads the file and gives its text and its name.

mod access;
mod access_hook;
mod address;
mod check;
mod contract;
mod date;
mod diff;
mod endpoint;
mod error;
mod extension;
mod graph;
mod invalid;
mod jwt;
mod limits;
mod link;
mod listen;
mod memory;
mod model;
mod name;
mod net;
mod partly;
mod plan;
mod protocol;
mod read;
mod rules;
mod secret;
mod secret_url;
mod section;
mod services;
mod sink;
mod source;
mod stream;
mod trusted_url;
mod units;
mod value;
mod vocabulary;
mod weight;

pub use access::{AccessToken, Ha1, StreamPattern, TokenHash, TokenRight};
pub use access_hook::{HookConfig, OnError};
pub use address::Datagrams;
pub use check::{Check, Step, latency_budget, pace, reserve_rate};
pub use contract::Contract;
pub use date::Date;
pub use diff::{Changes, diff};
pub use endpoint::{Address, Brings, Endpoint};
pub use error::{ConfigError, ConfigErrors};
pub use extension::{Extensions, Table};
pub use graph::{Edge, Element, Graph, Node};
pub use invalid::{Invalid, out_of};
pub use jwt::{JwtAlgorithm, JwtConfig, KeysAt};
pub use limits::{CLASS_SHARE, RESERVE, TEXT_BYTES_MAX};
pub use link::{Admission, ApplicationConfig, LOWER_SHARE, LinkConfig, LinkName, LinkRate, unit_name};
pub use listen::{Listen, Listener, StreamAddress};
pub use memory::Memory;
pub use model::{Access, Config, Fanout, Limits, Log, LogFormat, LogLevel, SinkConfig, Switch, Tls, UdpPath};
pub use name::check_name;
pub use net::{Interface, Interfaces};
pub use partly::Unmade;
pub use plan::plan;
pub use protocol::{Protocol, Protocols};
pub use rules::{Action, Condition, Measure, Rule, Rules};
pub use secret::Secret;
pub use secret_url::{SecretUrl, without_secrets};
pub use section::Section;
pub use services::{BranchConfig, Branches, Elements};
pub use sink::{DatagramSink, SinkProtocol, SinkUrl};
pub use source::{SourceUrl, UdpSource};
pub use stream::{ContextChoice, Priority, StreamConfig, Takeover, WhenFull};
pub use trusted_url::TrustedUrl;
pub use units::{BitRate, ByteSize, Share, Written, parse_duration};
pub use value::{Fault, Files, Given, Text, Value, first, text_or_none, type_fault, word};
pub use vocabulary::{Scheme, SectionKeys, Vocabulary};
pub use weight::Weight;
