//! Addresses whose answers say what peers may do.

use url::{Host, Url};

use crate::value::Text;
use crate::{Invalid, SecretUrl};

/// An address by HTTPS, or by HTTP at this machine: elsewhere another one on the way could answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedUrl(pub SecretUrl);

impl Text for TrustedUrl {
    const KIND: &'static str = "an HTTPS address";
    const EXAMPLE: &'static str = "https://id.example/outflow";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let help = || format!("write it like \"{}\"; on this machine, http:// is enough", Self::EXAMPLE);
        let url = Url::parse(text)
            .map_err(|error| Invalid::new(format!("this is no HTTPS address: {error}"), help()))?;
        let is_here = || match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if url.scheme() == "https" || (url.scheme() == "http" && is_here()) {
            return Ok(TrustedUrl(SecretUrl::new(text, &[])));
        }
        Err(Invalid::new("what this address answers cannot be trusted: it could come from elsewhere", help()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_could_answer_is_not_trusted() {
        for good in [
            "https://id.example/x?key=s3cret",
            "http://localhost:8000/",
            "http://127.0.0.2",
            "http://[::1]/x",
        ] {
            let url = TrustedUrl::from_text(good).expect(good);
            assert!(!format!("{url:?}").contains("s3cret"));
        }
        for bad in [
            "http://id.example/x",
            "http://localhost.evil.example/",
            "http://localhost:x@evil.example/",
            "ftp://localhost/",
            "id.example",
        ] {
            assert!(TrustedUrl::from_text(bad).is_err(), "{bad}");
        }
    }
}
