//! Values as they stand in TOML.

use std::net::SocketAddr;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outflow_graph::View;
use outflow_packet::Level;
use toml::Spanned;
use toml::de::DeValue;

use crate::invalid::nearest;
use crate::vocabulary::Vocabulary;
use crate::{BitRate, ByteSize, Invalid, Share, parse_duration};

/// What is wrong with the bytes of a span.
pub type Fault = (Range<usize>, Invalid);

/// A value as TOML gives it, with the place where it stands.
pub type Given<'i> = Spanned<DeValue<'i>>;

/// What can stand behind a key.
pub trait Value: Sized {
    /// Reads the value, which is the same whatever protocols there are.
    ///
    /// # Errors
    /// It is none of its kind: where it stands, what is wrong, and what to do.
    fn read(given: &Given<'_>) -> Result<Self, Fault>;

    /// Reads a value that may be of a protocol.
    ///
    /// # Errors
    /// It is none of its kind.
    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        let _ = known;
        Self::read(given)
    }

    /// Reads a value that may be missing; some types have a word for that.
    ///
    /// # Errors
    /// It is none of its kind.
    fn read_optional(given: &Given<'_>, known: &Vocabulary) -> Result<Option<Self>, Fault> {
        Self::read_among(given, known).map(Some)
    }

    /// Makes files that it names files beside another one.
    fn beside(&mut self, file: &Path) {
        let _ = file;
    }
}

/// Reads the values of a list, which is `what`, like `example`.
pub(crate) fn list<T: Value>(given: &Given<'_>, what: &str, example: &str) -> Result<Vec<T>, Fault> {
    let list = given.get_ref().as_array().ok_or_else(|| type_fault(given, what, example))?;
    list.iter().map(T::read).collect()
}

impl<T: Value> Value for Option<T> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        T::read_optional(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        T::read_optional(given, known)
    }

    fn beside(&mut self, file: &Path) {
        self.iter_mut().for_each(|value| value.beside(file));
    }
}

/// A value that TOML has as a text.
pub trait Text: Sized {
    /// What it is, as in "a size".
    const KIND: &'static str;
    /// How one is written.
    const EXAMPLE: &'static str;
    /// The word for none, where none is possible.
    const NONE: Option<&'static str> = None;

    /// Reads the text.
    ///
    /// # Errors
    /// It is none of its kind: what is wrong, and what to do.
    fn from_text(text: &str) -> Result<Self, Invalid>;

    /// The same, with files that it names beside another one.
    fn beside(&mut self, file: &Path) {
        let _ = file;
    }
}

/// Reads a text, or the word for none.
///
/// # Errors
/// It is neither.
pub fn text_or_none<T: Text>(text: &str) -> Result<Option<T>, Invalid> {
    if T::NONE == Some(text) { Ok(None) } else { T::from_text(text).map(Some) }
}

impl<T: Text> Value for T {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let text = given.get_ref().as_str().ok_or_else(|| wrong_type(given, T::KIND, T::EXAMPLE))?;
        T::from_text(text).map_err(|invalid| (given.span(), invalid))
    }

    fn read_optional(given: &Given<'_>, _: &Vocabulary) -> Result<Option<Self>, Fault> {
        match given.get_ref().as_str() {
            Some(text) => text_or_none(text).map_err(|invalid| (given.span(), invalid)),
            None => Self::read(given).map(Some),
        }
    }

    fn beside(&mut self, file: &Path) {
        Text::beside(self, file);
    }
}

macro_rules! text {
    ($($type:ty: $kind:literal, $example:literal $(, or $none:literal)? => $read:expr;)+) => {
        $(impl Text for $type {
            const KIND: &'static str = $kind;
            const EXAMPLE: &'static str = $example;
            $(const NONE: Option<&'static str> = Some($none);)?

            fn from_text(text: &str) -> Result<Self, Invalid> {
                $read(text)
            }
        })+
    };
}

text! {
    String: "a text", "stage" => |text: &str| Ok(text.to_owned());
    ByteSize: "a size", "8 MB" => str::parse;
    BitRate: "a rate", "20 Mbit/s", or "off" => str::parse;
    View: "a view", "part=640x360+16+0&size=320x180&gray=1" => view;
    Share: "a share", "50 %", or "off" => str::parse;
    Duration: "a duration", "10 s" => parse_duration;
    SocketAddr: "an address with a port", "[::]:8554", or "off" => socket_address;
    RangeInclusive<u16>: "a range of ports", "8000-8999" => ports;
}

impl Value for Level {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let number = usize::read(given)?;
        let level = u8::try_from(number).ok().and_then(Level::new);
        level.ok_or_else(|| {
            let help = format!("write 1 (the best) to {}", Level::MAX);
            (given.span(), Invalid::new(format!("there is no level {number}"), help))
        })
    }
}

impl Text for PathBuf {
    const KIND: &'static str = "a file";
    const EXAMPLE: &'static str = "cert.pem";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        path(text)
    }

    fn beside(&mut self, file: &Path) {
        *self = beside(file, std::mem::take(self));
    }
}

/// Names of files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files(pub Vec<PathBuf>);

impl Value for Files {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of files", "[\"clip.sdp\"]").map(Files)
    }

    fn beside(&mut self, file: &Path) {
        self.0.iter_mut().for_each(|path| Text::beside(path, file));
    }
}

impl Value for Vec<String> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        match given.get_ref().as_array() {
            Some(list) => list.iter().map(String::read).collect(),
            // One is a list, too.
            None => String::read(given).map(|text| vec![text]),
        }
    }
}

impl Value for usize {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let number = given.get_ref().as_integer();
        let number = number.ok_or_else(|| wrong_type(given, "a whole number", "20000"))?;
        let value = usize::from_str_radix(number.as_str(), number.radix());
        value.map_err(|_| {
            let what = format!("{} is no number of things", number.as_str());
            (given.span(), Invalid::new(what, "write a whole number, 0 or more"))
        })
    }
}

impl Value for bool {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        given.get_ref().as_bool().ok_or_else(|| type_fault(given, "true or false", "true"))
    }
}

/// A path of the configuration as one from the working directory.
pub(crate) fn beside(file: &Path, path: PathBuf) -> PathBuf {
    match file.parent() {
        Some(folder) => folder.join(path),
        None => path,
    }
}

/// One of several words; use [`words!`](crate::words!) to make a type of them.
///
/// # Errors
/// It is none of them.
pub fn word<T: Copy>(text: &str, known: &[(&'static str, T)]) -> Result<T, Invalid> {
    known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<_> = known.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let help = match nearest(text, known.iter().map(|(word, _)| *word)) {
            Some(near) => format!("did you mean \"{near}\"? possible: {}", all.join(", ")),
            None => format!("possible: {}", all.join(", ")),
        };
        Invalid::new(format!("\"{text}\" is not one of the possible words"), help)
    })
}

/// Makes an enumeration that is written as one of several words.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident: $kind:literal {
        $($(#[$word_doc:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($(#[$word_doc])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::Invalid;

            fn from_str(text: &str) -> Result<Self, $crate::Invalid> {
                $crate::word(text, &[$(($word, Self::$variant),)+])
            }
        }

        impl $crate::Text for $name {
            const KIND: &'static str = $kind;
            const EXAMPLE: &'static str = $crate::first(&[$($word,)+]);

            fn from_text(text: &str) -> Result<Self, $crate::Invalid> {
                text.parse()
            }
        }
    };
}
/// The first of `words`.
pub const fn first(words: &[&'static str]) -> &'static str {
    words[0]
}

/// The fault of a value that is no text.
pub(crate) fn wrong_type(given: &Given<'_>, wanted: &str, example: &str) -> Fault {
    type_fault(given, wanted, &format!("\"{example}\""))
}

/// The fault of a value that has another TOML type than the one wanted.
pub fn type_fault(given: &Given<'_>, wanted: &str, example: &str) -> Fault {
    let what = format!("{wanted} is needed here, not {}", type_name(given.get_ref()));
    (given.span(), Invalid::new(what, format!("write it like {example}")))
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Reads `ADDRESS:PORT`; names are refused, because they may mean another host tomorrow.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, Invalid> {
    let help = "write it like 0.0.0.0:5000, 239.1.1.1:5000 or [::1]:5000";
    let at: SocketAddr =
        text.parse().map_err(|_| Invalid::new(format!("'{text}' is no IP address with a port"), help))?;
    if at.port() == 0 {
        return Err(Invalid::new("port 0 is no port", "choose one from 1 to 65535"));
    }
    Ok(at)
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, Invalid> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(first..=last),
        _ => Err(Invalid::new(format!("'{text}' is no range of ports"), "write it like \"8000-8999\"")),
    }
}

fn path(text: &str) -> Result<PathBuf, Invalid> {
    if text.is_empty() || text.contains('\0') {
        let help = "write a path; it may be relative to this file";
        return Err(Invalid::new("this names no file", help));
    }
    Ok(PathBuf::from(text))
}

fn view(text: &str) -> Result<View, Invalid> {
    let help = "write it like \"part=640x360+16+0&size=320x180&gray=1\"";
    text.parse().map_err(|_| Invalid::new(format!("'{text}' is no view"), help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn read<T: Value>(toml: &str) -> Result<T, String> {
        T::read(&DeValue::parse(toml).expect("TOML")).map_err(|(_, invalid)| invalid.to_string())
    }

    #[test]
    fn numbers_are_whole_and_not_negative() {
        assert_eq!(read("20_000"), Ok(20_000_usize));
        assert_eq!(read("0x10"), Ok(16_usize));
        assert!(read::<usize>("-1").is_err_and(|e| e.contains("no number of things")));
        assert!(read::<usize>("99999999999999999999").is_err());
        assert!(read::<usize>("1.5").is_err_and(|e| e.contains("a number with a point")));
    }

    #[test]
    fn a_number_without_unit_is_answered_with_an_example() {
        assert_eq!(
            read::<ByteSize>("8000000"),
            Err("a size is needed here, not a number: write it like \"8 MB\"".to_owned())
        );
        assert!(read::<Vec<Secret>>("\"a\"").is_err_and(|e| e.contains("[\"a-long-random-text\"]")));
    }

    #[test]
    fn off_is_a_word_for_no_listener_only() {
        assert_eq!(read::<Option<SocketAddr>>("\"off\""), Ok(None));
        assert!(read::<SocketAddr>("\"off\"").is_err());
        assert_eq!(read::<Option<PathBuf>>("\"off\""), Ok(Some(PathBuf::from("off"))));
    }

    #[test]
    fn one_address_is_a_list_of_one() {
        assert_eq!(read("\"nats://a:4222\""), Ok(vec!["nats://a:4222".to_owned()]));
        assert_eq!(read("[\"a\", \"b\"]"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert!(read::<Vec<String>>("[1]").is_err());
    }

    #[test]
    fn ranges_of_ports_are_in_order() {
        assert_eq!(read("\"8000-8999\""), Ok(8000..=8999_u16));
        for bad in ["\"8999-8000\"", "\"0-9\"", "\"8000-\"", "\"1-70000\"", "\"a-b\""] {
            assert!(read::<RangeInclusive<u16>>(bad).is_err(), "{bad}");
        }
    }
}
