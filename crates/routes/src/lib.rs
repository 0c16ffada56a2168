//! Routes: how receivers are reached on the link layer, for what sends past the kernel's IP layer.
//!
//! The kernel decides: every route is its answer to RTM_GETROUTE, every MAC address one of its
//! neighbour table. Answers are kept until an event says that they may be different; and because
//! packets that pass the kernel's neighbour code do not keep its table fresh, [`Routes::refresh`]
//! does.
//!
//! What the kernel does with packets on its way out besides finding the next hop is not asked for
//! here: netfilter, IPsec policies and traffic control of sockets do not see such packets.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a driver owns clock, sockets and files"
)]

mod confirmer;
mod hop;
pub mod limits;
mod netdev;
mod setup;
mod socket;
mod tables;
mod wire;

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_packet_route::RouteNetlinkMessage;
use outflow_media::Time;
use outflow_privilege::has_helper;
use rustix::event::epoll;

pub use self::confirmer::Confirmer;
use self::hop::Flow;
pub use self::hop::{Changes, Hop, Mac, NoHop};
use self::netdev::Netdev;
pub use self::setup::Setup;
use self::socket::Netlink;
use self::tables::{Path, Tables};
use crate::limits::{NETLINK_ROUNDS, ROUTE_ASK_AGAIN, ROUTES_ASKED_AT_ONCE, ROUTES_SETTLE};

/// How often [`Routes::refresh`] looks whether neighbours are to be confirmed.
const CONFIRM_CHECK: Duration = Duration::from_secs(1);

/// The least time between two slices of routes that are asked for again.
const SLICE: Duration = Duration::from_millis(20);

/// How often a dump is tried that the kernel says is inconsistent.
const DUMP_TRIES: u32 = 3;

/// How receivers are reached, in the network namespace in which it was opened.
pub struct Routes {
    /// Ready when any of the sockets with events is.
    ready: OwnedFd,
    events: Netlink,
    asker: Netlink,
    /// Has neighbours confirmed, where no helper does.
    confirmer: Confirmer,
    /// None before Linux 6.3.
    netdev: Option<Netdev>,
    tables: Tables,
    /// Events were lost, and the tables could not be read again since.
    lost: bool,
    may_confirm: bool,
    next_confirm: Time,
    sweep: Sweep,
}

/// Routes are asked for again, some at a time: slowly always, since the kernel says nothing of path
/// MTUs and redirects that it learns; and soon after events that change routes silently.
#[derive(Debug, Default)]
struct Sweep {
    last: Time,
    /// The flow that was asked for last.
    at: Option<Flow>,
    /// When to begin asking for all of them quickly.
    hurry_at: Option<Time>,
    /// How many of these are left.
    hurried: usize,
}

impl Routes {
    /// Opens the sockets and reads the tables.
    ///
    /// # Errors
    /// What the system refused.
    pub fn open() -> io::Result<Routes> {
        let groups = [
            libc::RTNLGRP_LINK,
            libc::RTNLGRP_NEIGH,
            libc::RTNLGRP_IPV4_ROUTE,
            libc::RTNLGRP_IPV4_RULE,
            libc::RTNLGRP_IPV4_IFADDR,
            libc::RTNLGRP_IPV6_ROUTE,
            libc::RTNLGRP_IPV6_RULE,
            libc::RTNLGRP_IPV6_IFADDR,
            libc::RTNLGRP_IPV6_IFINFO,
            libc::RTNLGRP_NEXTHOP,
        ];
        let mut routes = Routes {
            ready: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Netlink::open(libc::NETLINK_ROUTE, &groups)?,
            asker: Netlink::open(libc::NETLINK_ROUTE, &[])?,
            confirmer: Confirmer::open()?,
            netdev: Netdev::open()
                .inspect_err(|error| tracing::debug!(%error, "no XDP transmission: the kernel cannot say"))
                .ok(),
            tables: Tables::default(),
            lost: false,
            may_confirm: true,
            next_confirm: Time::ZERO,
            sweep: Sweep::default(),
        };
        epoll::add(&routes.ready, &routes.events, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        if let Some(netdev) = &routes.netdev {
            epoll::add(&routes.ready, netdev, epoll::EventData::new_u64(1), epoll::EventFlags::IN)?;
        }
        routes.dump()?;
        let _nothing_was_resolved = routes.tables.take_changes();
        Ok(routes)
    }

    /// How packets to `to` leave, which may be a group: from this source address, if one is given, and by this device,
    /// if a socket would be bound to one. What was asked for stays known, and is told of by
    /// [`Changes`], until [`Routes::retain`] says that it is not needed.
    ///
    /// # Errors
    /// Why they must go through a socket.
    pub fn resolve(
        &mut self,
        to: IpAddr,
        from: Option<IpAddr>,
        interface: Option<u32>,
    ) -> Result<Hop, NoHop> {
        match to {
            IpAddr::V4(to) if to.is_broadcast() => return Err(NoHop::Broadcast),
            IpAddr::V6(to) if to.to_ipv4_mapped().is_some() => return Err(NoHop::Mapped),
            _ => {}
        }
        let flow = Flow { to, from, interface };
        let path = match self.tables.path(&flow) {
            Some(path) => path,
            None => {
                let path = ask(&mut self.asker, &flow)?;
                self.tables.learn(flow, path)?;
                path
            }
        };
        if let (Path::Via { next, .. }, Some(netdev)) = (path, &mut self.netdev)
            && self.tables.transmits(next.ifindex).is_none()
        {
            self.tables.hear_transmits(next.ifindex, netdev.transmits(next.ifindex));
        }
        self.tables.hop(path)
    }

    /// Reads the events that have come in, and tells for which flows [`Routes::resolve`] may answer
    /// otherwise now. To be called whenever the descriptor is readable; reads a bounded number,
    /// and stays readable if there are more.
    pub fn events(&mut self) -> Changes {
        for _ in 0..NETLINK_ROUNDS {
            let tables = &mut self.tables;
            let received = self.events.receive(|message| {
                if let Some(heard) = wire::read(message.kind, message.payload).map_err(io::Error::other)? {
                    tables.hear(heard);
                }
                Ok(())
            });
            match received {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(%error, "events of the kernel's routing are lost");
                    self.lost = true;
                }
            }
        }
        self.netdev_events();
        self.mend();
        self.tables.take_changes()
    }

    /// Reads the tables again if events were lost; if that fails, [`Routes::refresh`] tries again.
    fn mend(&mut self) {
        if self.lost {
            match self.dump() {
                Ok(()) => self.lost = false,
                Err(error) => tracing::warn!(%error, "the kernel's tables of neighbours cannot be read"),
            }
        }
    }

    fn netdev_events(&mut self) {
        let Some(netdev) = &mut self.netdev else { return };
        let tables = &mut self.tables;
        for _ in 0..NETLINK_ROUNDS {
            match netdev.receive(|ifindex, transmits| tables.hear_transmits(ifindex, transmits)) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => tables.forget_transmits(),
            }
        }
    }

    /// Reads devices, neighbours and addresses again.
    fn dump(&mut self) -> io::Result<()> {
        self.tables.restart();
        for request in wire::dumps() {
            self.dump_one(&request)?;
        }
        Ok(())
    }

    /// One table. Where it changes faster than it can be read, events mend what was missed.
    fn dump_one(&mut self, request: &RouteNetlinkMessage) -> io::Result<()> {
        for _ in 0..DUMP_TRIES {
            let tables = &mut self.tables;
            let done = self.asker.ask(true, request.clone(), |message| {
                if let Ok(Some(heard)) = wire::read(message.kind, message.payload) {
                    tables.hear(heard);
                }
                Ok(())
            });
            match done {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
        Ok(())
    }

    /// Forgets flows that are not needed any more: `is_used` is asked for each destination, source and
    /// device that was resolved. Without it, what receivers that have left needed stays known, is
    /// kept fresh, and counts for [`ROUTED_FLOWS_MAX`](crate::limits::ROUTED_FLOWS_MAX).
    pub fn retain(&mut self, mut is_used: impl FnMut(IpAddr, Option<IpAddr>, Option<u32>) -> bool) {
        self.tables.retain(|flow| is_used(flow.to, flow.from, flow.interface));
    }

    /// Keeps what is known fresh: has the kernel confirm neighbours that are in use, and asks for
    /// routes again that may have changed without an event. To be called at every turn of the
    /// worker's loop, once a second at least: it does its work in slices, and costs nothing when
    /// there is none.
    pub fn refresh(&mut self, now: Time) -> Changes {
        if now >= self.next_confirm {
            self.next_confirm = now + CONFIRM_CHECK;
            self.mend();
            self.confirm(now);
        }
        self.ask_again(now);
        self.tables.take_changes()
    }

    fn confirm(&mut self, now: Time) {
        if !self.may_confirm {
            return;
        }
        let due = self.tables.due_for_confirmation(now);
        if due.is_empty() {
            return;
        }
        let due: Vec<_> = due.iter().map(|at| (at.ifindex, at.address)).collect();
        let confirmed =
            if has_helper() { outflow_privilege::confirm(&due) } else { self.confirmer.confirm(&due) };
        match confirmed.as_ref().map_err(io::Error::kind) {
            Ok(()) => {}
            Err(io::ErrorKind::PermissionDenied) => {
                self.may_confirm = false;
                tracing::warn!("neighbours are not kept fresh: that needs CAP_NET_ADMIN");
            }
            Err(io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                self.may_confirm = false;
                tracing::warn!("neighbours are not kept fresh: the helper is gone; start the relay again");
            }
            Err(error) => tracing::debug!(%error, "neighbours are not confirmed"),
        }
    }

    fn ask_again(&mut self, now: Time) {
        let known = self.tables.paths();
        if self.tables.take_unsettled() {
            self.sweep.hurry_at = Some(now + ROUTES_SETTLE);
        }
        for flow in self.sweep.due(now, known, &self.tables) {
            if let Ok(path) = ask(&mut self.asker, &flow) {
                self.tables.learn_again(flow, path);
            }
        }
    }
}

impl Sweep {
    /// The flows whose turn it is, of the `known` flows.
    fn due(&mut self, now: Time, known: usize, tables: &Tables) -> Vec<Flow> {
        if self.hurry_at.is_some_and(|at| at <= now) {
            self.hurry_at = None;
            self.hurried = known;
        }
        let passed = now.since(self.last);
        let by_time = (known as f64 * passed.as_secs_f64() / ROUTE_ASK_AGAIN.as_secs_f64()) as usize;
        let count = if self.hurried > 0 { known } else { by_time }.min(known).min(ROUTES_ASKED_AT_ONCE);
        if passed < SLICE || count == 0 {
            return Vec::new();
        }
        self.last = now;
        self.hurried = self.hurried.saturating_sub(count);
        let mut flows = tables.flows_after(self.at, count);
        flows.extend(tables.flows_after(None, count - flows.len()));
        self.at = flows.last().copied();
        flows
    }
}

impl AsFd for Routes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// Asks the kernel for a route.
fn ask(asker: &mut Netlink, flow: &Flow) -> io::Result<Path> {
    let mut path = None;
    let asked = asker.ask(false, wire::route_request(flow), |message| {
        path = Some(wire::read_path(flow, message.kind, message.payload)?);
        Ok(())
    });
    match (asked, path) {
        (Ok(()), Some(path)) => Ok(path),
        (Ok(()), None) => Err(io::ErrorKind::InvalidData.into()),
        // EINVAL also is what a blackhole answers, and an address that is not this machine's.
        (Err(error), _) => match error.raw_os_error() {
            Some(number @ (libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL)) => {
                Ok(Path::Nowhere(number))
            }
            _ => Err(error),
        },
    }
}
