//! Where peers are told that the relay is.

use std::net::{IpAddr, SocketAddr};

use outflow_ice::{Candidate, Transport};

use crate::limits::CANDIDATES_MAX;

/// Candidates for sockets that are bound there, of UDP and, less preferred, of TCP: at the addresses that are given, or
/// else at all that lead to them.
pub(crate) fn candidates(bound: SocketAddr, given: impl Iterator<Item = IpAddr>) -> Vec<String> {
    let mut places: Vec<IpAddr> = given.collect();
    if places.is_empty() {
        places = if bound.ip().is_unspecified() { of_interfaces(bound) } else { vec![bound.ip()] };
    }
    // Peers that take one alone take the first.
    places.sort_by_key(|place| place.is_ipv6());
    let by = |transport| {
        places.iter().take(CANDIDATES_MAX).enumerate().map(move |(place, ip)| {
            let address = SocketAddr::new(*ip, bound.port());
            Candidate { transport, address, place: place as u8 }.to_string()
        })
    };
    by(Transport::Udp).chain(by(Transport::Tcp)).collect()
}

/// Addresses of this machine: the loopback's only if there are no others.
fn of_interfaces(bound: SocketAddr) -> Vec<IpAddr> {
    let all: Vec<IpAddr> = match if_addrs::get_if_addrs() {
        Ok(all) => all.iter().filter(|one| one.is_oper_up()).map(|one| one.ip()).collect(),
        Err(error) => {
            tracing::warn!(%error, "cannot list the interfaces: give [webrtc] addresses");
            Vec::new()
        }
    };
    reachable(&all, bound.is_ipv4())
}

fn reachable(all: &[IpAddr], is_v4_only: bool) -> Vec<IpAddr> {
    let is_local = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let usable = all.iter().filter(|ip| !is_local(ip) && (ip.is_ipv4() || !is_v4_only));
    let (loopback, others): (Vec<IpAddr>, Vec<IpAddr>) = usable.partition(|ip| ip.is_loopback());
    if others.is_empty() { loopback } else { others }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn what_is_given_comes_before_what_is_found() {
        let bound = SocketAddr::new(ip("::"), 8189);
        let given = candidates(bound, [ip("2001:db8::5"), ip("203.0.113.5")].into_iter());
        let expected = [
            "candidate:1 1 udp 2130706431 203.0.113.5 8189 typ host",
            "candidate:3 1 udp 2130706175 2001:db8::5 8189 typ host",
            "candidate:2 1 tcp 2124414975 203.0.113.5 8189 typ host tcptype passive",
            "candidate:4 1 tcp 2124414719 2001:db8::5 8189 typ host tcptype passive",
        ];
        assert_eq!(given, expected);
        let one = SocketAddr::new(ip("192.0.2.9"), 8189);
        let expected = [
            "candidate:1 1 udp 2130706431 192.0.2.9 8189 typ host",
            "candidate:2 1 tcp 2124414975 192.0.2.9 8189 typ host tcptype passive",
        ];
        assert_eq!(candidates(one, [].into_iter()), expected);
    }

    #[test]
    fn the_loopback_is_for_machines_without_a_network() {
        let all = ["127.0.0.1", "::1", "169.254.3.4", "fe80::1", "10.0.0.5", "2001:db8::5"].map(ip);
        assert_eq!(reachable(&all, false), [ip("10.0.0.5"), ip("2001:db8::5")]);
        assert_eq!(reachable(&all, true), [ip("10.0.0.5")]);
        assert_eq!(reachable(&all[..4], false), [ip("127.0.0.1"), ip("::1")]);
    }
}
