//! Signed tokens (JSON Web Tokens, RFC 7519): `[access.jwt]`.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::section::{missing, whole};
use crate::value::{Fault, Given, Text, Value, list};
use crate::{Invalid, TrustedUrl, Vocabulary, section, words};

words! {
    /// How a token may be signed: by a private key, so that what the relay knows makes no token.
    pub enum JwtAlgorithm: "an algorithm" {
        /// Ed25519.
        EdDsa = "EdDSA",
        /// ECDSA with P-256.
        Es256 = "ES256",
        /// ECDSA with P-384.
        Es384 = "ES384",
        /// RSA of PKCS #1 with SHA-256.
        Rs256 = "RS256",
        /// The same with SHA-384.
        Rs384 = "RS384",
        /// The same with SHA-512.
        Rs512 = "RS512",
        /// RSA-PSS with SHA-256.
        Ps256 = "PS256",
        /// The same with SHA-384.
        Ps384 = "PS384",
        /// The same with SHA-512.
        Ps512 = "PS512",
    }
}

/// Which signed tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtConfig {
    /// Where their keys are.
    pub jwks: KeysAt,
    /// What signs them (`iss`).
    pub issuer: String,
    /// What they are made for (`aud`).
    pub audience: String,
    /// By which algorithms.
    pub algorithms: Vec<JwtAlgorithm>,
}

section! {
    /// The keys of `[access.jwt]` as they stand in the file.
    pub(crate) struct JwtKeys {
        /// Where the keys are.
        jwks: Option<KeysAt> = None,
        /// What signs tokens.
        issuer: Option<String> = None,
        /// What they are made for.
        audience: Option<String> = None,
        /// How they are signed.
        algorithms: Vec<JwtAlgorithm> = vec![JwtAlgorithm::EdDsa, JwtAlgorithm::Es256, JwtAlgorithm::Rs256],
    }
}

/// Where a set of keys is (JWKS, RFC 7517).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysAt {
    /// It is asked for.
    Url(TrustedUrl),
    /// It is read.
    File(PathBuf),
}

impl fmt::Display for KeysAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysAt::Url(TrustedUrl(url)) => f.write_str(url.shown()),
            KeysAt::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Text for KeysAt {
    const KIND: &'static str = "a place of keys";
    const EXAMPLE: &'static str = "https://id.example/jwks.json";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        if text.contains("://") {
            return TrustedUrl::from_text(text).map(KeysAt::Url);
        }
        PathBuf::from_text(text).map(KeysAt::File)
    }

    fn beside(&mut self, file: &Path) {
        if let KeysAt::File(path) = self {
            Text::beside(path, file);
        }
    }
}

impl Value for Vec<JwtAlgorithm> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of algorithms", "[\"ES256\", \"EdDSA\"]")
    }
}

impl Value for JwtConfig {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        const HEADER: &str = "[access.jwt]";
        let JwtKeys { jwks, issuer, audience, algorithms } = whole(given, HEADER, known)?;
        let missing = |key: &str, example: &str| missing(given, HEADER, key, example);
        let jwks = jwks.ok_or_else(|| missing("jwks", KeysAt::EXAMPLE))?;
        let issuer = issuer.ok_or_else(|| missing("issuer", "https://id.example"))?;
        let audience = audience.ok_or_else(|| missing("audience", "outflow"))?;
        if algorithms.is_empty() {
            return Err(missing("algorithms", "ES256"));
        }
        Ok(JwtConfig { jwks, issuer, audience, algorithms })
    }

    fn beside(&mut self, file: &Path) {
        Text::beside(&mut self.jwks, file);
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;

    fn read(keys: &str) -> Result<JwtConfig, String> {
        let read = JwtConfig::read(&DeValue::parse(&format!("{{ {keys} }}")).expect("TOML"));
        read.map_err(|(_, invalid)| invalid.to_string())
    }

    #[test]
    fn a_table_says_which_signed_tokens_are_taken() {
        let all = "issuer = \"https://id.example\", audience = \"outflow\"";
        let mut jwt = read(&format!("jwks = \"keys.json\", {all}")).expect("good");
        assert_eq!(jwt.algorithms, [JwtAlgorithm::EdDsa, JwtAlgorithm::Es256, JwtAlgorithm::Rs256]);
        Value::beside(&mut jwt, Path::new("/etc/outflow/outflow.toml"));
        assert_eq!(jwt.jwks, KeysAt::File("/etc/outflow/keys.json".into()));
        for url in ["https://id.example/jwks", "http://127.0.0.1:8000/jwks", "http://localhost/x"] {
            let jwt = read(&format!("jwks = \"{url}\", {all}")).expect("good");
            assert_eq!(jwt.jwks.to_string(), url);
        }
    }

    #[test]
    fn what_cannot_be_trusted_is_refused() {
        let all = "issuer = \"a\", audience = \"b\"";
        for (keys, what) in [
            (format!("jwks = \"http://id.example/jwks\", {all}"), "cannot be trusted"),
            (format!("jwks = \"k\", {all}, algorithms = [\"HS256\"]"), "possible: "),
            (format!("jwks = \"k\", {all}, algorithms = []"), "no algorithms"),
            ("jwks = \"k\", issuer = \"a\"".to_owned(), "no audience"),
            ("jwks = \"k\", audience = \"a\"".to_owned(), "no issuer"),
            (all.to_owned(), "no jwks"),
            (format!("jwks = \"k\", {all}, isuer = 1"), "unknown key 'isuer'"),
        ] {
            let error = read(&keys).expect_err(&keys);
            assert!(error.contains(what), "{keys}: {error}");
        }
    }
}
