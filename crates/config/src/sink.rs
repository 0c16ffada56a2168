//! Where a configured receiver is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::address::DatagramAddress;
use crate::endpoint::{Address, Endpoint};
use crate::invalid::choices;
use crate::secret_url::without_secrets;
use crate::value::{Fault, Given, Value, wrong_type};
use crate::{Invalid, Vocabulary};

/// What goes to a sink in datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SinkProtocol {
    /// MPEG-TS in UDP datagrams.
    Udp,
    /// RTP: a transport stream as MP2T (RFC 2250), else each track to a port pair of its own,
    /// counted up by two from the given port.
    Rtp,
}

/// The address of a receiver that is sent to without its asking.
///
/// Displayed, it is written in one way, so that equal addresses have equal texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkUrl {
    /// `udp://` or `rtp://`.
    Datagrams(DatagramSink),
    /// A receiver that a protocol sends to.
    Endpoint(Endpoint),
}

/// The address of a receiver of datagrams: `udp://` or `rtp://`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatagramSink {
    /// What goes there.
    pub protocol: SinkProtocol,
    /// Address and port.
    pub to: SocketAddr,
    /// Hops that a multicast packet may take; the system's default (1) if not given.
    pub ttl: Option<u8>,
    /// Interface through which multicast leaves; the system's choice if not given.
    pub interface: Option<String>,
    /// Whether members of a group on the relay's machine get what goes there, too. That takes the system's own way: the
    /// kernel's fan-out sends to others alone.
    pub loops: bool,
}

impl SinkUrl {
    /// The scheme of the address.
    pub fn scheme(&self) -> &'static str {
        match self {
            SinkUrl::Datagrams(DatagramSink { protocol: SinkProtocol::Udp, .. }) => "udp",
            SinkUrl::Datagrams(DatagramSink { protocol: SinkProtocol::Rtp, .. }) => "rtp",
            SinkUrl::Endpoint(endpoint) => endpoint.scheme,
        }
    }

    /// Where it is, whatever else the address says.
    pub fn place(&self) -> String {
        match self {
            SinkUrl::Datagrams(sink) => sink.to.to_string(),
            SinkUrl::Endpoint(endpoint) => endpoint.address.place(),
        }
    }

    /// The address of a receiver that a protocol sends to, if it is one of this type.
    pub fn address<T: Address>(&self) -> Option<&T> {
        match self {
            SinkUrl::Datagrams(_) => None,
            SinkUrl::Endpoint(endpoint) => endpoint.get(),
        }
    }

    /// Where datagrams go, if it is an address of such.
    pub fn datagrams(&self) -> Option<&DatagramSink> {
        match self {
            SinkUrl::Datagrams(sink) => Some(sink),
            SinkUrl::Endpoint(_) => None,
        }
    }
}

impl SinkUrl {
    /// Reads an address, of those that `known` has.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str, known: &Vocabulary) -> Result<Self, Invalid> {
        match DatagramSink::parse(text) {
            Some(sink) => sink.map(SinkUrl::Datagrams),
            None => known.sink(text).unwrap_or_else(|| Err(no_sink(text, known))).map(SinkUrl::Endpoint),
        }
    }
}

impl Value for SinkUrl {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        let (kind, example) = ("an address to send to", "udp://239.2.2.2:6000?ttl=4");
        let text = given.get_ref().as_str().ok_or_else(|| wrong_type(given, kind, example))?;
        SinkUrl::parse(text, known).map_err(|invalid| (given.span(), invalid))
    }

    fn beside(&mut self, file: &Path) {
        if let SinkUrl::Endpoint(endpoint) = self {
            endpoint.beside(file);
        }
    }
}

fn no_sink(text: &str, known: &Vocabulary) -> Invalid {
    let own = ["udp://ADDRESS:PORT (MPEG-TS)", "rtp://ADDRESS:PORT"];
    let others = known.sinks.iter().map(|scheme| scheme.example);
    let all: Vec<_> = own.into_iter().chain(others).map(str::to_owned).collect();
    let shown = without_secrets(text, &[]);
    Invalid::new(format!("'{shown}' is no address to send to"), format!("write {}", choices(&all)))
}

impl DatagramSink {
    /// Reads an address that begins with `udp://` or `rtp://`; none if it begins otherwise.
    pub fn parse(text: &str) -> Option<Result<Self, Invalid>> {
        let (scheme, rest) = text.split_once("://")?;
        let protocol = match scheme.to_ascii_lowercase().as_str() {
            "udp" => SinkProtocol::Udp,
            "rtp" => SinkProtocol::Rtp,
            _ => return None,
        };
        Some(Self::parse_rest(protocol, rest))
    }

    fn parse_rest(protocol: SinkProtocol, rest: &str) -> Result<Self, Invalid> {
        let address = DatagramAddress::parse(rest, &["ttl", "interface", "loop"])?;
        address.check_multicast()?;
        let ip = address.at.ip();
        if ip.is_unspecified() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
            let help = "give the address of the receiver, or a multicast group";
            return Err(Invalid::new(format!("{ip} is no receiver"), help));
        }
        if protocol == SinkProtocol::Rtp && address.at.port() == u16::MAX {
            let help = "choose a lower port: RTCP goes to the one above";
            return Err(Invalid::new("there is no port above 65535", help));
        }
        let DatagramAddress { at: to, ttl, interface, loops, .. } = address;
        Ok(DatagramSink { protocol, to, ttl, interface, loops })
    }
}

impl fmt::Display for SinkUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SinkUrl::Datagrams(sink) => sink.fmt(f),
            SinkUrl::Endpoint(endpoint) => endpoint.fmt(f),
        }
    }
}

impl fmt::Display for DatagramSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            SinkProtocol::Udp => "udp",
            SinkProtocol::Rtp => "rtp",
        };
        write!(f, "{scheme}://{}", self.to)?;
        let ttl = self.ttl.map(|ttl| format!("ttl={ttl}"));
        let interface = self.interface.as_ref().map(|name| format!("interface={name}"));
        let loops = (!self.loops).then(|| "loop=off".to_owned());
        let query: Vec<_> = ttl.into_iter().chain(interface).chain(loops).collect();
        if query.is_empty() { Ok(()) } else { write!(f, "?{}", query.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SinkUrl, Invalid> {
        SinkUrl::parse(text, &Vocabulary::default())
    }

    #[test]
    fn sinks_read_and_write_alike() {
        for text in [
            "udp://239.2.2.2:6000?ttl=4&interface=eth1",
            "rtp://10.0.0.7:7000",
            "rtp://[ff15::1:5]:7000?loop=off",
            "udp://239.2.2.2:6000?interface=eth1&loop=off",
        ] {
            assert_eq!(read(text).expect(text).to_string(), text);
        }
        let loops = |text: &str| read(text).expect(text).datagrams().is_some_and(|sink| sink.loops);
        assert!(loops("udp://239.2.2.2:6000") && !loops("udp://239.2.2.2:6000?loop=off"));
        let other_order = read("udp://239.2.2.2:6000/?interface=eth1&ttl=4").expect("good");
        assert_eq!(other_order.to_string(), "udp://239.2.2.2:6000?ttl=4&interface=eth1");
    }

    #[test]
    fn what_cannot_be_sent_to_is_refused() {
        let what = |text: &str| read(text).expect_err(text).to_string();
        assert!(what("10.0.0.1:5000").contains("udp://ADDRESS:PORT"));
        assert!(what("http://10.0.0.1:5000").contains("no address to send to"));
        assert!(what("udp://10.0.0.1:5000?ttl=4").contains("no multicast group"));
        assert!(what("udp://10.0.0.1:5000?interface=eth0").contains("no multicast group"));
        assert!(what("udp://10.0.0.1:5000?loop=off").contains("'loop' has no meaning for 10.0.0.1"));
        assert!(what("udp://239.1.1.1:5000?loop=on").contains("write loop=off, or leave it out"));
        assert!(what("udp://0.0.0.0:5000").contains("no receiver"));
        assert!(what("udp://255.255.255.255:5000").contains("no receiver"));
        assert!(what("udp://239.1.1.1:5000?source=10.0.0.1").contains("unknown parameter"));
        assert!(what("rtp://10.0.0.1:65535").contains("above 65535"));
    }
}
