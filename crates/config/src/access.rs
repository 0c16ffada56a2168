//! Tokens that have a name: `[[access.tokens]]`.

use std::fmt;

use outflow_media::Network;

use crate::section::{first_line, whole};
use crate::value::{Fault, Given, Text, Value, list, type_fault};
use crate::{Date, Invalid, Secret, Vocabulary, check_name, section, words};

words! {
    /// A right that a token can give.
    pub enum TokenRight: "a right" {
        /// To be a stream's source.
        Publish = "publish",
        /// To receive a stream.
        Play = "play",
        /// To look at everything and to change it.
        Control = "control",
        /// To be another relay that streams are shared with.
        Relay = "relay",
    }
}

/// A token, of which only hashes are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// What it is called in the log and in the API.
    pub name: String,
    /// SHA-256 of it.
    pub sha256: TokenHash,
    /// Hashes of its name, the realm and itself, by which it can be shown in RTSP's Digest.
    pub ha1: Vec<Ha1>,
    /// What it is good for.
    pub rights: Vec<TokenRight>,
    /// With which streams.
    pub streams: Vec<StreamPattern>,
    /// From which addresses; from all of them if there are none.
    pub from: Vec<Network>,
    /// When it is good no longer.
    pub expires: Option<Date>,
}

section! {
    /// The keys of `[[access.tokens]]` as they stand in the file.
    pub(crate) struct TokenKeys {
        /// What it is called.
        name: Option<TokenName> = None,
        /// SHA-256 of it.
        sha256: Option<TokenHash> = None,
        /// For RTSP's Digest.
        ha1: Vec<Ha1> = Vec::new(),
        /// What it is good for.
        rights: Vec<TokenRight> = Vec::new(),
        /// With which streams.
        streams: Vec<StreamPattern> = vec![StreamPattern(ALL.to_owned())],
        /// From which addresses.
        from: Vec<Network> = Vec::new(),
        /// When it is good no longer.
        expires: Option<Date> = None,
    }
}

/// All streams.
const ALL: &str = "*";

/// Streams by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPattern(String);

impl StreamPattern {
    /// Whether a stream is one of them.
    pub fn matches(&self, stream: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => stream.starts_with(beginning),
            None => stream == self.0,
        }
    }
}

impl fmt::Display for StreamPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Text for StreamPattern {
    const KIND: &'static str = "a name of streams";
    const EXAMPLE: &'static str = "live/*";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        // What begins a name is one with a letter more.
        let name =
            text.strip_suffix('*').map_or_else(|| text.to_owned(), |beginning| format!("{beginning}x"));
        check_name(&name).map_err(|Invalid { what, .. }| {
            Invalid::new(what, "write the name of a stream, or how names begin and a star, as in \"live/*\"")
        })?;
        Ok(StreamPattern(text.to_owned()))
    }
}

/// What a token is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenName(String);

/// Characters of a token's name.
const NAME_CHARS: usize = 64;

impl Text for TokenName {
    const KIND: &'static str = "a name";
    const EXAMPLE: &'static str = "studio";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if text.is_empty() || text.len() > NAME_CHARS || !text.chars().all(allowed) {
            let help = format!("use up to {NAME_CHARS} letters, digits, '_', '.' and '-'");
            return Err(Invalid::new("this is no name of a token", help));
        }
        Ok(TokenName(text.to_owned()))
    }
}

/// SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

/// With it, tokens that are no random ones can be tried.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

impl Text for TokenHash {
    const KIND: &'static str = "a SHA-256";
    const EXAMPLE: &'static str = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let help = "write 64 hexadecimal digits, as `outflow token` prints them";
        let wrong = || Invalid::new("this is no SHA-256 of a token", help);
        if text.len() != 64 || !is_hexadecimal(text) {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (byte, at) in hash.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(TokenHash(hash))
    }
}

/// The hash of a token's name, the realm and the token (RFC 7616, A1 of section 3.4.2): by MD5, or by SHA-256. For
/// Digest it is as good as the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ha1(pub Secret);

impl Text for Ha1 {
    const KIND: &'static str = "an HA1 of Digest";
    const EXAMPLE: &'static str = "939e7578ed9e3c518a452acee763bce9";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        if !matches!(text.len(), 32 | 64) || !is_hexadecimal(text) {
            let help = "write the 32 or 64 hexadecimal digits that `outflow token` prints";
            return Err(Invalid::new("this is no HA1 of a token", help));
        }
        Ok(Ha1(Secret::new(text.to_ascii_lowercase())))
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Value for Vec<Ha1> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of hashes", "[\"939e7578ed9e3c518a452acee763bce9\"]")
    }
}

impl Value for Vec<TokenRight> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of rights", "[\"publish\", \"play\"]")
    }
}

impl Value for Vec<StreamPattern> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of names", "[\"live/*\", \"stage\"]")
    }
}

impl Value for Vec<AccessToken> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        let mut tokens: Vec<AccessToken> = Vec::new();
        let all = given.get_ref().as_array();
        for given in all.ok_or_else(|| type_fault(given, "a list of tables", "[[access.tokens]]"))? {
            let token = token(given, known)?;
            if let Some(other) = tokens.iter().find(|o| o.name == token.name || o.sha256 == token.sha256) {
                let what = format!("the token '{}' is there as '{}' already", token.name, other.name);
                let help = "give each token a name of its own, and list it once";
                return Err((first_line(given), Invalid::new(what, help)));
            }
            tokens.push(token);
        }
        Ok(tokens)
    }
}

fn token(given: &Given<'_>, known: &Vocabulary) -> Result<AccessToken, Fault> {
    let fault = |what: &str, help: &str| (first_line(given), Invalid::new(what, help));
    let TokenKeys { name, sha256, ha1, rights, streams, from, expires } =
        whole(given, "[[access.tokens]]", known)?;
    let TokenName(name) =
        name.ok_or_else(|| fault("this token has no name", "add one, as in name = \"studio\""))?;
    let sha256 = sha256.ok_or_else(|| fault("this token has no sha256", "`outflow token` prints it"))?;
    if rights.is_empty() || streams.is_empty() {
        let help = "add rights = [\"publish\", \"play\"], and leave streams out for all of them";
        return Err(fault("this token is good for nothing", help));
    }
    let is_of_all = rights.iter().any(|right| matches!(right, TokenRight::Control | TokenRight::Relay));
    if is_of_all && streams.iter().any(|pattern| pattern.0 != ALL) {
        let help = "leave streams out, or make another token for these rights";
        return Err(fault("control and relay are rights on all streams", help));
    }
    Ok(AccessToken { name, sha256, ha1, rights, streams, from, expires })
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;

    const HASH: &str = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";

    fn read(keys: &str) -> Result<Vec<AccessToken>, String> {
        let text = format!("[{{ {keys} }}]").replace("HASH", &format!("\"{HASH}\""));
        let read = Vec::<AccessToken>::read(&DeValue::parse(&text).expect("TOML"));
        read.map_err(|(_, invalid)| invalid.to_string())
    }

    #[test]
    fn a_token_says_what_it_is_good_for() {
        let all = read(
            "name = \"studio\", sha256 = HASH, rights = [\"publish\"], streams = [\"live/*\", \"stage\"], \
             from = [\"10.0.0.0/8\", \"2001:db8::/32\"], expires = \"2026-12-31T00:00:00Z\", \
             ha1 = [\"939E7578ED9E3C518A452ACEE763BCE9\"]",
        )
        .expect("a token");
        let token = &all[0];
        assert_eq!((token.name.as_str(), token.sha256.0[0]), ("studio", 0x5e));
        assert_eq!(token.ha1, [Ha1(Secret::new("939e7578ed9e3c518a452acee763bce9"))]);
        assert_eq!((token.rights.as_slice(), token.from.len()), (&[TokenRight::Publish][..], 2));
        let may = |stream: &str| token.streams.iter().any(|pattern| pattern.matches(stream));
        assert_eq!(["live/a", "live/a/b", "stage"].map(may), [true; 3]);
        assert_eq!(["live", "lives", "stage2", "x/live/a"].map(may), [false; 4]);
        let plain = read("name = \"a\", sha256 = HASH, rights = [\"control\", \"relay\"]").expect("a token");
        assert!(plain[0].streams[0].matches("anything") && plain[0].from.is_empty());
    }

    #[test]
    fn what_is_no_token_is_told_with_what_to_do() {
        for (keys, what) in [
            ("name = \"a\", rights = [\"play\"]", "no sha256"),
            ("sha256 = HASH, rights = [\"play\"]", "no name"),
            ("name = \"a\", sha256 = HASH", "good for nothing"),
            ("name = \"a\", sha256 = HASH, rights = [\"play\"], streams = []", "good for nothing"),
            ("name = \"a\", sha256 = HASH, rights = [\"control\"], streams = [\"x\"]", "all streams"),
            ("name = \"a:b\", sha256 = HASH, rights = [\"play\"]", "no name of a token"),
            ("name = \"a\", sha256 = \"5e88\", rights = [\"play\"]", "no SHA-256"),
            ("name = \"a\", sha256 = HASH, rights = [\"watch\"]", "possible: \"publish\""),
            ("name = \"a\", sha256 = HASH, rights = [\"play\"], streams = [\"*/a\"]", "and a star"),
            ("name = \"a\", sha256 = HASH, rights = [\"play\"], from = [\"10.0.0.0/33\"]", "no range"),
            ("name = \"a\", sha256 = HASH, rights = [\"play\"], ha1 = [\"12\"]", "no HA1"),
            ("name = \"a\", sha256 = HASH, rights = [\"play\"], tokn = 1", "unknown key 'tokn'"),
        ] {
            let error = read(keys).expect_err(keys);
            assert!(error.contains(what), "{keys}: {error}");
        }
        let one = format!("{{ name = \"a\", sha256 = \"{HASH}\", rights = [\"play\"] }}");
        let twice = format!("[{one}, {one}]");
        assert!(Vec::<AccessToken>::read(&DeValue::parse(&twice).expect("TOML")).is_err());
    }

    #[test]
    fn hashes_are_not_shown() {
        let ha1 = "ha1 = [\"939e7578ed9e3c518a452acee763bce9\"]";
        let token = read(&format!("name = \"a\", sha256 = HASH, rights = [\"play\"], {ha1}"));
        let shown = format!("{token:?}");
        assert!(shown.contains("\"a\"") && !shown.contains("94, 136") && !shown.contains("939e"), "{shown}");
    }
}
