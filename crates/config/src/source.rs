//! Where a stream comes from.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::address::{DatagramAddress, Datagrams};
use crate::endpoint::{Address, Brings, Endpoint};
use crate::invalid::choices;
use crate::secret_url::without_secrets;
use crate::value::{Fault, Given, Value, type_fault};
use crate::{Invalid, SinkUrl, Vocabulary};

/// Where a stream comes from. Displayed, it leaves secrets out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceUrl {
    /// A publisher brings it.
    Push,
    /// UDP datagrams: MPEG-TS, or what else they are said to be.
    Udp(UdpSource),
    /// RTP over UDP: MPEG-TS (MP2T), or what the stream's `sdp` describes.
    Rtp(UdpSource),
    /// Pulled by a protocol.
    Pulled(Endpoint),
    /// Other streams that carry the same in different quality, the best first: they are its levels.
    Renditions(Vec<String>),
}

/// UDP packets that a sender sends here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpSource {
    /// The own address, or a multicast group, and the port.
    pub at: SocketAddr,
    /// Only packets from this host; for a group a source-specific membership (RFC 4607).
    pub source: Option<IpAddr>,
    /// Interface at which the group is joined; the system's choice if not given.
    pub interface: Option<String>,
    /// What a datagram is.
    pub datagrams: Datagrams,
}

impl SourceUrl {
    /// Whether the stream takes a publisher.
    pub fn is_push(&self) -> bool {
        matches!(self, SourceUrl::Push)
    }

    /// What a protocol pulls, if it is that.
    pub fn pulled(&self) -> Option<&Endpoint> {
        match self {
            SourceUrl::Pulled(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// The address of what a protocol pulls, if it is one of this type.
    pub fn address<T: Address>(&self) -> Option<&T> {
        self.pulled()?.get()
    }

    /// Whether there is anything only while a receiver wants it.
    pub fn is_on_demand(&self) -> bool {
        self.pulled().is_some_and(|endpoint| endpoint.address.is_on_demand())
    }

    /// What it is known to bring before it comes, if a protocol pulls it.
    pub(crate) fn brings(&self) -> Brings {
        self.pulled().map_or(Brings::Media, |endpoint| endpoint.address.brings())
    }

    /// The UDP source, if it is one.
    pub fn udp(&self) -> Option<&UdpSource> {
        match self {
            SourceUrl::Udp(source) | SourceUrl::Rtp(source) => Some(source),
            _ => None,
        }
    }

    /// Whether what goes to this address comes back from here.
    pub fn circles_to(&self, sink: &SinkUrl) -> bool {
        match (self, sink) {
            (SourceUrl::Pulled(from), SinkUrl::Endpoint(to)) => {
                from.scheme == to.scheme && from.address.place() == to.address.place()
            }
            (_, SinkUrl::Datagrams(to)) => {
                self.udp().is_some_and(|from| from.at == to.to && from.interface == to.interface)
            }
            (_, SinkUrl::Endpoint(_)) => false,
        }
    }

    /// The streams that are its renditions; none if it is a source itself.
    pub fn renditions(&self) -> &[String] {
        match self {
            SourceUrl::Renditions(names) => names,
            _ => &[],
        }
    }
}

impl SourceUrl {
    /// Reads a word or an address, of those that `known` has.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str, known: &Vocabulary) -> Result<Self, Invalid> {
        if text == "push" {
            return Ok(SourceUrl::Push);
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        match scheme.to_ascii_lowercase().as_str() {
            "udp" => UdpSource::parse(rest, &["source", "interface", "format"]).map(SourceUrl::Udp),
            "rtp" => {
                let source = UdpSource::parse(rest, &["source", "interface"])?;
                if source.at.port() == u16::MAX {
                    let help = "choose a lower port: RTCP comes to the one above";
                    return Err(Invalid::new("there is no port above 65535", help));
                }
                Ok(SourceUrl::Rtp(source))
            }
            _ => known.source(text).unwrap_or_else(|| Err(no_source(text, known))).map(SourceUrl::Pulled),
        }
    }
}

impl Value for SourceUrl {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        Self::read_among(given, &Vocabulary::default())
    }

    fn read_among(given: &Given<'_>, known: &Vocabulary) -> Result<Self, Fault> {
        if let Some(list) = given.get_ref().as_array() {
            return list.iter().map(String::read).collect::<Result<_, _>>().map(SourceUrl::Renditions);
        }
        let example = "\"push\", or [\"high\", \"low\"] for streams that are its renditions";
        let text = given.get_ref().as_str().ok_or_else(|| type_fault(given, "a source", example))?;
        SourceUrl::parse(text, known).map_err(|invalid| (given.span(), invalid))
    }

    fn beside(&mut self, file: &Path) {
        if let SourceUrl::Pulled(endpoint) = self {
            endpoint.beside(file);
        }
    }
}

fn no_source(text: &str, known: &Vocabulary) -> Invalid {
    let schemes = || known.sources.iter();
    let words = schemes().filter(|scheme| !scheme.example.contains("://"));
    let words = words.flat_map(|scheme| scheme.prefixes).map(|word| format!("\"{word}\""));
    let words: Vec<_> = ["\"push\"".to_owned()].into_iter().chain(words).collect();
    let pulled = schemes().filter(|scheme| scheme.example.contains("://"));
    let pulled = pulled.flat_map(|scheme| scheme.prefixes).copied();
    let begins: Vec<_> = ["udp", "rtp"].into_iter().chain(pulled).map(|name| format!("{name}://")).collect();
    let help = format!("write {}, or an address that begins with {}", choices(&words), choices(&begins));
    Invalid::new(format!("'{}' is no source", without_secrets(text, &[])), help)
}

impl UdpSource {
    fn parse(text: &str, parameters: &[&str]) -> Result<Self, Invalid> {
        let address = DatagramAddress::parse(text, parameters)?;
        address.check_multicast()?;
        // What comes to [::] may be of IPv4, too.
        let hears = |source: &IpAddr| {
            source.is_ipv4() == address.at.is_ipv4() || address.at.ip() == Ipv6Addr::UNSPECIFIED
        };
        let source = address.source.map(|source| source.to_canonical());
        if let Some(source) = source.filter(|source| !hears(source)) {
            let what = format!("{source} can send nothing to {}", address.at.ip());
            return Err(Invalid::new(what, "give both as IPv4 or both as IPv6 addresses"));
        }
        Ok(UdpSource { at: address.at, source, interface: address.interface, datagrams: address.datagrams })
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceUrl::Push => f.write_str("push"),
            SourceUrl::Udp(source) => write!(f, "udp://{source}"),
            SourceUrl::Rtp(source) => write!(f, "rtp://{source}"),
            SourceUrl::Pulled(endpoint) => endpoint.fmt(f),
            SourceUrl::Renditions(names) => write!(f, "renditions {}", names.join(", ")),
        }
    }
}

impl fmt::Display for UdpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        let source = self.source.map(|source| format!("source={source}"));
        let interface = self.interface.as_ref().map(|name| format!("interface={name}"));
        let format = (self.datagrams != Datagrams::Ts).then(|| format!("format={}", self.datagrams));
        let query: Vec<_> = source.into_iter().chain(interface).chain(format).collect();
        if query.is_empty() { Ok(()) } else { write!(f, "?{}", query.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SourceUrl, Invalid> {
        SourceUrl::parse(text, &Vocabulary::default())
    }

    #[test]
    fn every_kind_of_source_reads_and_writes_alike() {
        for text in [
            "push",
            "udp://0.0.0.0:5000",
            "udp://239.1.1.1:5000?source=10.0.0.9&interface=eth0",
            "udp://[::]:5000",
            "udp://[::]:5000?source=10.0.0.9",
            "udp://0.0.0.0:5000?format=data",
            "udp://0.0.0.0:5000?format=ppm",
            "udp://[ff15::1]:5000?interface=eth0",
            "udp://[ff35::8000:1]:5000?source=fd00::1&interface=eth0",
            "rtp://0.0.0.0:5004",
        ] {
            assert_eq!(read(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn impossible_sources_are_refused_with_the_reason() {
        let what = |text: &str| read(text).expect_err(text).to_string();
        assert!(what("pull").contains("no source"));
        assert!(what("http://a/b").contains("begins with udp://"));
        assert!(what("udp://0.0.0.0:5000?interface=eth0").contains("no multicast group"));
        assert!(what("udp://239.1.1.1:5000?source=fd00::1").contains("both as IPv4"));
        assert!(what("udp://[ff35::1]:5000?source=10.0.0.1").contains("both as IPv4"));
        assert!(what("udp://[fd00::2]:5000?source=10.0.0.1").contains("both as IPv4"));
        assert!(what("rtp://0.0.0.0:65535").contains("above 65535"));
        assert!(!what("http://u:secret@h/x").contains("secret"));
    }
}
