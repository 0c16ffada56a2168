//! Tables of a configuration: one declaration says keys, types, defaults and meaning.

use std::fmt::Debug;
use std::path::Path;

use toml::de::DeTable;

use crate::error::Collector;
use crate::invalid::nearest;
use crate::value::{Fault, Given, type_fault};
use crate::{Invalid, SectionKeys, Vocabulary};

/// A table whose keys are the fields of a type; made by [`section!`](crate::section!).
pub trait Section: Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The keys that are its fields.
    const KEYS: &'static [&'static str];

    /// All keys that may stand in it.
    fn keys(&self) -> Vec<&'static str> {
        Self::KEYS.to_vec()
    }

    /// Takes what stands behind a key. False if there is no such key.
    ///
    /// # Errors
    /// It is no value of the key's.
    fn read_key(&mut self, key: &str, given: &Given<'_>, known: &Vocabulary) -> Result<bool, Fault>;

    /// The keys in which two values differ.
    fn changed(&self, other: &Self) -> Vec<&'static str>;

    /// Makes files that it names files beside another one.
    fn beside(&mut self, file: &Path);
}

/// Makes a type of a table: its fields are the keys, each with its default.
#[macro_export]
macro_rules! section {
    ($(#[$doc:meta])* $vis:vis struct $name:ident {
        $($(#[$key_doc:meta])* $key:ident: $type:ty = $default:expr,)+
    } $(and $more:ident of $table:literal)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis struct $name {
            $($(#[$key_doc])* pub $key: $type,)+
            $(/// What keys of protocols say.
            pub $more: $crate::Extensions,)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ $($more: $crate::Extensions::default(),)? }
            }
        }

        impl $crate::Section for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($key),)+];

            $(fn keys(&self) -> Vec<&'static str> {
                Self::KEYS.iter().copied().chain(self.$more.keys()).collect()
            })?

            fn read_key(
                &mut self,
                key: &str,
                given: &$crate::Given<'_>,
                known: &$crate::Vocabulary,
            ) -> Result<bool, $crate::Fault> {
                match key {
                    $(stringify!($key) => self.$key = $crate::Value::read_among(given, known)?,)+
                    _ => return Ok(false $(|| self.$more.read_key($table, key, given, known)?)?),
                }
                Ok(true)
            }

            fn changed(&self, other: &Self) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if self.$key != other.$key {
                    keys.push(stringify!($key));
                })+
                $(self.$more.changed(&other.$more).into_iter().for_each(|(_, more)| keys.extend(more));)?
                keys
            }

            fn beside(&mut self, file: &std::path::Path) {
                $($crate::Value::beside(&mut self.$key, file);)+
                $(self.$more.beside(file);)?
            }
        }
    };
}

/// What to say about a key that is not known; `all` are the tables in which it may belong.
pub(crate) fn unknown(key: &str, place: &str, keys: &[&str], all: &[SectionKeys]) -> Invalid {
    let what = format!("unknown key '{key}'{place}");
    if let Some(near) = nearest(key, keys.iter().copied()) {
        return Invalid::new(what, format!("did you mean '{near}'?"));
    }
    let home = all.iter().find(|other| other.keys.contains(&key));
    let help = match home {
        Some(home) => format!("'{key}' belongs in {}", home.header),
        None => format!("possible here: {}", keys.join(", ")),
    };
    Invalid::new(what, help)
}

/// Reads a table whose `header` is this, up to its first mistake.
pub(crate) fn whole<T: Section>(given: &Given<'_>, header: &str, known: &Vocabulary) -> Result<T, Fault> {
    let table = given.get_ref().as_table().ok_or_else(|| type_fault(given, "a table", header))?;
    let mut section = T::default();
    for (key, value) in table {
        if !section.read_key(key.get_ref(), value, known)? {
            let place = format!(" in {header}");
            return Err((key.span(), unknown(key.get_ref(), &place, T::KEYS, &known.own_sections)));
        }
    }
    Ok(section)
}

/// A table may be the whole rest of the file: where it begins is enough.
pub(crate) fn first_line(given: &Given<'_>) -> core::ops::Range<usize> {
    given.span().start..given.span().start + 1
}

/// Says that a table lacks a key that it needs, and how that could look.
pub(crate) fn missing(given: &Given<'_>, header: &str, key: &str, example: &str) -> Fault {
    let help = format!("add it, as in {key} = \"{example}\"");
    (first_line(given), Invalid::new(format!("{header} has no {key}"), help))
}

/// Takes what `table` says over what is there already; mistakes go to `errors`.
pub(crate) fn read_section<T: Section>(
    into: &mut T,
    table: &DeTable<'_>,
    name: &str,
    known: &Vocabulary,
    errors: &mut Collector<'_>,
) {
    let keys = into.keys();
    read_keys(table, name, &keys, known, errors, |key, given| into.read_key(key, given, known));
}

/// Gives each key of a table to `read`, which says whether there is such a key; `keys` are all there are.
pub(crate) fn read_keys(
    table: &DeTable<'_>,
    name: &str,
    keys: &[&str],
    known: &Vocabulary,
    errors: &mut Collector<'_>,
    mut read: impl FnMut(&str, &Given<'_>) -> Result<bool, Fault>,
) {
    for (key, given) in table {
        match read(key.get_ref(), given) {
            Ok(true) => {}
            Ok(false) => {
                let place = format!(" in [{name}]");
                errors.add(key.span(), unknown(key.get_ref(), &place, keys, &known.sections));
            }
            Err((span, invalid)) => errors.add(span, invalid),
        }
    }
}

/// Reads a table that stands under `key`, if it does.
pub(crate) fn read_table<T: Section>(
    into: &mut T,
    root: &DeTable<'_>,
    key: &str,
    known: &Vocabulary,
    errors: &mut Collector<'_>,
) {
    if let Some(table) = table(root, key, errors) {
        read_section(into, table, key, known, errors);
    }
}

/// The table that stands under `key`, if one does.
pub(crate) fn table<'r, 't>(
    root: &'r DeTable<'t>,
    key: &str,
    errors: &mut Collector<'_>,
) -> Option<&'r DeTable<'t>> {
    let given = root.get(key)?;
    let table = given.get_ref().as_table();
    if table.is_none() {
        let (span, invalid) = type_fault(given, "a table", &format!("[{key}]"));
        errors.add(span, invalid);
    }
    table
}
