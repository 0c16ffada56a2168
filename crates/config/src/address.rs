//! What addresses of UDP sources and sinks have in common: `ADDRESS:PORT?key=value&…`.

use std::net::{IpAddr, SocketAddr};

use crate::Invalid;
use crate::invalid::nearest;
use crate::limits::INTERFACE_BYTES_MAX;
use crate::value::socket_address;
use crate::words;

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

/// An address and what its query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatagramAddress {
    pub(crate) at: SocketAddr,
    pub(crate) source: Option<IpAddr>,
    pub(crate) ttl: Option<u8>,
    pub(crate) interface: Option<String>,
    /// Whether members of a group on this machine get it, too.
    pub(crate) loops: bool,
    pub(crate) datagrams: Datagrams,
}

impl DatagramAddress {
    /// Reads what follows `scheme://`. Only the keys in `known` may stand in the query.
    pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Self, Invalid> {
        let (host, query) = text.split_once('?').unwrap_or((text, ""));
        let at = socket_address(host.strip_prefix('@').unwrap_or(host).trim_end_matches('/'))?;
        let mut address = DatagramAddress {
            at,
            source: None,
            ttl: None,
            interface: None,
            loops: true,
            datagrams: Datagrams::Ts,
        };
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&key) {
                return Err(unknown(key, known));
            }
            if seen.contains(&key) {
                return Err(Invalid::new(format!("'{key}' is given twice"), "leave one out"));
            }
            seen.push(key);
            match key {
                "source" => address.source = Some(ip_address(value)?),
                "ttl" => address.ttl = Some(ttl(value)?),
                "loop" => address.loops = loops(value)?,
                "format" => address.datagrams = datagrams(value)?,
                _ => address.interface = Some(interface(value)?),
            }
        }
        Ok(address)
    }

    /// Refuses what only means something for a multicast group.
    pub(crate) fn check_multicast(&self) -> Result<(), Invalid> {
        if self.at.ip().is_multicast() {
            return Ok(());
        }
        let given =
            [("ttl", self.ttl.is_some()), ("interface", self.interface.is_some()), ("loop", !self.loops)];
        for (key, given) in given {
            if given {
                let what =
                    format!("'{key}' has no meaning for {}, which is no multicast group", self.at.ip());
                let help = format!("leave {key} out, or give a group (224.0.0.0/4 or ff00::/8)");
                return Err(Invalid::new(what, help));
            }
        }
        Ok(())
    }
}

fn ip_address(text: &str) -> Result<IpAddr, Invalid> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    let address: IpAddr = bare
        .parse()
        .map_err(|_| Invalid::new(format!("'{text}' is no IP address"), "write it like source=10.0.0.9"))?;
    if address.is_multicast() || address.is_unspecified() {
        let help = "give the address of the host that sends";
        return Err(Invalid::new(format!("{address} is the address of no host"), help));
    }
    Ok(address)
}

fn datagrams(text: &str) -> Result<Datagrams, Invalid> {
    text.parse().map_err(|_| {
        let help = "write format=ts, format=ppm or format=data";
        Invalid::new(format!("'{text}' is no format of datagrams"), help)
    })
}

fn ttl(text: &str) -> Result<u8, Invalid> {
    match text.parse() {
        Ok(ttl) if ttl > 0 => Ok(ttl),
        _ => Err(Invalid::new(
            format!("'{text}' is no TTL"),
            "write a number of hops from 1 to 255, as in ttl=4",
        )),
    }
}

fn loops(text: &str) -> Result<bool, Invalid> {
    match text {
        "off" => Ok(false),
        _ => Err(Invalid::new(
            format!("'{text}' is no choice of loop"),
            "write loop=off, or leave it out: members on this machine get what goes to a group, too, then",
        )),
    }
}

pub(crate) fn interface(text: &str) -> Result<String, Invalid> {
    let allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '%');
    if text.is_empty() || text.len() > INTERFACE_BYTES_MAX || !text.chars().all(allowed) {
        let help = "write its name as `ip link` shows it, as in interface=eth0";
        return Err(Invalid::new(format!("'{text}' is no network interface"), help));
    }
    Ok(text.to_owned())
}

fn unknown(key: &str, known: &[&str]) -> Invalid {
    let help = match nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("possible here: {}", known.join(", ")),
    };
    Invalid::new(format!("the address has the unknown parameter '{key}'"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 3] = ["source", "ttl", "interface"];

    #[test]
    fn addresses_of_both_families_with_parameters() {
        let address = DatagramAddress::parse("239.1.1.1:5000?source=10.0.0.9&interface=eth0&ttl=4", &ALL)
            .expect("good");
        assert_eq!(address.at, SocketAddr::from(([239, 1, 1, 1], 5000)));
        assert_eq!(address.source, Some(IpAddr::from([10, 0, 0, 9])));
        assert_eq!((address.interface.as_deref(), address.ttl), (Some("eth0"), Some(4)));
        let six = DatagramAddress::parse("[ff02::1:3]:6000?source=[fe80::1]", &ALL).expect("good");
        assert!(six.at.is_ipv6() && six.source.is_some_and(|s| s.is_ipv6()));
        assert!(DatagramAddress::parse("@239.1.1.1:5000", &ALL).is_ok(), "as VLC writes it");
        assert!(DatagramAddress::parse("239.1.1.1:5000/", &ALL).is_ok());
    }

    #[test]
    fn mistakes_are_named() {
        let what = |text: &str| DatagramAddress::parse(text, &ALL).expect_err(text).to_string();
        assert!(what("camera:5000").contains("no IP address with a port"));
        assert!(what("10.0.0.1").contains("no IP address with a port"));
        assert!(what("10.0.0.1:0").contains("port 0"));
        assert!(what("239.1.1.1:5000?tll=4").contains("did you mean 'ttl'?"));
        assert!(what("239.1.1.1:5000?ttl=4&ttl=5").contains("twice"));
        assert!(what("239.1.1.1:5000?ttl=0").contains("no TTL"));
        assert!(what("239.1.1.1:5000?ttl=256").contains("no TTL"));
        assert!(what("239.1.1.1:5000?interface=averyveryverylongname").contains("no network interface"));
        assert!(what("239.1.1.1:5000?source=239.1.1.2").contains("of no host"));
        assert!(what("239.1.1.1:5000?source").contains("no IP address"));
    }
}
