//! The UDP sockets from which a worker serves receivers: its own pairs of RTP and RTCP, of IPv4 and of IPv6,
//! others that send from single addresses of the machine, and those of configured receivers.
//!
//! Receivers that asked at one address are served from there, as players take packets from nowhere else, and
//! routers on the way may let none through.

mod save;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use outflow_relay::{Encapsulation, SinkKey};
use outflow_socket::{Buffer, has_v6, set_buffer};
use rustix::event::epoll::EventFlags;
use slab::Slab;
use socket2::SockRef;

use super::reporter::Pin;
use super::sink::Out;
use super::watch::{Watch, Watched};
use crate::limits::{NEAR_PORTS_MAX, UDP_SEND_BUFFER_BYTES};
use crate::message::{ControlError, Destination, ReceiverId, TrackAddress, UdpSite};
use crate::receive::{PortPair, bind_pair_at, bind_pair_beside};
use crate::send::udp::{UdpPort, UdpRoute};
use crate::system::source_address;

pub(super) use save::copy;

/// The sink of a stream that reports from some address, and on which track.
pub(super) type Reporter = (usize, SinkKey, u8);

/// The sockets that serve receivers by UDP.
pub(super) struct UdpPorts {
    all: Slab<UdpPort>,
    /// The worker's own RTP sockets, of IPv4 and of IPv6.
    own: [Option<usize>; 2],
    /// Those from single addresses of the machine.
    near: BTreeMap<IpAddr, usize>,
    /// Which sink reports from which address, and as which source.
    reporters: BTreeMap<SocketAddr, (Reporter, Pin)>,
    /// RTCP packets from other addresses.
    strangers: u64,
    /// Those that are full, and the sinks that were to be sent to since: no more than there are sinks.
    waiting: BTreeMap<usize, BTreeSet<(usize, SinkKey)>>,
}

impl UdpPorts {
    /// This pair, and that of IPv6 with the same ports where the machine has it.
    ///
    /// # Errors
    /// The system refuses to wait for them.
    pub(super) fn open(watch: &mut Watch, pair: PortPair) -> io::Result<Self> {
        let port = pair.ports.0;
        let v6 = bind_pair_at(IpAddr::from(Ipv6Addr::UNSPECIFIED), port);
        let (all, own, near) = (Slab::new(), [None; 2], BTreeMap::new());
        let (reporters, waiting) = (BTreeMap::new(), BTreeMap::new());
        let mut ports = UdpPorts { all, own, near, reporters, strangers: 0, waiting };
        ports.own[0] = Some(ports.add_pair(watch, pair)?);
        match v6 {
            Ok(v6) => ports.own[1] = Some(ports.add_pair(watch, v6)?),
            Err(error) if has_v6() => {
                let help = "end what has them, or move [listen] rtp_ports, and start the relay again";
                tracing::warn!(port, %error, "a worker has no RTP ports of IPv6, but of IPv4: {help}");
            }
            Err(_) => {}
        }
        Ok(ports)
    }

    /// Sockets that serve sinks from a port of their own, with RTCP beside it.
    fn add_pair(&mut self, watch: &mut Watch, pair: PortPair) -> io::Result<usize> {
        let port = self.add_port(watch, pair.rtp, None)?;
        let entry = watch.add(&pair.rtcp, EventFlags::IN)?;
        self.all[port].rtcp = Some(entry.key());
        entry.insert(Watched::Rtcp { socket: pair.rtcp });
        Ok(port)
    }

    /// A socket that serves sinks, or this configured receiver. It is waited for only where its
    /// buffer fills up.
    fn add_port(
        &mut self,
        watch: &mut Watch,
        socket: UdpSocket,
        push: Option<&Destination>,
    ) -> io::Result<usize> {
        set_buffer(&socket, Buffer::Send, UDP_SEND_BUFFER_BYTES);
        let port = self.all.vacant_key();
        let entry = watch.add(&socket, EventFlags::OUT | EventFlags::ONESHOT)?;
        let token = entry.key();
        entry.insert(Watched::Port { port });
        self.all.insert(UdpPort::new(socket, token, push)?);
        Ok(port)
    }

    /// The way to a receiver that has negotiated these addresses.
    pub(super) fn negotiated(
        &mut self,
        watch: &mut Watch,
        receiver: ReceiverId,
        site: &UdpSite,
        addresses: &[TrackAddress],
    ) -> Result<Out, ControlError> {
        let v6 = addresses.first().is_some_and(|address| address.rtp.is_ipv6());
        let shared = self.own[usize::from(v6)].ok_or_else(|| {
            let why = "this worker has no RTP ports of IPv6 (its log says if others have them)";
            ControlError::Unsupported(format!("{why}: use an IPv4 address, or TCP"))
        })?;
        let socket = match addresses.first() {
            Some(address) => self.port_from(watch, site.from, address.rtp, shared),
            None => shared,
        };
        let media = addresses.iter().map(|a| (a.track, a.rtp.into())).collect();
        let rtcp = addresses.iter().map(|a| (a.track, a.rtcp.into())).collect();
        Ok(Out::Udp { route: UdpRoute::new(receiver, socket, media), rtcp, own_socket: false })
    }

    /// The way to a configured receiver: from the worker's own ports, unless it asks for something
    /// that a socket has to be set up for.
    pub(super) fn configured(
        &mut self,
        watch: &mut Watch,
        receiver: ReceiverId,
        push: &Destination,
        (encapsulation, tracks): (Encapsulation, u8),
    ) -> Result<Out, ControlError> {
        let shared = self.own[usize::from(push.to.is_ipv6())].filter(|_| push.is_plain());
        let socket = match shared {
            Some(socket) => socket,
            None => {
                let socket = crate::send::open_push(push)?;
                let added = self.add_port(watch, socket, Some(push));
                added.map_err(|e| ControlError::system("waiting for a receiver's socket", &e))?
            }
        };
        let media = (0..tracks).map(|track| (track, push.track(track).into())).collect();
        let above = |address: SocketAddr| SocketAddr::new(address.ip(), address.port().saturating_add(1));
        let with_rtcp = if encapsulation.is_rtp() { tracks } else { 0 };
        let rtcp = (0..with_rtcp).map(|track| (track, above(push.track(track)).into())).collect();
        let route = UdpRoute::new(receiver, socket, media);
        Ok(Out::Udp { route, rtcp, own_socket: shared.is_none() })
    }

    /// The port from which packets go to `to` with the source address `from`: the shared one where the system
    /// chooses that by itself.
    fn port_from(&mut self, watch: &mut Watch, from: IpAddr, to: SocketAddr, shared: usize) -> usize {
        if let Some(port) = self.near.get(&from) {
            return *port;
        }
        if from.is_unspecified()
            || from.is_ipv4() != to.is_ipv4()
            || source_address(to).is_ok_and(|own| own == from)
        {
            return shared;
        }
        match self.open_near(watch, from, shared) {
            Ok(port) => port,
            Err(error) => {
                tracing::warn!(%from, %to, %error, "packets leave from the address that the system chooses");
                shared
            }
        }
    }

    fn open_near(&mut self, watch: &mut Watch, from: IpAddr, shared: usize) -> io::Result<usize> {
        if self.near.len() >= NEAR_PORTS_MAX {
            return Err(io::Error::other(format!("{NEAR_PORTS_MAX} other addresses have sockets already")));
        }
        let gone = || io::Error::other("the worker has no ports of this family");
        let rtp = self.all.get(shared).ok_or_else(gone)?;
        let Some(Watched::Rtcp { socket: rtcp }) = rtp.rtcp.and_then(|token| watch.get(token)) else {
            return Err(gone());
        };
        let pair = bind_pair_beside(from, (SockRef::from(&rtp.socket), SockRef::from(rtcp)))?;
        let port = self.add_pair(watch, pair)?;
        self.near.insert(from, port);
        Ok(port)
    }

    /// A configured receiver has left that had this socket alone.
    pub(super) fn remove(&mut self, watch: &mut Watch, port: usize) {
        self.waiting.remove(&port);
        if let Some(port) = self.all.try_remove(port) {
            watch.forget(port.token);
        }
    }

    /// The sockets themselves, to send from.
    pub(super) fn sockets(&mut self) -> &mut Slab<UdpPort> {
        &mut self.all
    }

    /// The socket from which RTCP goes: the RTCP side of a pair, else the port itself.
    pub(super) fn report_socket<'a>(&'a self, watch: &'a Watch, port: usize) -> Option<&'a UdpSocket> {
        let port = self.all.get(port)?;
        let Some(token) = port.rtcp else { return Some(&port.socket) };
        match watch.get(token)? {
            Watched::Rtcp { socket } => Some(socket),
            _ => None,
        }
    }

    /// A sink reports from this address.
    pub(super) fn note_reporter(&mut self, from: SocketAddr, reporter: Reporter) {
        self.reporters.insert(from, (reporter, Pin::default()));
    }

    /// No sink reports from there any more.
    pub(super) fn forget_reporter(&mut self, from: &SocketAddr) {
        self.reporters.remove(from);
    }

    /// The sink that reports from an address, and what is known of the source that does. A packet from another one is
    /// counted.
    pub(super) fn reporter(&mut self, from: &SocketAddr) -> Option<&mut (Reporter, Pin)> {
        let known = self.reporters.get_mut(from);
        self.strangers += u64::from(known.is_none());
        known
    }

    /// How many RTCP packets came from addresses of no sink.
    pub(super) fn strangers(&self) -> u64 {
        self.strangers
    }

    /// A socket is full, and a sink was to be sent to: waits until it takes packets again. Others are not waited
    /// for: they would wake the worker whenever a packet has left.
    pub(super) fn wait_for_full(&mut self, watch: &Watch, number: usize, sink: (usize, SinkKey)) {
        let Some(port) = self.all.get(number) else { return };
        let waiting = self.waiting.entry(number).or_insert_with(|| {
            if let Err(error) = watch.change(port.token, &port.socket, EventFlags::OUT | EventFlags::ONESHOT)
            {
                tracing::error!(%error, "cannot wait for a socket that is full");
            }
            BTreeSet::new()
        });
        waiting.insert(sink);
    }

    /// A socket takes packets again. Answers the sinks that have waited for it; some may have left since.
    pub(super) fn take_full(&mut self, number: usize) -> BTreeSet<(usize, SinkKey)> {
        let Some(waiting) = self.waiting.remove(&number) else { return BTreeSet::new() };
        self.all.get_mut(number).into_iter().for_each(|port| port.full = false);
        waiting
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::net::Ipv4Addr;

    use super::*;
    use crate::clock::Clock;
    use crate::receive::bind_pair;

    #[test]
    fn reports_from_addresses_of_no_sink_are_counted() {
        let mut watch = Watch::new(Duration::ZERO).expect("a descriptor");
        let pair = bind_pair(IpAddr::from(Ipv4Addr::LOCALHOST), &(22_000..=22_998)).expect("two ports");
        let mut ports = UdpPorts::open(&mut watch, pair).expect("waited for");
        let [known, other] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 5005)));
        ports.note_reporter(known, (3, SinkKey(4), 0));
        assert_eq!(ports.reporter(&known).map(|(place, _)| *place), Some((3, SinkKey(4), 0)));
        assert!(ports.reporter(&other).is_none());
        assert_eq!(ports.strangers(), 1);
    }

    #[test]
    fn where_others_have_the_ports_of_ipv6_receivers_by_that_are_told_and_those_by_ipv4_served() {
        let mut watch = Watch::new(Duration::ZERO).expect("a descriptor");
        let pair = bind_pair(IpAddr::from(Ipv4Addr::LOCALHOST), &(23_000..=23_998)).expect("two ports");
        let Ok(_other) = UdpSocket::bind((Ipv6Addr::LOCALHOST, pair.ports.1)) else {
            return outflow_skip::skipped("ports of IPv6 that others have", "no IPv6 here");
        };
        let mut ports = UdpPorts::open(&mut watch, pair).expect("waited for");
        let mut asks = |to: SocketAddr| {
            let site = UdpSite { worker: 0, from: to.ip(), rtp: 1, rtcp: 2 };
            ports.negotiated(&mut watch, 1, &site, &[TrackAddress { track: 0, rtp: to, rtcp: to }])
        };
        assert!(asks(SocketAddr::from((Ipv4Addr::LOCALHOST, 9))).is_ok());
        let told = asks(SocketAddr::from((Ipv6Addr::LOCALHOST, 9))).err().expect("refused").to_string();
        assert!(told.contains("no RTP ports of IPv6") && told.contains("use an IPv4 address"), "{told}");
    }

    #[test]
    fn a_full_socket_is_waited_for_once_by_the_sinks_that_were_to_be_sent_to() {
        let mut watch = Watch::new(Duration::ZERO).expect("a descriptor");
        let pair = bind_pair(IpAddr::from(Ipv4Addr::LOCALHOST), &(21_000..=21_998)).expect("two ports");
        let mut ports = UdpPorts::open(&mut watch, pair).expect("waited for");
        let number = ports.own[0].expect("of IPv4");
        let clock = Clock::start();
        let woken = |watch: &mut Watch| {
            let mut events = Vec::with_capacity(4);
            watch.wait(&clock, clock.now() + Duration::from_millis(20), &mut events).expect("waits");
            let ports = |token| matches!(watch.get(token), Some(Watched::Port { port }) if *port == number);
            events.iter().filter(|event| ports(event.data.u64() as usize)).count()
        };
        assert_eq!(woken(&mut watch), 1, "each is looked at when it comes");
        assert!(ports.take_full(number).is_empty(), "it was not full");
        assert_eq!(woken(&mut watch), 0);

        ports.all[number].full = true;
        let sinks = [(1, SinkKey(4)), (0, SinkKey(7)), (1, SinkKey(4)), (1, SinkKey(2))];
        sinks.into_iter().for_each(|sink| ports.wait_for_full(&watch, number, sink));
        assert_eq!(woken(&mut watch), 1);
        let waited: Vec<_> = ports.take_full(number).into_iter().collect();
        assert_eq!(waited, [(0, SinkKey(7)), (1, SinkKey(2)), (1, SinkKey(4))]);
        assert!(!ports.all[number].full && ports.take_full(number).is_empty());

        ports.wait_for_full(&watch, number, (0, SinkKey(7)));
        ports.remove(&mut watch, number);
        assert!(ports.take_full(number).is_empty(), "another one may have its number");
    }
}
