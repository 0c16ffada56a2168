//! The hashes of Digest authentication, RFC 7616 section 3.4.

use md5::{Digest, Md5};
use sha2::Sha256;

/// What a digest is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// All that most players and cameras know.
    Md5,
    /// RFC 7616.
    Sha256,
}

impl Algorithm {
    /// The token of the `algorithm` parameter.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "MD5",
            Algorithm::Sha256 => "SHA-256",
        }
    }

    fn hex(self, parts: &[&str]) -> String {
        match self {
            Algorithm::Md5 => hex_of::<Md5>(parts),
            Algorithm::Sha256 => hex_of::<Sha256>(parts),
        }
    }
}

/// The hash of `parts` joined by colons, in lower-case hexadecimal digits.
fn hex_of<D: Digest>(parts: &[&str]) -> String {
    let mut hash = D::new();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            hash.update(b":");
        }
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect()
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).expect("a nibble is a hexadecimal digit")
}

/// The hash of user, realm and password: what a server has to know of a password, to judge answers with `algorithm`.
pub fn ha1(algorithm: Algorithm, user: &str, realm: &str, password: &str) -> String {
    algorithm.hex(&[user, realm, password])
}

/// All that goes into a digest besides the secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) algorithm: Algorithm,
    /// The `-sess` variant of the algorithm.
    pub(super) session: bool,
    pub(super) user: &'a str,
    pub(super) realm: &'a str,
    pub(super) nonce: &'a str,
    pub(super) method: &'a str,
    pub(super) uri: &'a str,
    /// nc as eight digits and cnonce, if `qop=auth`; without them RFC 2069 is meant.
    pub(super) qop: Option<(&'a str, &'a str)>,
    /// Needed by the `-sess` variant even without qop.
    pub(super) cnonce: &'a str,
}

impl Inputs<'_> {
    /// The `response` parameter.
    pub(super) fn response(&self, password: &str) -> String {
        self.response_by(ha1(self.algorithm, self.user, self.realm, password))
    }

    /// The same, where the hash of user, realm and password is known.
    pub(super) fn response_by(&self, ha1: String) -> String {
        let hash = self.algorithm;
        let a1 = if self.session { hash.hex(&[&ha1, self.nonce, self.cnonce]) } else { ha1 };
        let a2 = hash.hex(&[self.method, self.uri]);
        match self.qop {
            Some((nc, cnonce)) => hash.hex(&[&a1, self.nonce, nc, cnonce, "auth", &a2]),
            None => hash.hex(&[&a1, self.nonce, &a2]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7616 section 3.9.1.
    fn of_the_rfc(algorithm: Algorithm) -> String {
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let inputs = Inputs {
            algorithm,
            session: false,
            user: "Mufasa",
            realm: "http-auth@example.org",
            nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            method: "GET",
            uri: "/dir/index.html",
            qop: Some(("00000001", cnonce)),
            cnonce,
        };
        inputs.response("Circle of Life")
    }

    #[test]
    fn digests_are_those_of_the_rfc() {
        assert_eq!(of_the_rfc(Algorithm::Md5), "8ca523f5e9506fed4657c9700eebdbec");
        let sha = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
        assert_eq!(of_the_rfc(Algorithm::Sha256), sha);
    }

    #[test]
    fn without_qop_the_digest_is_that_of_rfc_2069() {
        let inputs = Inputs {
            algorithm: Algorithm::Md5,
            session: false,
            user: "Mufasa",
            realm: "testrealm@host.com",
            nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093",
            method: "GET",
            uri: "/dir/index.html",
            qop: None,
            cnonce: "",
        };
        // The example of RFC 2069 section 2.4 with its erratum 749 applied.
        assert_eq!(inputs.response("CircleOfLife"), "1949323746fe6a43ef61f9606e7febea");
    }
}
