//! What protocols add to the configuration: tables, keys, listeners and addresses.

use std::sync::Arc;

use crate::check::Check;
use crate::extension::{Extensions, STREAMS, Table};
use crate::listen::Listener;
use crate::model::own_sections;
use crate::vocabulary::{Scheme, SectionKeys, Vocabulary};
use crate::{Config, Secret};

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

/// The protocols that a program has.
#[derive(Debug, Clone)]
pub struct Protocols {
    all: Arc<[Protocol]>,
    vocabulary: Arc<Vocabulary>,
}

impl FromIterator<Protocol> for Protocols {
    fn from_iter<I: IntoIterator<Item = Protocol>>(protocols: I) -> Self {
        let all: Arc<[_]> = protocols.into_iter().collect();
        let vocabulary = Arc::new(vocabulary(&all));
        Protocols { all, vocabulary }
    }
}

impl Default for Protocols {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl Protocols {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Protocol> {
        self.all.iter()
    }

    /// What may be written in a configuration of a program that has them.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(crate) fn listeners(&self) -> impl Iterator<Item = &'static Listener> {
        listeners(&self.all)
    }

    /// Tables beside those of the core.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        tables(&self.all)
    }

    /// Tables with their defaults.
    pub(crate) fn table_defaults(&self) -> Extensions {
        self.tables().map(|table| (*table, (table.make)())).collect()
    }

    /// What each stream has beside the core's keys.
    pub(crate) fn stream_defaults(&self) -> Extensions {
        of_streams(&self.all).map(|table| (*table, (table.make)())).collect()
    }

    /// Keys that `[defaults]` cannot say for all streams.
    pub(crate) fn own_stream_keys(&self) -> impl Iterator<Item = &'static str> {
        of_streams(&self.all).filter(|table| table.own).flat_map(|table| table.keys).copied()
    }

    /// Everything that may stand in a configuration.
    pub fn sections(&self) -> Vec<SectionKeys> {
        self.vocabulary.sections.clone()
    }
}

fn listeners(protocols: &[Protocol]) -> impl Iterator<Item = &'static Listener> {
    protocols.iter().flat_map(|protocol| protocol.listeners)
}

fn tables(protocols: &[Protocol]) -> impl Iterator<Item = &Table> {
    protocols.iter().flat_map(|protocol| &protocol.tables).filter(|table| table.name != STREAMS)
}

fn of_streams(protocols: &[Protocol]) -> impl Iterator<Item = &Table> {
    protocols.iter().flat_map(|protocol| &protocol.tables).filter(|table| table.name == STREAMS)
}

fn vocabulary(protocols: &[Protocol]) -> Vocabulary {
    Vocabulary {
        sources: protocols.iter().flat_map(|protocol| protocol.sources).copied().collect(),
        sinks: protocols.iter().flat_map(|protocol| protocol.sinks).copied().collect(),
        own_sections: own_sections(),
        sections: sections(protocols),
    }
}

fn sections(protocols: &[Protocol]) -> Vec<SectionKeys> {
    let mut sections = own_sections();
    let mut add = |header: String, keys: &[&'static str]| match sections
        .iter_mut()
        .find(|section| section.header == header)
    {
        Some(section) => section.keys.extend(keys),
        None => sections.push(SectionKeys { header, keys: keys.to_vec() }),
    };
    listeners(protocols).for_each(|listener| add("[listen]".to_owned(), &[listener.key]));
    tables(protocols).for_each(|table| add(format!("[{}]", table.name), table.keys));
    of_streams(protocols).for_each(|table| add("[streams.NAME]".to_owned(), table.keys));
    sections
}
