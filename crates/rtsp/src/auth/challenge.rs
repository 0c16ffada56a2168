//! WWW-Authenticate: reading a server's challenges, and posing our own.

use super::{Algorithm, Credentials, DigestAnswer, parameter, quote};
use crate::limits::CHALLENGES;
use crate::transport::split_unquoted;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What a server asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// The password itself, RFC 7617.
    Basic {
        /// For what the password is.
        realm: String,
    },
    /// Proof of knowing the password, RFC 7616.
    Digest {
        /// For what the password is.
        realm: String,
        /// Goes into the digest.
        nonce: String,
        /// Goes back as it came.
        opaque: Option<String>,
        /// What to compute with.
        algorithm: Algorithm,
        /// The `-sess` variant.
        session: bool,
        /// Whether `qop=auth` is offered; if not, RFC 2069 is meant.
        qop_auth: bool,
        /// Only the nonce was too old, the password was right.
        stale: bool,
    },
}

impl Challenge {
    /// As a server poses it, so that it can be read again.
    pub(crate) fn emit(&self) -> String {
        match self {
            Challenge::Basic { realm } => format!("Basic realm=\"{}\"", quote(realm)),
            Challenge::Digest { realm, nonce, opaque, algorithm, session, qop_auth, stale } => {
                let (realm, nonce, name) = (quote(realm), quote(nonce), algorithm.name());
                let session = if *session { "-sess" } else { "" };
                let opaque = opaque.as_ref().map(|it| format!(", opaque=\"{}\"", quote(it)));
                let (opaque, qop) =
                    (opaque.unwrap_or_default(), if *qop_auth { ", qop=\"auth\"" } else { "" });
                format!(
                    "Digest realm=\"{realm}\", nonce=\"{nonce}\", algorithm={name}{session}{opaque}{qop}, stale={stale}"
                )
            }
        }
    }

    /// The challenges of a WWW-Authenticate value; what is not understood is left out. Several
    /// headers may have been joined by commas.
    pub fn parse_all(value: &str) -> Vec<Challenge> {
        let mut schemes: Vec<(&str, Vec<(String, String)>)> = Vec::new();
        for part in split_unquoted(value, ',').map(str::trim).filter(|part| !part.is_empty()) {
            // A part is "name=value", or begins a challenge: "Scheme" or "Scheme name=value".
            let (head, rest) = part.split_once(' ').unwrap_or((part, ""));
            let begins = !head.contains('=') && !rest.trim_start().starts_with('=');
            let text = if begins {
                if schemes.len() == CHALLENGES {
                    break;
                }
                schemes.push((head, Vec::new()));
                rest
            } else {
                part
            };
            if let (Some((_, parameters)), Some(pair)) = (schemes.last_mut(), parameter(text)) {
                parameters.push(pair);
            }
        }
        schemes.iter().filter_map(|(scheme, parameters)| Challenge::from_parts(scheme, parameters)).collect()
    }

    fn from_parts(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
        let get = |name: &str| parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let realm = get("realm").unwrap_or_default().to_owned();
        if scheme.eq_ignore_ascii_case("Basic") {
            return Some(Challenge::Basic { realm });
        }
        if !scheme.eq_ignore_ascii_case("Digest") {
            return None;
        }
        let (algorithm, session) = match get("algorithm").unwrap_or("MD5").to_ascii_uppercase().as_str() {
            "MD5" => (Algorithm::Md5, false),
            "MD5-SESS" => (Algorithm::Md5, true),
            "SHA-256" => (Algorithm::Sha256, false),
            "SHA-256-SESS" => (Algorithm::Sha256, true),
            _ => return None,
        };
        let qop = get("qop").filter(|qop| !qop.is_empty());
        let qop_auth = qop.is_some_and(|qop| qop.split(',').any(|q| q.trim().eq_ignore_ascii_case("auth")));
        if qop.is_some() && !qop_auth {
            return None; // auth-int alone: no peer does that in RTSP
        }
        Some(Challenge::Digest {
            realm,
            nonce: get("nonce")?.to_owned(),
            opaque: get("opaque").map(str::to_owned),
            algorithm,
            session,
            qop_auth,
            stale: get("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
        })
    }

    /// The one to answer: Digest before Basic, SHA-256 before MD5.
    pub fn strongest(challenges: Vec<Challenge>) -> Option<Challenge> {
        challenges.into_iter().max_by_key(|challenge| match challenge {
            Challenge::Basic { .. } => None,
            Challenge::Digest { algorithm, .. } => Some(*algorithm),
        })
    }

    /// What the password is for, in the server's words.
    pub fn realm(&self) -> &str {
        match self {
            Challenge::Basic { realm } | Challenge::Digest { realm, .. } => realm,
        }
    }

    /// Whether the server only wants a newer nonce.
    pub const fn is_stale(&self) -> bool {
        matches!(self, Challenge::Digest { stale: true, .. })
    }

    /// The Authorization value that answers this challenge for one request.
    ///
    /// `count` is how often the challenge has been answered, from 1; `cnonce` should be different
    /// for every one, and is the caller's to draw.
    pub fn answer(
        &self,
        credentials: &Credentials,
        method: &str,
        uri: &str,
        count: u32,
        cnonce: &str,
    ) -> String {
        match self {
            Challenge::Basic { .. } => {
                format!("Basic {}", STANDARD.encode(format!("{}:{}", credentials.user, credentials.password)))
            }
            Challenge::Digest { realm, nonce, opaque, algorithm, session, qop_auth, .. } => {
                let mut answer = DigestAnswer {
                    user: credentials.user.clone(),
                    realm: realm.clone(),
                    nonce: nonce.clone(),
                    uri: uri.to_owned(),
                    algorithm: *algorithm,
                    session: *session,
                    qop_auth: *qop_auth,
                    nc: format!("{count:08x}"),
                    cnonce: cnonce.to_owned(),
                    opaque: opaque.clone(),
                    response: String::new(),
                };
                answer.response = answer.expected(&credentials.password, method);
                answer.to_string()
            }
        }
    }
}

/// The asking side: what a server challenges its peer with on one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Realm {
    name: String,
    nonce: String,
    basic: bool,
}

impl Realm {
    /// A realm called `name`. The caller draws the nonce, a new one for every connection, so that
    /// answers overheard on another one are of no use. `basic` offers Basic as well, which shows
    /// the password to any eavesdropper on a connection without TLS.
    pub fn new(name: &str, nonce: String, basic: bool) -> Self {
        Realm { name: name.to_owned(), nonce, basic }
    }

    /// The nonce of this connection.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// The value of WWW-Authenticate, one line a challenge.
    ///
    /// MD5 comes last: players that know nothing else take the last Digest that they see.
    pub fn challenges(&self) -> String {
        let (name, nonce) = (quote(&self.name), quote(&self.nonce));
        let basic = if self.basic { format!("Basic realm=\"{name}\"\n") } else { String::new() };
        let digest = |algorithm: Algorithm| {
            let algorithm = algorithm.name();
            format!("Digest realm=\"{name}\", nonce=\"{nonce}\", algorithm={algorithm}, qop=\"auth\"")
        };
        format!("{basic}{}\n{}", digest(Algorithm::Sha256), digest(Algorithm::Md5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn joined_challenges_come_apart() {
        let value = "Digest realm=\"a, \\\"b\\\"\", nonce=\"n1\", qop=\"auth,auth-int\", stale=TRUE, \
                     Negotiate, Basic realm=\"cam\", Digest realm=x,nonce=n2,algorithm=SHA-256";
        let all = Challenge::parse_all(value);
        assert_eq!(all.len(), 3);
        let Challenge::Digest { realm, nonce, qop_auth, stale, .. } = &all[0] else { panic!("{all:?}") };
        assert_eq!((realm.as_str(), nonce.as_str(), *qop_auth, *stale), ("a, \"b\"", "n1", true, true));
        assert_eq!(all[1], Challenge::Basic { realm: "cam".to_owned() });
        let best = Challenge::strongest(all).unwrap();
        assert!(matches!(best, Challenge::Digest { algorithm: Algorithm::Sha256, qop_auth: false, .. }));
    }

    #[test]
    fn our_own_challenges_are_understood() {
        let realm = Realm::new("outflow", "abc".to_owned(), true);
        let all = Challenge::parse_all(&realm.challenges().replace('\n', ", "));
        assert_eq!(all.len(), 3);
        assert!(matches!(all[2], Challenge::Digest { algorithm: Algorithm::Md5, .. }));
    }

    #[test]
    fn what_we_cannot_compute_is_not_answered() {
        assert_eq!(Challenge::parse_all("Digest realm=r, nonce=n, algorithm=SHA-512-256"), []);
        assert_eq!(Challenge::parse_all("Digest realm=r, nonce=n, qop=auth-int"), []);
        assert_eq!(Challenge::parse_all("Digest realm=r"), []);
    }

    proptest! {
        #[test]
        fn text_never_panics(text in ".{0,80}") {
            let _ = Challenge::parse_all(&text);
            let _ = Challenge::parse_all(&format!("Digest realm=\"{text}"));
        }
    }
}
