//! A program that is asked by HTTP which peer may come in: `[access.hook]`.

use crate::section::{missing, whole};
use crate::value::{Fault, Given, Text as _, Value};
use crate::{Secret, TrustedUrl, Vocabulary, section, words};

words! {
    /// What becomes of a peer if the hook does not answer.
    pub enum OnError: "a choice" {
        /// It does not come in.
        Deny = "deny",
        /// It does.
        Allow = "allow",
    }
}

/// What is asked which peer may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookConfig {
    /// The HTTP address that is asked.
    pub url: TrustedUrl,
    /// What questions are signed with.
    pub secret: Option<Secret>,
    /// What holds if it does not answer.
    pub on_error: OnError,
}

section! {
    /// The keys of `[access.hook]` as they stand in the file.
    pub(crate) struct HookKeys {
        /// The HTTP address.
        url: Option<TrustedUrl> = None,
        /// What questions are signed with.
        secret: Option<Secret> = None,
        /// What holds if it does not answer.
        on_error: OnError = OnError::Deny,
    }
}

impl Value for HookConfig {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        const HEADER: &str = "[access.hook]";
        let HookKeys { url, secret, on_error } = whole(given, HEADER, known)?;
        let url = url.ok_or_else(|| missing(given, HEADER, "url", TrustedUrl::EXAMPLE))?;
        Ok(HookConfig { url, secret, on_error })
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;

    fn read(keys: &str) -> Result<HookConfig, String> {
        let read = HookConfig::read(&DeValue::parse(&format!("{{ {keys} }}")).expect("TOML"));
        read.map_err(|(_, invalid)| invalid.to_string())
    }

    #[test]
    fn a_hook_has_an_address_and_denies_unless_it_is_told_otherwise() {
        let hook = read("url = \"https://id.example/x?key=s3cret\", secret = \"s1gn\"").expect("good");
        assert_eq!(hook.on_error, OnError::Deny);
        let shown = format!("{hook:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("s1gn"), "{shown}");
        let open = read("url = \"http://127.0.0.1:9/\", on_error = \"allow\"").expect("good");
        assert_eq!(open.on_error, OnError::Allow);
        for (keys, what) in [
            ("", "no url"),
            ("url = \"http://id.example/\"", "cannot be trusted"),
            ("url = \"https://id.example\", on_error = \"wait\"", "possible: "),
            ("url = \"https://id.example\", ur = 1", "unknown key 'ur'"),
        ] {
            let error = read(keys).expect_err(keys);
            assert!(error.contains(what), "{keys}: {error}");
        }
    }
}
