//! Authorization: what a client answers a challenge with, and how a server judges it.

use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::digest::Inputs;
use super::{Algorithm, Credentials, Realm, parameter, quote};
use crate::transport::split_unquoted;

/// A received Authorization header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {
    /// The password itself.
    Basic(Credentials),
    /// Proof of knowing it.
    Digest(Box<DigestAnswer>),
}

/// The parameters of a Digest answer, RFC 7616 section 3.4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestAnswer {
    /// The user that claims to know the password.
    pub user: String,
    /// The realm of the challenge.
    pub realm: String,
    /// The nonce of the challenge.
    pub nonce: String,
    /// The URI that the answer is for.
    pub uri: String,
    /// What it was computed with.
    pub algorithm: Algorithm,
    /// The `-sess` variant.
    pub session: bool,
    /// `qop=auth`; if not, it was computed as in RFC 2069.
    pub qop_auth: bool,
    /// How often the nonce has been used, eight hexadecimal digits.
    pub nc: String,
    /// The client's nonce.
    pub cnonce: String,
    /// As in the challenge.
    pub opaque: Option<String>,
    /// The digest.
    pub response: String,
}

/// A password as a server knows it.
#[derive(Clone, Copy)]
pub enum Known<'a> {
    /// The password itself, whatever the user's name.
    Password(&'a str),
    /// Hashes of it.
    Hashed {
        /// SHA-256 of it.
        sha256: &'a [u8; 32],
        /// The user that it is of, where it is shown by Digest.
        user: &'a str,
        /// The hash of user, realm and password by MD5, and that by SHA-256; if they are known.
        ha1: [Option<&'a str>; 2],
    },
}

impl<'a> From<&'a str> for Known<'a> {
    fn from(password: &'a str) -> Self {
        Known::Password(password)
    }
}

/// Whether an answer convinced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// One of the passwords is known.
    Right,
    /// None is.
    Wrong,
    /// The answer is to another connection's challenge: ask again.
    Stale,
}

impl Authorization {
    /// Reads an Authorization value; `None` if it is malformed or of another scheme.
    pub fn parse(value: &str) -> Option<Authorization> {
        let (scheme, rest) = value.trim().split_once(' ')?;
        if scheme.eq_ignore_ascii_case("Basic") {
            let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
            let (user, password) = text.split_once(':')?;
            let (user, password) = (user.to_owned(), password.to_owned());
            return Some(Authorization::Basic(Credentials { user, password }));
        }
        if !scheme.eq_ignore_ascii_case("Digest") {
            return None;
        }
        DigestAnswer::parse(rest).map(|answer| Authorization::Digest(Box::new(answer)))
    }

    /// The URI that the answer is for; Basic answers are for all of them.
    pub fn uri(&self) -> Option<&str> {
        match self {
            Authorization::Basic(_) => None,
            Authorization::Digest(answer) => Some(&answer.uri),
        }
    }

    /// Whether this shows knowledge of one of `passwords`, whatever the user's name. The time it
    /// takes does not depend on how much of a password was right.
    pub fn judge<'a>(
        &self,
        realm: &Realm,
        method: &str,
        passwords: impl IntoIterator<Item = impl Into<Known<'a>>>,
    ) -> Verdict {
        let known = match self {
            Authorization::Basic(given) => {
                let given = given.password.as_bytes();
                let hash: [u8; 32] = Sha256::digest(given).into();
                any(passwords, |known| match known {
                    Known::Password(password) => given.ct_eq(password.as_bytes()).into(),
                    Known::Hashed { sha256, .. } => sha256[..].ct_eq(&hash[..]).into(),
                })
            }
            Authorization::Digest(answer) => {
                if answer.nonce != realm.nonce() {
                    return Verdict::Stale;
                }
                let given = answer.response.as_bytes();
                any(passwords, |known| {
                    let expected = match known {
                        Known::Password(password) => Some(answer.expected(password, method)),
                        Known::Hashed { user, ha1, .. } if answer.user == user => {
                            let [md5, sha256] = ha1;
                            let ha1 = if answer.algorithm == Algorithm::Md5 { md5 } else { sha256 };
                            ha1.map(|ha1| answer.expected_by(ha1, method))
                        }
                        Known::Hashed { .. } => None,
                    };
                    expected.is_some_and(|expected| given.ct_eq(expected.as_bytes()).into())
                })
            }
        };
        if known { Verdict::Right } else { Verdict::Wrong }
    }
}

/// Like [`Iterator::any`], but looks at all of them.
fn any<'a>(
    passwords: impl IntoIterator<Item = impl Into<Known<'a>>>,
    matches: impl Fn(Known<'a>) -> bool,
) -> bool {
    passwords.into_iter().fold(false, |known, password| known | matches(password.into()))
}

impl DigestAnswer {
    fn parse(text: &str) -> Option<DigestAnswer> {
        let parameters: Vec<_> = split_unquoted(text, ',').filter_map(parameter).collect();
        let get = |name: &str| parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let (algorithm, session) = match get("algorithm").unwrap_or_default().to_ascii_uppercase().as_str() {
            "" | "MD5" => (Algorithm::Md5, false),
            "MD5-SESS" => (Algorithm::Md5, true),
            "SHA-256" => (Algorithm::Sha256, false),
            "SHA-256-SESS" => (Algorithm::Sha256, true),
            _ => return None,
        };
        let qop_auth = match get("qop") {
            None => false,
            Some(qop) if qop.eq_ignore_ascii_case("auth") => true,
            Some(_) => return None,
        };
        let hexadecimal = |text: &String| text.bytes().all(|b| b.is_ascii_hexdigit());
        // What does not go into the digest is not looked at.
        let nc = get("nc").filter(|_| qop_auth).unwrap_or_default();
        let response = get("response")?.to_ascii_lowercase();
        if !hexadecimal(&nc) || !hexadecimal(&response) {
            return None;
        }
        Some(DigestAnswer {
            user: get("username")?,
            realm: get("realm")?,
            nonce: get("nonce")?,
            uri: get("uri")?,
            algorithm,
            session,
            qop_auth,
            nc,
            cnonce: get("cnonce").filter(|_| qop_auth || session).unwrap_or_default(),
            opaque: get("opaque"),
            response,
        })
    }

    /// What `response` is if the client knows `password`.
    pub(super) fn expected(&self, password: &str, method: &str) -> String {
        self.inputs(method).response(password)
    }

    /// The same, if the hash of user, realm and password is this one.
    fn expected_by(&self, ha1: &str, method: &str) -> String {
        self.inputs(method).response_by(ha1.to_owned())
    }

    fn inputs<'a>(&'a self, method: &'a str) -> Inputs<'a> {
        Inputs {
            algorithm: self.algorithm,
            session: self.session,
            user: &self.user,
            realm: &self.realm,
            nonce: &self.nonce,
            method,
            uri: &self.uri,
            qop: self.qop_auth.then_some((&self.nc, &self.cnonce)),
            cnonce: &self.cnonce,
        }
    }
}

impl fmt::Display for DigestAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [user, realm, nonce, uri] = [&self.user, &self.realm, &self.nonce, &self.uri].map(|v| quote(v));
        let response = &self.response;
        write!(f, "Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", ")?;
        write!(f, "response=\"{response}\", algorithm={}", self.algorithm.name())?;
        if self.session {
            f.write_str("-sess")?;
        }
        if self.qop_auth {
            write!(f, ", qop=auth, nc={}", self.nc)?;
        }
        if self.qop_auth || self.session {
            write!(f, ", cnonce=\"{}\"", quote(&self.cnonce))?;
        }
        if let Some(opaque) = &self.opaque {
            write!(f, ", opaque=\"{}\"", quote(opaque))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Challenge, ha1};
    use proptest::prelude::*;

    const URI: &str = "rtsp://h/s";

    fn credentials(password: &str) -> Credentials {
        Credentials { user: "any \"one\"".to_owned(), password: password.to_owned() }
    }

    fn judged(challenge: &str, password: &str, known: &[&str]) -> Verdict {
        let realm = Realm::new("outflow", "n".to_owned(), true);
        let challenge = Challenge::parse_all(challenge).remove(0);
        let answer = challenge.answer(&credentials(password), "PLAY", URI, 3, "c");
        let answer = Authorization::parse(&answer).unwrap();
        answer.judge(&realm, "PLAY", known.iter().copied())
    }

    #[test]
    fn a_client_that_knows_a_password_is_let_in() {
        for challenge in [
            "Basic realm=outflow",
            "Digest realm=outflow, nonce=n",
            "Digest realm=outflow, nonce=n, qop=auth, algorithm=MD5-sess",
            "Digest realm=outflow, nonce=n, qop=\"auth\", opaque=\"x\"",
            "Digest realm=outflow, nonce=n, qop=\"auth\", algorithm=SHA-256",
        ] {
            assert_eq!(judged(challenge, "two", &["one", "two"]), Verdict::Right, "{challenge}");
            assert_eq!(judged(challenge, "three", &["one", "two"]), Verdict::Wrong, "{challenge}");
            assert_eq!(judged(challenge, "", &[]), Verdict::Wrong, "{challenge}");
        }
    }

    #[test]
    fn a_password_of_which_hashes_are_known_is_taken_from_its_user() {
        let realm = Realm::new("outflow", "n".to_owned(), true);
        let hashes = ["one", "two"].map(|password| <[u8; 32]>::from(Sha256::digest(password)));
        let of_the_rfc = ["MD5", "SHA-256"].map(|algorithm| {
            let challenge = format!("Digest realm=outflow, nonce=n, qop=auth, algorithm={algorithm}");
            (Challenge::parse_all(&challenge).remove(0), algorithm)
        });
        let hashes_of = |algorithm| ha1(algorithm, "studio", "outflow", "two");
        let by = [Algorithm::Md5, Algorithm::Sha256].map(hashes_of);
        let (ha1, none) = ([Some(by[0].as_str()), Some(by[1].as_str())], [None; 2]);
        let judged = |challenge: &Challenge, (user, password): (&str, &str), ha1: [Option<&str>; 2]| {
            let credentials = Credentials { user: user.to_owned(), password: password.to_owned() };
            let answer = challenge.answer(&credentials, "PLAY", URI, 3, "c");
            let known = Known::Hashed { sha256: &hashes[1], user: "studio", ha1 };
            Authorization::parse(&answer).unwrap().judge(&realm, "PLAY", [known])
        };
        for (challenge, algorithm) in &of_the_rfc {
            assert_eq!(judged(challenge, ("studio", "two"), ha1), Verdict::Right, "{algorithm}");
            assert_eq!(judged(challenge, ("studio", "one"), ha1), Verdict::Wrong, "{algorithm}");
            assert_eq!(judged(challenge, ("other", "two"), ha1), Verdict::Wrong, "{algorithm}");
            assert_eq!(judged(challenge, ("studio", "two"), none), Verdict::Wrong, "{algorithm}");
        }
        let basic = Challenge::parse_all("Basic realm=outflow").remove(0);
        assert_eq!(judged(&basic, ("any", "two"), none), Verdict::Right);
        assert_eq!(judged(&basic, ("any", "one"), none), Verdict::Wrong);
    }

    #[test]
    fn an_answer_to_another_connection_is_stale() {
        assert_eq!(judged("Digest realm=outflow, nonce=other", "one", &["one"]), Verdict::Stale);
    }

    #[test]
    fn an_answer_for_another_method_is_wrong() {
        let realm = Realm::new("outflow", "n".to_owned(), false);
        let challenge = Challenge::parse_all("Digest realm=outflow, nonce=n").remove(0);
        let answer = challenge.answer(&credentials("one"), "DESCRIBE", URI, 1, "c");
        let answer = Authorization::parse(&answer).unwrap();
        assert_eq!(answer.judge(&realm, "ANNOUNCE", ["one"]), Verdict::Wrong);
        assert_eq!(answer.uri(), Some(URI));
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        let parse = |nc: &str, response: &str| {
            let text = "Digest username=\"u\", realm=\"r\", nonce=\"n\", uri=\"rtsp://h/\", qop=auth";
            Authorization::parse(&format!("{text}, nc=\"{nc}\", response=\"{response}\""))
        };
        assert!(parse("0000000a", "00FF").is_some());
        assert_eq!(parse("1, cnonce=2", "00ff"), None);
        assert_eq!(parse("00000001", "\\\"00ff"), None);
    }

    #[test]
    fn passwords_stay_out_of_logs() {
        assert!(!format!("{:?}", credentials("secret")).contains("secret"));
    }

    proptest! {
        #[test]
        fn text_never_panics(text in ".{0,80}") {
            let _ = Authorization::parse(&text);
            let _ = Authorization::parse(&format!("Digest {text}"));
            let _ = Authorization::parse(&format!("Basic {text}"));
        }
    }
}
