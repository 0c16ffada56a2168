//! What may be written in a configuration: the beginnings of addresses, and tables with their keys.

use std::sync::Arc;

use crate::Invalid;
use crate::endpoint::{Address, Endpoint};

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

/// A table of a configuration and the keys that may stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionKeys {
    /// The table's header as it is written, with NAME for what is chosen freely.
    pub header: String,
    /// The keys.
    pub keys: Vec<&'static str>,
}

/// What a program knows of what may be written in a configuration. The default is nothing but what is read
/// without it.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    /// Addresses of sources that a protocol pulls.
    pub(crate) sources: Vec<Scheme>,
    /// Addresses of receivers that a protocol sends to.
    pub(crate) sinks: Vec<Scheme>,
    /// Tables and keys that belong to no protocol.
    pub(crate) own_sections: Vec<SectionKeys>,
    /// All tables and keys.
    pub(crate) sections: Vec<SectionKeys>,
}

impl Vocabulary {
    /// Reads the address of a source that a protocol pulls, or its word.
    pub(crate) fn source(&self, text: &str) -> Option<Result<Endpoint, Invalid>> {
        read(&self.sources, text)
    }

    /// Reads the address of a receiver that a protocol sends to.
    pub(crate) fn sink(&self, text: &str) -> Option<Result<Endpoint, Invalid>> {
        read(&self.sinks, text)
    }
}

fn read(schemes: &[Scheme], text: &str) -> Option<Result<Endpoint, Invalid>> {
    let prefix = text.split_once("://").map_or(text, |(prefix, _)| prefix).to_ascii_lowercase();
    let scheme = schemes.iter().find(|scheme| scheme.prefixes.contains(&prefix.as_str()))?;
    Some((scheme.parse)(text).map(|address| Endpoint { scheme: scheme.name, address }))
}
