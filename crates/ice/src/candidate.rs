//! Candidates: where a peer can send to (RFC 8839, section 5.1; by TCP, RFC 6544).

use core::fmt;
use std::net::SocketAddr;

/// What is listened with at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP, to which the peer connects.
    Tcp,
}

/// An address of the relay's own. It is shown as the value of `a=candidate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Of UDP or TCP.
    pub transport: Transport,
    /// As the peer sees it.
    pub address: SocketAddr,
    /// Its place among those of this transport: the first is preferred.
    pub place: u8,
}

impl Candidate {
    /// The larger, the more preferred (RFC 8445, section 5.1.2.1; RFC 6544, section 4.2).
    pub fn priority(&self) -> u32 {
        /// Of a host candidate.
        const TYPE: u32 = 126;
        /// Of a passive one of a host.
        const PASSIVE: u32 = 4;
        let place = u32::from(self.place);
        let local = match self.transport {
            Transport::Udp => u32::from(u16::MAX) - place,
            Transport::Tcp => (PASSIVE << 13) | (0x1fff - place),
        };
        TYPE << 24 | local << 8 | 255
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, passive) = match self.transport {
            Transport::Udp => ("udp", ""),
            Transport::Tcp => ("tcp", " tcptype passive"),
        };
        let (foundation, priority) = (u32::from(self.place) * 2 + self.transport as u32 + 1, self.priority());
        let (ip, port) = (self.address.ip(), self.address.port());
        write!(f, "candidate:{foundation} 1 {name} {priority} {ip} {port} typ host{passive}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_written_as_the_rfcs_have_them() {
        let address = "192.0.2.7:8189".parse().expect("an address");
        let udp = Candidate { transport: Transport::Udp, address, place: 0 };
        assert_eq!(udp.to_string(), "candidate:1 1 udp 2130706431 192.0.2.7 8189 typ host");
        let address = "[2001:db8::7]:8189".parse().expect("an address");
        let tcp = Candidate { transport: Transport::Tcp, address, place: 1 };
        assert_eq!(tcp.to_string(), "candidate:4 1 tcp 2124414719 2001:db8::7 8189 typ host tcptype passive");
    }

    #[test]
    fn no_two_have_the_same_priority_and_udp_comes_first() {
        let address = "192.0.2.7:8189".parse().expect("an address");
        let all = [Transport::Udp, Transport::Tcp]
            .into_iter()
            .flat_map(|transport| (0..=255).map(move |place| Candidate { transport, address, place }));
        let priorities: Vec<_> = all.map(|candidate| candidate.priority()).collect();
        assert!(priorities.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
