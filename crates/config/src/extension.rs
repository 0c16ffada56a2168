//! Keys that protocols have in a table: a value a type.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;

use crate::Vocabulary;
use crate::endpoint::Same;
use crate::section::Section;
use crate::value::{Fault, Given};

/// What a change of keys needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The relay is started again.
    Restart,
    /// Nothing.
    AtOnce,
    /// The stream's source begins again.
    Source,
}

/// A [`Section`] of a type that is not known.
pub(crate) trait Part: Any + Debug + Same + Send + Sync {
    fn boxed(&self) -> Box<dyn Part>;
    fn read_key(&mut self, key: &str, given: &Given<'_>, known: &Vocabulary) -> Result<bool, Fault>;
    /// The keys in which it differs from one of the same type; none of another type.
    fn changed(&self, other: &dyn Part) -> Vec<&'static str>;
    fn beside(&mut self, file: &Path);
}

impl<T: Section> Part for T {
    fn boxed(&self) -> Box<dyn Part> {
        Box::new(self.clone())
    }

    fn read_key(&mut self, key: &str, given: &Given<'_>, known: &Vocabulary) -> Result<bool, Fault> {
        Section::read_key(self, key, given, known)
    }

    fn changed(&self, other: &dyn Part) -> Vec<&'static str> {
        (other as &dyn Any).downcast_ref().map_or_else(Vec::new, |other| Section::changed(self, other))
    }

    fn beside(&mut self, file: &Path) {
        Section::beside(self, file);
    }
}

/// A table of the configuration whose keys are the fields of a type, or keys that a type adds to it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) own: bool,
    pub(crate) keys: &'static [&'static str],
    pub(crate) make: fn() -> Box<dyn Part>,
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

/// The table of each stream.
pub(crate) const STREAMS: &str = "streams";

/// A protocol's keys in a table.
type Extension = (Table, Box<dyn Part>);

/// What protocols' keys in a table, or in several, say.
#[derive(Debug, Default)]
pub struct Extensions(Vec<Extension>);

impl Extensions {
    /// The value of this type; its default if there is none.
    pub fn get<T: Section>(&self) -> T {
        let mut all = self.0.iter();
        all.find_map(|(_, part)| (&**part as &dyn Any).downcast_ref::<T>()).cloned().unwrap_or_default()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().flat_map(|(table, _)| table.keys).copied()
    }

    /// The keys of the table of this name.
    pub(crate) fn keys_of(&self, name: &str) -> Vec<&'static str> {
        let parts = self.0.iter().filter(|(table, _)| table.name == name);
        parts.flat_map(|(table, _)| table.keys).copied().collect()
    }

    pub(crate) fn read_key(
        &mut self,
        table: &str,
        key: &str,
        given: &Given<'_>,
        known: &Vocabulary,
    ) -> Result<bool, Fault> {
        let mut parts = self.0.iter_mut().filter(|(of, _)| of.name == table && of.keys.contains(&key));
        parts.next().map_or(Ok(false), |(_, part)| part.read_key(key, given, known))
    }

    pub(crate) fn beside(&mut self, file: &Path) {
        self.0.iter_mut().for_each(|(_, part)| part.beside(file));
    }

    /// The tables, each with its keys that differ.
    pub(crate) fn changed(&self, other: &Self) -> Vec<(Table, Vec<&'static str>)> {
        let changed =
            |part: &dyn Part| other.0.iter().flat_map(|(_, other)| part.changed(&**other)).collect();
        self.0.iter().map(|(table, part)| (*table, changed(&**part))).collect()
    }

    /// Whether a source has to begin again to be what `other` says.
    pub fn is_another_source(&self, other: &Self) -> bool {
        self.changed(other).iter().any(|(table, keys)| table.effect == Effect::Source && !keys.is_empty())
    }
}

impl FromIterator<Extension> for Extensions {
    fn from_iter<I: IntoIterator<Item = Extension>>(parts: I) -> Self {
        Extensions(parts.into_iter().collect())
    }
}

impl Clone for Extensions {
    fn clone(&self) -> Self {
        self.0.iter().map(|(table, part)| (*table, part.boxed())).collect()
    }
}

impl PartialEq for Extensions {
    fn eq(&self, other: &Self) -> bool {
        let same = |((_, a), (_, b)): (&Extension, &Extension)| a.is_same(&**b as &dyn Any);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Eq for Extensions {}
