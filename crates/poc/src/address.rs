//! Addresses as people write them: `poc://HOST:PORT/RESOURCE`.

use core::fmt;
use core::str::FromStr;

use outflow_petri::limits::RESOURCE_BYTES_MAX;

/// Where an end is, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host and port; a host of IPv6 in brackets.
    pub place: String,
    /// What is sent or received, as in `/live/cam1?level=2`; `/` if nothing is said.
    pub resource: String,
}

/// What is wrong with an address; its author is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Something else.
    #[error("it does not begin with poc://")]
    Scheme,
    /// Without a port no server is found.
    #[error("host and port belong behind poc://, as in poc://192.0.2.1:7000/live/cam1")]
    Port,
    /// What there may not be.
    #[error("nothing but a path and a query belongs behind the port")]
    Path,
    /// No hello carries that much.
    #[error("path and query may have {RESOURCE_BYTES_MAX} bytes")]
    Long,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let rest = text.strip_prefix("poc://").ok_or(AddressError::Scheme)?;
        let (place, resource) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = place.rsplit_once(':').ok_or(AddressError::Port)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(AddressError::Port);
        }
        if resource.contains('#') || place.contains(['#', '@']) {
            return Err(AddressError::Path);
        }
        let slash = if resource.starts_with('/') { "" } else { "/" };
        let resource = format!("{slash}{resource}");
        if resource.len() > RESOURCE_BYTES_MAX {
            return Err(AddressError::Long);
        }
        Ok(Address { place: place.to_owned(), resource })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "poc://{}{}", self.place, self.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_port_and_path_are_told_apart() {
        let address: Address = "poc://[::1]:7000/live/cam".parse().expect("an address");
        assert_eq!((address.place.as_str(), address.resource.as_str()), ("[::1]:7000", "/live/cam"));
        assert_eq!(address.to_string(), "poc://[::1]:7000/live/cam");
        let address: Address = "poc://127.0.0.1:7000".parse().expect("an address");
        assert_eq!((address.place.as_str(), address.resource.as_str()), ("127.0.0.1:7000", "/"));
        let address: Address = "poc://h:7000?level=2".parse().expect("an address");
        assert_eq!(address.to_string(), "poc://h:7000/?level=2");
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, error) in [
            ("udp://127.0.0.1:7000", AddressError::Scheme),
            ("poc://127.0.0.1", AddressError::Port),
            ("poc://:7000/", AddressError::Port),
            ("poc://host:70000/", AddressError::Port),
            ("poc://host:7000/a#b", AddressError::Path),
            ("poc://me@host:7000/a", AddressError::Path),
        ] {
            assert_eq!(text.parse::<Address>(), Err(error), "{text}");
        }
        let long = format!("poc://host:7000/{}", "a".repeat(RESOURCE_BYTES_MAX));
        assert_eq!(long.parse::<Address>(), Err(AddressError::Long));
    }
}
