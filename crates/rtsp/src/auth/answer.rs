//! Authorization: what a client answers a challenge with, and how a server judges it.

use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
        passwords: impl IntoIterator<Item = &'a str>,
    ) -> Verdict {
        let known = match self {
            Authorization::Basic(given) => {
                let given = given.password.as_bytes();
                any(passwords, |password| given.ct_eq(password.as_bytes()).into())
            }
            Authorization::Digest(answer) => {
                if answer.nonce != realm.nonce() {
                    return Verdict::Stale;
                }
                let given = answer.response.as_bytes();
                any(passwords, |password| given.ct_eq(answer.expected(password, method).as_bytes()).into())
            }
        };
        if known { Verdict::Right } else { Verdict::Wrong }
    }
}

/// Like [`Iterator::any`], but looks at all of them.
fn any<'a>(passwords: impl IntoIterator<Item = &'a str>, matches: impl Fn(&str) -> bool) -> bool {
    passwords.into_iter().fold(false, |known, password| known | matches(password))
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
        let inputs = Inputs {
            algorithm: self.algorithm,
            session: self.session,
            user: &self.user,
            realm: &self.realm,
            nonce: &self.nonce,
            method,
            uri: &self.uri,
            qop: self.qop_auth.then_some((&self.nc, &self.cnonce)),
            cnonce: &self.cnonce,
        };
        inputs.response(password)
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
    use crate::auth::Challenge;
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
