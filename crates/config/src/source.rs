//! Where a stream comes from.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use url::{Host, Url};

use crate::address::Address;
use crate::value::words;
use crate::{Invalid, PocUrl, SinkUrl};

/// Where a stream comes from. Displayed, it leaves secrets out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceUrl {
    /// Somebody publishes it here: RTSP `ANNOUNCE` and `RECORD`, or HTTP `PUT` or `POST`.
    Push,
    /// The built-in clip.
    Demo,
    /// UDP datagrams: MPEG-TS, or what else they are said to be.
    Udp(UdpSource),
    /// RTP over UDP: MPEG-TS (MP2T), or what the stream's `sdp` describes.
    Rtp(UdpSource),
    /// Pulled from an RTSP server.
    Rtsp(RtspSource),
    /// Pulled from another relay, over the partial-order transport.
    Poc(PocUrl),
    /// Taken from another relay of the tree that has it, while somebody here wants it.
    Relays,
    /// Other streams that carry the same in different quality, the best first: they are its levels.
    Renditions(Vec<String>),
}

/// UDP packets that somebody sends here.
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

words! {
    /// What a datagram of a source is.
    pub enum Datagrams: "a format" {
        /// MPEG-TS packets.
        Ts = "ts",
        /// A PPM image.
        Ppm = "ppm",
        /// Opaque: it is passed on as it is.
        Data = "data",
    }
}

/// An RTSP server and what to ask it for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtspSource {
    /// Whether the connection is encrypted (`rtsps`).
    pub tls: bool,
    /// Name or address of the server, IPv6 literals without brackets.
    pub host: String,
    /// Its port: 554 for `rtsp`, 322 for `rtsps` if not given (RFC 7826, section 19.2).
    pub port: u16,
    /// The address to ask for, without user and password.
    pub url: String,
    /// User, percent-decoded.
    pub user: Option<String>,
    /// Password, percent-decoded.
    pub password: Option<Secret>,
}

/// A text that is not shown: a token or a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The bytes of the text itself.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl SourceUrl {
    /// Whether the stream takes a publisher.
    pub fn is_push(&self) -> bool {
        matches!(self, SourceUrl::Push)
    }

    /// The scheme of its address; "push" and "tree", and the renditions' "streams", are words that stand for one.
    pub fn scheme(&self) -> &'static str {
        match self {
            SourceUrl::Push => "push",
            SourceUrl::Demo => "demo",
            SourceUrl::Udp(_) => "udp",
            SourceUrl::Rtp(_) => "rtp",
            SourceUrl::Rtsp(_) => "rtsp",
            SourceUrl::Poc(_) => "poc",
            SourceUrl::Relays => "tree",
            SourceUrl::Renditions(_) => "streams",
        }
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
            (SourceUrl::Poc(from), SinkUrl::Poc(to)) => {
                let path = |url: &PocUrl| url.resource.split('?').next().map(str::to_owned);
                from.place == to.place && path(from) == path(to)
            }
            (_, SinkUrl::Datagrams(to)) => {
                self.udp().is_some_and(|from| from.at == to.to && from.interface == to.interface)
            }
            (_, SinkUrl::Poc(_)) => false,
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

impl FromStr for SourceUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == "push" {
            return Ok(SourceUrl::Push);
        }
        if text == "tree" {
            return Ok(SourceUrl::Relays);
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        match scheme.to_ascii_lowercase().as_str() {
            "demo" if rest.is_empty() => Ok(SourceUrl::Demo),
            "demo" => Err(Invalid::new("the built-in clip takes no address", "write \"demo://\"")),
            "udp" => UdpSource::parse(rest, &["source", "interface", "format"]).map(SourceUrl::Udp),
            "rtp" => {
                let source = UdpSource::parse(rest, &["source", "interface"])?;
                if source.at.port() == u16::MAX {
                    let help = "choose a lower port: RTCP comes to the one above";
                    return Err(Invalid::new("there is no port above 65535", help));
                }
                Ok(SourceUrl::Rtp(source))
            }
            "rtsp" | "rtsps" => RtspSource::parse(text).map(SourceUrl::Rtsp),
            "poc" => text.parse().map(SourceUrl::Poc),
            _ => {
                let help = "write \"push\" or \"tree\", or an address that begins with \
                            udp://, rtp://, rtsp://, rtsps://, poc:// or demo://";
                Err(Invalid::new(format!("'{}' is no source", without_user(text)), help))
            }
        }
    }
}

impl UdpSource {
    fn parse(text: &str, parameters: &[&str]) -> Result<Self, Invalid> {
        let address = Address::parse(text, parameters)?;
        address.check_multicast()?;
        if let Some(source) = address.source {
            if source.is_ipv4() != address.at.is_ipv4() {
                let what = format!("{source} can send nothing to {}", address.at.ip());
                return Err(Invalid::new(what, "give both as IPv4 or both as IPv6 addresses"));
            }
            if source.is_ipv6() && address.at.ip().is_multicast() {
                let what = "source-specific IPv6 multicast is not supported";
                return Err(Invalid::new(what, "leave source out, or use an IPv4 group"));
            }
        }
        Ok(UdpSource {
            at: address.at,
            source: address.source,
            interface: address.interface,
            datagrams: address.datagrams,
        })
    }
}

impl RtspSource {
    fn parse(text: &str) -> Result<Self, Invalid> {
        let shown = without_user(text);
        let help = "write it like rtsp://user:password@camera/path";
        let wrong =
            |why: &dyn fmt::Display| Invalid::new(format!("'{shown}' is no RTSP address: {why}"), help);
        let mut url = Url::parse(text).map_err(|e| wrong(&e))?;
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(wrong(&"it names no host")),
        };
        if url.fragment().is_some() {
            return Err(wrong(&"it has a part behind '#'"));
        }
        let tls = url.scheme() == "rtsps";
        let port = url.port().unwrap_or(if tls { 322 } else { 554 });
        if port == 0 {
            return Err(wrong(&"port 0 is no port"));
        }
        let user = (!url.username().is_empty()).then(|| decode(url.username())).transpose()?;
        let password = url.password().map(decode).transpose()?.map(Secret);
        // Neither fails for an address that has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(RtspSource { tls, host, port, url: url.into(), user, password })
    }
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, Invalid> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    let help = "write them in UTF-8, and '%' as %25";
    decoded.map(String::from).map_err(|_| Invalid::new("user or password are no text", help))
}

/// An address without what stands before its `@`.
fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => text.to_owned(),
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceUrl::Push => f.write_str("push"),
            SourceUrl::Relays => f.write_str("tree"),
            SourceUrl::Demo => f.write_str("demo://"),
            SourceUrl::Udp(source) => write!(f, "udp://{source}"),
            SourceUrl::Rtp(source) => write!(f, "rtp://{source}"),
            SourceUrl::Rtsp(source) => f.write_str(&source.url),
            SourceUrl::Poc(url) => url.fmt(f),
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

    fn good(text: &str) -> SourceUrl {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn every_kind_of_source_reads_and_writes_alike() {
        for text in [
            "push",
            "tree",
            "demo://",
            "udp://0.0.0.0:5000",
            "udp://239.1.1.1:5000?source=10.0.0.9&interface=eth0",
            "udp://[::]:5000",
            "udp://0.0.0.0:5000?format=data",
            "udp://0.0.0.0:5000?format=ppm",
            "udp://[ff15::1]:5000?interface=eth0",
            "rtp://0.0.0.0:5004",
            "rtsp://camera.example/stream?profile=1",
            "rtsps://[fd00::1]:8322/a",
            "poc://relay.example:7000/stage?level=2",
        ] {
            assert_eq!(good(text).to_string(), text);
        }
    }

    #[test]
    fn credentials_of_cameras_are_decoded_and_not_shown() {
        let SourceUrl::Rtsp(camera) = good("rtsp://ad%6Din:p%40ss%2F@10.0.0.5/Streaming/1") else {
            panic!("an RTSP source");
        };
        assert_eq!(camera.user.as_deref(), Some("admin"));
        assert_eq!(camera.password.as_ref().map(Secret::reveal), Some("p@ss/"));
        assert_eq!((camera.host.as_str(), camera.port, camera.tls), ("10.0.0.5", 554, false));
        assert_eq!(camera.url, "rtsp://10.0.0.5/Streaming/1");
        assert!(!format!("{camera:?}").contains("p@ss"));
        let error = "rtsp://u:secret@/x".parse::<SourceUrl>().expect_err("no host").to_string();
        assert!(!error.contains("secret"), "{error}");
        let error = "http://u:secret@h/x".parse::<SourceUrl>().expect_err("no source").to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn default_ports_are_those_of_the_scheme() {
        let port = |text: &str| match good(text) {
            SourceUrl::Rtsp(source) => source.port,
            _ => 0,
        };
        assert_eq!([port("rtsp://h/"), port("rtsps://h/"), port("rtsp://[::1]:9/")], [554, 322, 9]);
    }

    #[test]
    fn impossible_sources_are_refused_with_the_reason() {
        let what = |text: &str| text.parse::<SourceUrl>().expect_err(text).to_string();
        assert!(what("pull").contains("no source"));
        assert!(what("http://a/b").contains("begins with udp://"));
        assert!(what("demo://x").contains("takes no address"));
        assert!(what("udp://0.0.0.0:5000?interface=eth0").contains("no multicast group"));
        assert!(what("udp://239.1.1.1:5000?source=fd00::1").contains("both as IPv4"));
        assert!(what("udp://[ff15::1]:5000?source=fd00::1").contains("not supported"));
        assert!(what("rtp://0.0.0.0:65535").contains("above 65535"));
        assert!(what("rtsp:///path").contains("no RTSP address"));
        assert!(what("rtsp://h/#a").contains("behind '#'"));
    }
}
