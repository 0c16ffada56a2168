//! Names of places and transitions, for people.

use core::fmt;
use std::sync::Arc;

use crate::limits::NAME_BYTES_MAX;

/// A name: a word, and a number for one of many alike, as in `I0[14]`.
///
/// Ends of a connection need not call things the same: names do not go on the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    word: Arc<str>,
    number: Option<u32>,
}

impl Name {
    /// A name without a number.
    pub fn new(word: &str) -> Self {
        Name { word: word.into(), number: None }
    }

    /// One of many of this name.
    pub fn numbered(&self, number: u32) -> Self {
        Name { word: self.word.clone(), number: Some(number) }
    }

    /// The name without its number.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// The number.
    pub fn number(&self) -> Option<u32> {
        self.number
    }

    /// Whether it is a name as a text can say it: letters, digits, `-`, `_` and `.`, not too many.
    pub(crate) fn is_valid(&self) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !self.word.is_empty() && self.word.len() <= NAME_BYTES_MAX && self.word.bytes().all(fits)
    }

    /// Whether it is the next one after `other`.
    pub(crate) fn follows(&self, other: &Name) -> bool {
        let next = other.number.and_then(|number| number.checked_add(1));
        next.is_some() && self.number == next && self.word == other.word
    }
}

impl From<&str> for Name {
    fn from(word: &str) -> Self {
        Name::new(word)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{}[{number}]", self.word),
            None => f.write_str(&self.word),
        }
    }
}
