//! Ends of the partial-order transport: the state machines that relays run, in datagrams of UDP over IPv4.
//!
//! As live, the end that sends connects, and the one that receives agrees to what is asked for. Units are
//! made as a relay makes those of a stream of RTP: a packet is a unit, with its channel in front, worth what
//! its tag says. Nothing is encrypted, and no description goes first. Packets carry no marks of ECN, as
//! networks here set none.
//!
//! | figure of the sender | |
//! |---|---|
//! | `connections` | how often it was connected |
//! | `units`, `dropped` | packets that were taken, and those that found no connection or no room |
//! | `bytes_sent` | of all that it sent, with headers of IP |
//! | `repeated` | pieces of units that were to go again, with further copies of them; probes are not in it |
//! | `given_up` | units that were not sent, or not sent again; some of them may have come |
//! | `lost` | units that the receiver said that it has not had |
//!
//! | figure of the receiver | |
//! |---|---|
//! | `units`, `missed` | units that were delivered, and those that it went on without |
//! | `delivered_pct` | the share of the former |
//! | `bytes` | of packets that were delivered, without headers |
//! | `refused` | connections that it did not agree to |
//!
//! If packets of RTP come, a receiver has the figures of a viewer, too.

mod model;
mod receiver;
mod sender;

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use outflow_media::Time;
use outflow_poc::endpoint::{Endpoint, Handshakes, Settings};
use outflow_poc::packet::Mark;
use outflow_poc::secret::Secret;

pub use self::model::{PocReceiverModel, PocSenderModel};
pub(in crate::network) use self::receiver::PocReceiver;
pub(in crate::network) use self::sender::PocSender;
use super::{Place, Port, udp};

/// The port of both ends.
const PORT: u16 = 4000;

/// An endpoint, where it is, and what it sent.
struct End {
    endpoint: Endpoint,
    ports: Vec<Port>,
    /// The datagram that goes next.
    out: Vec<u8>,
    /// Bytes of packets of IP.
    bytes_sent: u64,
}

impl End {
    fn new(mut settings: Settings, place: &Place<'_>, handshakes: Option<Handshakes>) -> Self {
        settings.connection.marks = false;
        let mut key = [0; 16];
        key[..8].copy_from_slice(&place.seed.to_le_bytes());
        End {
            endpoint: Endpoint::new(settings, Secret::new(key), handshakes),
            ports: place.ports.to_vec(),
            out: Vec::new(),
            bytes_sent: 0,
        }
    }

    /// A packet that is no datagram for this end, or cannot be answered, is another one's to read.
    fn handle_packet(&mut self, now: Time, port: usize, packet: &Bytes) {
        let Some((from, to, payload)) = udp::payload(packet) else { return };
        let own = self.ports.get(port).map(|port| SocketAddr::from((port.v4, PORT)));
        if own == Some(to) && self.towards(from).is_some() {
            self.endpoint.handle_datagram(now, from, Mark::None, &mut Vec::from(payload));
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Bytes)> {
        // An address that no segment leads to was given by none that is answered.
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.out) {
            if let Some((port, own)) = self.towards(transmit.to)
                && let Some(packet) = udp::datagram((own, PORT).into(), transmit.to, &self.out)
            {
                self.bytes_sent += packet.len() as u64;
                return Some((port, packet));
            }
        }
        None
    }

    /// The port that leads to an address, and what it is called there.
    fn towards(&self, to: SocketAddr) -> Option<(usize, Ipv4Addr)> {
        let IpAddr::V4(to) = to.ip() else { return None };
        let is_there = |port: &Port| port.v4.octets()[..3] == to.octets()[..3];
        let index = self.ports.iter().position(is_there)?;
        Some((index, self.ports[index].v4))
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.endpoint.len();
        f.debug_struct("End").field("connections", &connections).field("ports", &self.ports).finish()
    }
}

#[cfg(test)]
mod tests;
