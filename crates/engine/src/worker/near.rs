//! Sockets that send from one address of the machine: receivers that asked there are served from there, as players
//! take packets from nowhere else, and routers on the way may let none through.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::SockRef;

use super::{Watched, Worker};
use crate::limits::NEAR_PORTS_MAX;
use crate::receive::bind_pair_beside;
use crate::system::source_address;

impl Worker {
    /// The port from which packets go to `to` with the source address `from`: the shared one where the system
    /// chooses that by itself.
    pub(super) fn port_from(&mut self, from: IpAddr, to: SocketAddr, shared: usize) -> usize {
        if let Some(port) = self.near_ports.get(&from) {
            return *port;
        }
        if from.is_unspecified()
            || from.is_ipv4() != to.is_ipv4()
            || source_address(to).is_ok_and(|own| own == from)
        {
            return shared;
        }
        match self.open_near(from, shared) {
            Ok(port) => port,
            Err(error) => {
                tracing::warn!(%from, %to, %error, "packets leave from the address that the system chooses");
                shared
            }
        }
    }

    fn open_near(&mut self, from: IpAddr, shared: usize) -> io::Result<usize> {
        if self.near_ports.len() >= NEAR_PORTS_MAX {
            return Err(io::Error::other(format!("{NEAR_PORTS_MAX} other addresses have sockets already")));
        }
        let gone = || io::Error::other("the worker has no ports of this family");
        let rtp = self.ports.get(shared).ok_or_else(gone)?;
        let Some(Watched::Rtcp { socket: rtcp }) = rtp.rtcp.and_then(|token| self.watched.get(token)) else {
            return Err(gone());
        };
        let pair = bind_pair_beside(from, (SockRef::from(&rtp.socket), SockRef::from(rtcp)))?;
        let port = self.add_pair(pair)?;
        self.near_ports.insert(from, port);
        Ok(port)
    }
}
