//! Addresses as people write them: `poc://HOST:PORT/RESOURCE`.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Where an end is, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host and port; a host of IPv6 in brackets.
    pub place: String,
    /// What is sent or received, as in `/live/cam1`; `/` if nothing is said.
    pub resource: String,
}

/// What is wrong with an address; whoever wrote it is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Something else.
    #[error("it does not begin with poc://")]
    Scheme,
    /// Without a port nobody is found.
    #[error("host and port belong behind poc://, as in poc://192.0.2.1:7000/live/cam1")]
    Port,
    /// What there may not be.
    #[error("nothing but a path belongs behind the port")]
    Path,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let rest = text.strip_prefix("poc://").ok_or(AddressError::Scheme)?;
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = place.rsplit_once(':').ok_or(AddressError::Port)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(AddressError::Port);
        }
        if path.contains(['?', '#']) || place.contains(['?', '#', '@']) {
            return Err(AddressError::Path);
        }
        let resource = if path.is_empty() { "/" } else { path };
        Ok(Address { place: place.to_owned(), resource: resource.to_owned() })
    }
}

impl Address {
    /// Looks it up: the first address that the system knows.
    pub fn look_up(&self) -> io::Result<SocketAddr> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("nobody knows {}", self.place));
        self.place.to_socket_addrs()?.next().ok_or_else(unknown)
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
        assert_eq!((address.look_up().ok(), address.resource.as_str()), ("127.0.0.1:7000".parse().ok(), "/"));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, error) in [
            ("udp://127.0.0.1:7000", AddressError::Scheme),
            ("poc://127.0.0.1", AddressError::Port),
            ("poc://:7000/", AddressError::Port),
            ("poc://host:70000/", AddressError::Port),
            ("poc://host:7000/a?b", AddressError::Path),
            ("poc://me@host:7000/a", AddressError::Path),
        ] {
            assert_eq!(text.parse::<Address>(), Err(error), "{text}");
        }
    }
}
