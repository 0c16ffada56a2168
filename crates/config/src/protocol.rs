//! What protocols add to the configuration: tables, keys, listeners and addresses.

use std::sync::Arc;

use crate::check::Check;
use crate::endpoint::{Address, Endpoint};
use crate::extension::{Effect, Extensions, Part};
use crate::graph::Contract;
use crate::model::{SectionKeys, own_sections};
use crate::section::Section;
use crate::{Config, Invalid, Secret};

/// What a protocol adds to the configuration.
#[derive(Debug, Clone, Default)]
pub struct Protocol {
    /// Where it listens: keys of `[listen]`.
    pub listeners: &'static [Listener],
    /// Tables of its own, and keys that it adds to other tables.
    pub tables: Vec<Table>,
    /// Addresses of sources that it pulls.
    pub sources: &'static [Scheme],
    /// Addresses of receivers that it sends to.
    pub sinks: &'static [Scheme],
    /// What its keys say together with others.
    pub check: Option<fn(&mut Check<'_, '_, '_>)>,
    /// Tokens that other relays show, which may play everything.
    pub relay_tokens: Option<fn(&Config) -> Vec<Secret>>,
}

/// A key of `[listen]`: an address with a port, or "off".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The key.
    pub key: &'static str,
    /// The port at all addresses where nothing is said; none stands for "off".
    pub port: Option<u16>,
    /// Whether it listens only if there is a certificate.
    pub needs_tls: bool,
    /// Whether it is a TCP port; else it is one of UDP.
    pub is_tcp: bool,
    /// Receivers that come in there, as a graph names them, and what they get.
    pub players: (&'static str, Contract),
}

/// How addresses of one kind begin, and what reads them.
#[derive(Debug, Clone, Copy)]
pub struct Scheme {
    /// Its name.
    pub name: &'static str,
    /// How an address begins: what stands before "://", or a whole word that stands for an address.
    pub prefixes: &'static [&'static str],
    /// One of them as it is written; a word, or an address.
    pub example: &'static str,
    /// Reads all of it.
    pub parse: fn(&str) -> Result<Arc<dyn Address>, Invalid>,
}

/// A table of the configuration whose keys are the fields of a type, or keys that a type adds to it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) own: bool,
    pub(crate) keys: &'static [&'static str],
    make: fn() -> Box<dyn Part>,
}

impl Table {
    /// The keys of `T` in the table `[name]`; a change needs a restart.
    pub fn of<T: Section>(name: &'static str) -> Self {
        Table { name, effect: Effect::Restart, own: false, keys: T::KEYS, make: || Box::new(T::default()) }
    }

    /// The same, but a change takes effect at once.
    #[must_use]
    pub fn at_once(self) -> Self {
        Table { effect: Effect::AtOnce, ..self }
    }

    /// The keys of `T` of each stream; a change of them begins the stream's source again.
    pub fn of_source<T: Section>() -> Self {
        Table { effect: Effect::Source, ..Self::of::<T>(STREAMS) }
    }

    /// The keys of `T` of each stream, which `[defaults]` cannot say for all.
    pub fn of_stream<T: Section>() -> Self {
        Table { effect: Effect::AtOnce, own: true, ..Self::of::<T>(STREAMS) }
    }
}

const STREAMS: &str = "streams";

/// The protocols that a program has.
#[derive(Debug, Clone, Default)]
pub struct Protocols(Arc<[Protocol]>);

impl FromIterator<Protocol> for Protocols {
    fn from_iter<I: IntoIterator<Item = Protocol>>(protocols: I) -> Self {
        Protocols(protocols.into_iter().collect())
    }
}

impl Protocols {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Protocol> {
        self.0.iter()
    }

    /// Reads the address of a source that a protocol pulls, or its word.
    pub(crate) fn source(&self, text: &str) -> Option<Result<Endpoint, Invalid>> {
        read(self.0.iter().flat_map(|protocol| protocol.sources), text)
    }

    /// Reads the address of a receiver that a protocol sends to.
    pub(crate) fn sink(&self, text: &str) -> Option<Result<Endpoint, Invalid>> {
        read(self.0.iter().flat_map(|protocol| protocol.sinks), text)
    }

    pub(crate) fn listeners(&self) -> impl Iterator<Item = &'static Listener> {
        self.0.iter().flat_map(|protocol| protocol.listeners)
    }

    /// Tables beside those of the core.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.0.iter().flat_map(|protocol| &protocol.tables).filter(|table| table.name != STREAMS)
    }

    fn of_streams(&self) -> impl Iterator<Item = &Table> {
        self.0.iter().flat_map(|protocol| &protocol.tables).filter(|table| table.name == STREAMS)
    }

    /// Tables with their defaults.
    pub(crate) fn table_defaults(&self) -> Extensions {
        self.tables().map(|table| (*table, (table.make)())).collect()
    }

    /// What each stream has beside the core's keys.
    pub(crate) fn stream_defaults(&self) -> Extensions {
        self.of_streams().map(|table| (*table, (table.make)())).collect()
    }

    /// Keys that `[defaults]` cannot say for all streams.
    pub(crate) fn own_stream_keys(&self) -> impl Iterator<Item = &'static str> {
        self.of_streams().filter(|table| table.own).flat_map(|table| table.keys).copied()
    }

    /// Everything that may stand in a configuration.
    pub fn sections(&self) -> Vec<SectionKeys> {
        let mut sections = own_sections();
        let mut add = |header: String, keys: &[&'static str]| match sections
            .iter_mut()
            .find(|section| section.header == header)
        {
            Some(section) => section.keys.extend(keys),
            None => sections.push(SectionKeys { header, keys: keys.to_vec() }),
        };
        self.listeners().for_each(|listener| add("[listen]".to_owned(), &[listener.key]));
        self.tables().for_each(|table| add(format!("[{}]", table.name), table.keys));
        self.of_streams().for_each(|table| add("[streams.NAME]".to_owned(), table.keys));
        sections
    }
}

fn read<'s>(mut schemes: impl Iterator<Item = &'s Scheme>, text: &str) -> Option<Result<Endpoint, Invalid>> {
    let prefix = text.split_once("://").map_or(text, |(prefix, _)| prefix).to_ascii_lowercase();
    let scheme = schemes.find(|scheme| scheme.prefixes.contains(&prefix.as_str()))?;
    Some((scheme.parse)(text).map(|address| Endpoint { scheme: scheme.name, address }))
}

/// Several choices in a sentence: "a, b or c".
pub(crate) fn choices(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
