//! Tokens and passwords: texts that are not shown.

use std::fmt;

use crate::Invalid;
use crate::value::{Fault, Given, Text, Value, list};

/// A text that is not shown: a token or a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The bytes of the text itself.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Text for Secret {
    const KIND: &'static str = "a token";
    const EXAMPLE: &'static str = "a-long-random-text";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
            let help = "use printable ASCII without spaces, as `openssl rand -hex 16` makes it";
            return Err(Invalid::new("this is no token", help));
        }
        Ok(Secret::new(text))
    }
}

impl Value for Vec<Secret> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let example = "[\"a-long-random-text\"]";
        list(given, "a list of tokens", example)
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;

    #[test]
    fn tokens_fit_into_a_header() {
        let read = |toml: &str| Vec::<Secret>::read(&DeValue::parse(toml).expect("TOML"));
        assert!(read("[\"abc\", \"d\"]").is_ok_and(|t| t[0].reveal() == "abc" && t.len() == 2));
        for bad in ["[\"\"]", "[\"a b\"]", "[\"ä\"]", "[1]"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
