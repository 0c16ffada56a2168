//! Fingerprints of certificates, as descriptions have them (RFC 8122, section 5).

use core::fmt;
use core::str::FromStr;

use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq as _;

/// SHA-256 of a certificate: `AB:01:…`, as `a=fingerprint:sha-256` has it.
#[derive(Clone, Copy)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Fingerprint(bytes)
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Fingerprint {}

/// What is not a fingerprint of SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("32 bytes in hexadecimal are wanted, with colons between them")]
pub struct NoFingerprint;

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let mut bytes = [0; 32];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2 && part.is_ascii()).ok_or(NoFingerprint)?;
            let digits = part.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = u8::from_str_radix(part, 16).ok().filter(|_| digits).ok_or(NoFingerprint)?;
        }
        parts.next().map_or(Ok(Fingerprint(bytes)), |_| Err(NoFingerprint))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(place, byte)| {
            let colon = if place == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")
        })
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_written_and_read() {
        let text = Fingerprint::of(b"a certificate").to_string();
        assert_eq!(text.len(), 32 * 3 - 1);
        assert_eq!(text.parse(), Ok(Fingerprint::of(b"a certificate")));
        assert_eq!(text.to_lowercase().parse(), Ok(Fingerprint::of(b"a certificate")));
        let other = text.replacen(|digit: char| digit.is_ascii_digit(), "F", 1).parse::<Fingerprint>();
        assert_ne!(other, Ok(Fingerprint::of(b"a certificate")));
    }

    #[test]
    fn what_is_none_is_refused() {
        let text = Fingerprint::of(b"a certificate").to_string();
        let (cut, more, signs) = (&text[3..], format!("{text}:00"), text.replacen(&text[..2], "+1", 1));
        for wrong in
            ["", ":", "AB", cut, &more, &text.replace(':', ""), &signs, &text.replace(':', "::"), "é:é"]
        {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(NoFingerprint), "{wrong}");
        }
    }
}
