//! `udp://` and `rtp://` URLs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use url::Url;

use crate::Error;
use crate::socket::Place;

/// Reads `udp://[address]:port`, with `?source=` and `?interface=` for groups. An `@` before the
/// address, as some players want it, is allowed; other parameters are for other programs.
pub(crate) fn parse(url: &Url) -> Result<Place, Error> {
    let bad = |why: &str| Error::url(url.as_str(), why);
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let ip: IpAddr = match host {
        "" | "*" => Ipv4Addr::UNSPECIFIED.into(),
        host => host.parse().map_err(|_| {
            bad("name an address of this machine, 0.0.0.0, or a multicast group before the port")
        })?,
    };
    let port = url.port().ok_or_else(|| bad("it names no port: udp://ADDRESS:PORT"))?;
    let get = |names: [&str; 2]| {
        let found = url.query_pairs().find(|(name, _)| names.contains(&&**name));
        found.map(|(_, value)| value.into_owned())
    };
    let source = get(["source", "sources"]);
    let source = source.map(|s| s.parse::<IpAddr>().map_err(|_| bad("source= is not an address")));
    let place = Place {
        at: SocketAddr::new(ip, port),
        source: source.transpose()?,
        interface: get(["interface", "localaddr"]),
    };
    if place.interface.is_some() && !ip.is_multicast() {
        return Err(bad("interface= is for multicast groups"));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Place, String> {
        parse(&Url::parse(text).unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn addresses_groups_and_sources_are_understood() {
        let place = parsed("udp://@239.1.1.1:5000?source=10.0.0.9&interface=eth1&pkt_size=1316").unwrap();
        assert_eq!(place.at, "239.1.1.1:5000".parse().unwrap());
        assert_eq!(place.source, "10.0.0.9".parse().ok());
        assert_eq!(place.interface.as_deref(), Some("eth1"));
        assert_eq!(parsed("rtp://[ff15::1]:5004").unwrap().at, "[ff15::1]:5004".parse().unwrap());
        assert_eq!(parsed("udp://0.0.0.0:1").unwrap().source, None);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(parsed("udp://0.0.0.0").unwrap_err().contains("no port"));
        assert!(parsed("udp://camera:5000").unwrap_err().contains("0.0.0.0"));
        assert!(parsed("udp://239.1.1.1:5?source=x").unwrap_err().contains("source="));
        assert!(parsed("udp://0.0.0.0:5?interface=eth0").unwrap_err().contains("groups"));
    }
}
