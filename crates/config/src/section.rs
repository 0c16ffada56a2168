//! Tables of a configuration: one declaration says keys, types, defaults and meaning.

use toml::de::DeTable;

use crate::Invalid;
use crate::error::Collector;
use crate::invalid::nearest;
use crate::model::SECTIONS;

/// A table whose keys are the fields of a type.
pub(crate) trait Section: Sized {
    /// The table's name and all keys that may stand in it.
    const KEYS: &'static [&'static str];

    /// Takes what `table` says over what is there already; mistakes go to `errors`.
    fn read(&mut self, table: &DeTable<'_>, name: &str, errors: &mut Collector<'_>);

    /// The keys in which two values differ.
    fn changed(&self, other: &Self) -> Vec<&'static str>;
}

/// Makes a type of a table: its fields are the keys, each with its default.
macro_rules! section {
    ($(#[$doc:meta])* $vis:vis struct $name:ident {
        $($(#[$key_doc:meta])* $key:ident: $type:ty = $default:expr,)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis struct $name { $($(#[$key_doc])* pub $key: $type,)+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::section::Section for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($key),)+];

            fn read(
                &mut self,
                table: &toml::de::DeTable<'_>,
                name: &str,
                errors: &mut $crate::error::Collector<'_>,
            ) {
                for (key, value) in table {
                    match key.get_ref().as_ref() {
                        $(stringify!($key) => match $crate::value::Value::read(value) {
                            Ok(value) => self.$key = value,
                            Err((span, invalid)) => errors.add(span, invalid),
                        },)+
                        other => {
                            let place = format!(" in [{name}]");
                            let invalid = $crate::section::unknown(other, &place, Self::KEYS);
                            errors.add(key.span(), invalid);
                        }
                    }
                }
            }

            fn changed(&self, other: &Self) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if self.$key != other.$key {
                    keys.push(stringify!($key));
                })+
                keys
            }
        }
    };
}
pub(crate) use section;

/// What to say about a key that is not known.
pub(crate) fn unknown(key: &str, place: &str, known: &[&str]) -> Invalid {
    let what = format!("unknown key '{key}'{place}");
    if let Some(near) = nearest(key, known.iter().copied()) {
        return Invalid::new(what, format!("did you mean '{near}'?"));
    }
    let home = SECTIONS.iter().find(|other| other.keys.contains(&key));
    let help = match home {
        Some(home) => format!("'{key}' belongs in {}", home.header),
        None => format!("possible here: {}", known.join(", ")),
    };
    Invalid::new(what, help)
}

/// Reads a table that stands under `key`, if it does.
pub(crate) fn read_table<T: Section>(
    into: &mut T,
    root: &DeTable<'_>,
    key: &str,
    errors: &mut Collector<'_>,
) {
    let Some(given) = root.get(key) else {
        return;
    };
    match given.get_ref().as_table() {
        Some(table) => into.read(table, key, errors),
        None => {
            let (span, invalid) = crate::value::type_fault(given, "a table", &format!("[{key}]"));
            errors.add(span, invalid);
        }
    }
}
