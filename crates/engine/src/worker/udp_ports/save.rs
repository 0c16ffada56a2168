//! UDP ports that another process goes on with.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use super::UdpPorts;
use crate::message::{Destination, Moved, ReceiverId, SavedDestination, SavedFrom, SavedPorts, addresses};
use crate::receive::PortPair;
use crate::send::udp::UdpRoute;
use crate::worker::sink::Out;
use crate::worker::watch::Watch;

impl UdpPorts {
    /// The worker's pairs: its own, of IPv4 and of IPv6, and those from single addresses.
    fn pairs(&self) -> impl Iterator<Item = (SavedPorts, usize)> + '_ {
        let own = |is_ipv6: bool| {
            let pair = SavedPorts { is_ipv6, from: None };
            self.own[usize::from(is_ipv6)].map(|port| (pair, port))
        };
        let near = |(from, port): (&IpAddr, &usize)| {
            (SavedPorts { is_ipv6: from.is_ipv6(), from: Some(from.to_string()) }, *port)
        };
        [false, true].into_iter().filter_map(own).chain(self.near.iter().map(near))
    }

    /// The pairs, as they are saved.
    pub(in crate::worker) fn save(&self, watch: &Watch) -> io::Result<Moved<Vec<SavedPorts>>> {
        let mut saved = Moved { value: Vec::new(), descriptors: Vec::new() };
        for (pair, port) in self.pairs() {
            let Some(rtcp) = self.report_socket(watch, port) else { continue };
            saved.descriptors.push(copy(&self.all[port].socket)?);
            saved.descriptors.push(copy(rtcp)?);
            saved.value.push(pair);
        }
        Ok(saved)
    }

    /// Where a receiver is served from, as it is saved.
    pub(in crate::worker) fn save_from(
        &self,
        route: &UdpRoute,
        descriptors: &mut Vec<OwnedFd>,
    ) -> io::Result<SavedFrom> {
        if let Some(place) = self.pairs().position(|(_, port)| port == route.socket) {
            return Ok(SavedFrom::Pair(place as u32));
        }
        let gone = || io::Error::other("a receiver's socket is gone");
        let port = self.all.get(route.socket).ok_or_else(gone)?;
        let destination = port.push.as_deref().ok_or_else(gone)?;
        let descriptor = descriptors.len() as u32;
        descriptors.push(copy(&port.socket)?);
        Ok(SavedFrom::Own { descriptor, destination: save_destination(destination) })
    }

    /// Serves from these from now on, and from those that were opened meanwhile no more. Answers the ports of the
    /// worker's own pair.
    pub(in crate::worker) fn take(
        &mut self,
        watch: &mut Watch,
        saved: Moved<Vec<SavedPorts>>,
    ) -> io::Result<Option<(u16, u16)>> {
        let mut ports = None;
        let mut descriptors = saved.descriptors.into_iter();
        for place in self.own.iter_mut().filter_map(Option::take).collect::<Vec<_>>() {
            self.remove_pair(watch, place);
        }
        for pair in saved.value {
            let (Some(rtp), Some(rtcp)) = (descriptors.next(), descriptors.next()) else { break };
            let (rtp, rtcp) = (UdpSocket::from(rtp), UdpSocket::from(rtcp));
            let numbers = (rtp.local_addr()?.port(), rtcp.local_addr()?.port());
            let port = self.add_pair(watch, PortPair { rtp, rtcp, ports: numbers })?;
            match pair.from.and_then(|from| from.parse().ok()) {
                Some(from) => _ = self.near.insert(from, port),
                None => {
                    self.own[usize::from(pair.is_ipv6)] = Some(port);
                    ports.get_or_insert(numbers);
                }
            }
        }
        Ok(ports)
    }

    fn remove_pair(&mut self, watch: &mut Watch, place: usize) {
        let Some(port) = self.all.try_remove(place) else { return };
        port.rtcp.into_iter().for_each(|token| watch.forget(token));
        watch.forget(port.token);
    }

    /// The way to a receiver as it was before.
    pub(in crate::worker) fn take_out(
        &mut self,
        watch: &mut Watch,
        receiver: ReceiverId,
        from: SavedFrom,
        [media, rtcp]: [&[(u8, String)]; 2],
        descriptors: &mut [Option<OwnedFd>],
    ) -> io::Result<Out> {
        let missing = || io::Error::other("a receiver's socket is missing");
        let (socket, own_socket) = match from {
            SavedFrom::Pair(place) => {
                let pair = self.pairs().nth(place as usize);
                (pair.ok_or_else(missing)?.1, false)
            }
            SavedFrom::Own { descriptor, destination } => {
                let place = descriptors.get_mut(descriptor as usize);
                let socket = UdpSocket::from(place.and_then(Option::take).ok_or_else(missing)?);
                let destination = restore_destination(destination).ok_or_else(missing)?;
                (self.add_port(watch, socket, Some(&destination))?, true)
            }
        };
        let route = UdpRoute::new(receiver, socket, addresses(media));
        Ok(Out::Udp { route, rtcp: addresses(rtcp), own_socket })
    }
}

/// A descriptor of the same socket.
pub(in crate::worker) fn copy(socket: impl AsFd) -> io::Result<OwnedFd> {
    socket.as_fd().try_clone_to_owned()
}

fn save_destination(destination: &Destination) -> SavedDestination {
    let Destination { to, from, ttl, interface, loops } = destination;
    let (to, from) = (to.to_string(), from.map(|from| from.to_string()));
    SavedDestination { to, from, ttl: *ttl, interface: interface.clone(), loops: *loops }
}

fn restore_destination(saved: SavedDestination) -> Option<Destination> {
    let SavedDestination { to, from, ttl, interface, loops } = saved;
    let from = from.map(|from| from.parse()).transpose().ok()?;
    Some(Destination { to: to.parse().ok()?, from, ttl, interface, loops })
}
