//! Orders to datagram sinks: by the kernel's fan-out where that works and pays, else by the relay's
//! own system calls. Both carry out the same orders, and send the same bytes.

mod layered;
mod roster;
mod rule;
mod standing;

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use arrayvec::ArrayVec;
use outflow_config::UdpPath;
use outflow_kernel::{Failure, Kernel, Layered, Part, Reason};
use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_relay::limits::ORDER_PACKETS_MAX;
use outflow_relay::{Report, Room, Share, SinkKey};
use outflow_routes::{Changes, Routes};
use outflow_uring::Uring;
use slab::Slab;

pub(crate) use layered::{Layers, by_share};
use roster::{Flow, Listed, Roster, Sources, Versions};
pub(crate) use rule::FanoutPath;
pub(crate) use standing::Standing;

use super::Piece;
use super::connected::ConnectedSender;
use super::udp::{UdpPort, UdpRoute, UdpSender, run_length};
use crate::limits::{KERNEL_TARGETS_MAX, ORDER_SINKS, ROUTES_TIDY, TC_ORDER_SINKS, XDP_ORDER_SINKS};

/// A cohort of a stream of this worker: indices of stream, branch and cohort.
type CohortId = (usize, usize, usize);

/// An order's sinks.
#[derive(Clone, Copy)]
pub(crate) enum Audience<'a> {
    /// One that lags or has just joined, or sinks that get the same.
    Some(&'a [SinkKey]),
    /// Part of a cohort.
    Members(Members<'a>),
    /// The same, of which not all get the same.
    Layered(Members<'a>, Layers<'a>),
}

/// `count` members of a cohort, from `first` on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'a> {
    pub(crate) id: CohortId,
    /// Rises when anything about the cohort's members changes.
    pub(crate) version: u64,
    pub(crate) all: &'a [SinkKey],
    pub(crate) first: usize,
    pub(crate) count: usize,
}

impl<'a> Members<'a> {
    /// The members that the order goes to.
    fn ordered(&self) -> &'a [SinkKey] {
        &self.all[self.first..self.first + self.count]
    }
}

/// What the worker lends to have an order carried out.
pub(crate) struct Means<'a, R> {
    /// Index of the stream.
    pub(crate) stream: usize,
    pub(crate) uring: &'a mut Uring,
    pub(crate) ports: &'a mut Slab<UdpPort>,
    /// Where a sink's packets go.
    pub(crate) route_of: R,
    /// What it gets of layered packets.
    pub(crate) part_of: &'a dyn Fn(SinkKey) -> Part,
}

/// Carries out orders to datagram sinks.
pub(crate) struct Fanout {
    wish: UdpPath,
    user: UdpSender,
    connected: ConnectedSender,
    kernel: Option<InKernel>,
    /// Why there is no kernel path.
    refused: Option<&'static str>,
    /// How sinks stand, by stream and key.
    standing: Vec<Vec<Option<Standing>>>,
    /// What the members of an order get; kept so that no memory is asked for an order.
    shares: Vec<(Share, SinkKey)>,
}

struct InKernel {
    kernel: Kernel,
    routes: Routes,
    rosters: BTreeMap<CohortId, Roster>,
    versions: Versions,
    next_tidy: Time,
    /// The kernel refused an order, and that was said.
    failing: bool,
}

impl Fanout {
    /// Opens what is wished for, in the network namespace of this thread.
    pub(crate) fn open(wish: UdpPath, receivers_max: usize) -> Self {
        let (kernel, refused) = match wish {
            UdpPath::User => (None, Some("[fanout] udp = \"user\"")),
            _ => match InKernel::open(receivers_max) {
                Ok(kernel) => (Some(kernel), None),
                Err(error) => {
                    let why = "packets to UDP receivers go by the relay's own system calls";
                    if wish == UdpPath::Auto {
                        tracing::info!(%error, "no kernel fan-out: {why}");
                    } else {
                        tracing::warn!(%error, "no kernel fan-out, though [fanout] asks for it: {why}");
                    }
                    (None, Some("the kernel's fan-out is not available; the log says why"))
                }
            },
        };
        let (user, connected) = (UdpSender::new(), ConnectedSender::new());
        Fanout { wish, user, connected, kernel, refused, standing: Vec::new(), shares: Vec::new() }
    }

    /// What is to be waited for: routes that change.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        self.kernel.as_ref().map(|kernel| kernel.routes.as_fd())
    }

    /// How many sinks an order of this stream may go to.
    pub(crate) fn room(&self, stream: usize) -> Room {
        let ways = self.kernel.iter().flat_map(|kernel| {
            kernel.rosters.range((stream, 0, 0)..(stream + 1, 0, 0)).filter_map(|(_, roster)| roster.path)
        });
        // Cohorts of one stream rarely differ; the slowest way says how long an order may take.
        let datagram = ways.map(|path| match path {
            FanoutPath::User => ORDER_SINKS.datagram,
            FanoutPath::Tc => TC_ORDER_SINKS,
            FanoutPath::Xdp => XDP_ORDER_SINKS,
        });
        Room { datagram: datagram.min().unwrap_or(ORDER_SINKS.datagram), ..ORDER_SINKS }
    }

    /// A receiver has come or gone, or has other addresses.
    pub(crate) fn receivers_changed(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.versions.receivers += 1;
        }
    }

    /// A receiver has gone.
    pub(crate) fn forget_receiver(&mut self, uring: &mut Uring, route: &UdpRoute) {
        self.connected.forget(uring, route);
        self.receivers_changed();
    }

    /// A stream is gone.
    pub(crate) fn forget(&mut self, stream: usize) {
        if let Some(standing) = self.standing.get_mut(stream) {
            standing.clear();
        }
        if let Some(InKernel { kernel, rosters, .. }) = &mut self.kernel {
            let behind = rosters.split_off(&(stream, 0, 0));
            for (id, mut roster) in behind {
                match id.0 == stream {
                    true => roster.clear(kernel),
                    false => drop(rosters.insert(id, roster)),
                }
            }
        }
    }

    /// Reads what has changed about routes and neighbours.
    pub(crate) fn routes_changed(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            let changes = kernel.routes.events();
            kernel.take_up(&changes);
        }
    }

    /// Keeps neighbours fresh. To be called every second or so.
    pub(crate) fn refresh(&mut self, now: Time) {
        let Some(kernel) = &mut self.kernel else { return };
        let changes = kernel.routes.refresh(now);
        kernel.take_up(&changes);
        if now >= kernel.next_tidy {
            kernel.next_tidy = now + ROUTES_TIDY;
            let used: BTreeSet<_> = kernel.rosters.values().flat_map(Roster::asked).copied().collect();
            kernel.routes.retain(|to, from, interface| used.contains(&(to, from, interface)));
        }
    }

    /// Which way a receiver is reached now, and why by no faster one.
    pub(crate) fn path(&self, stream: usize, key: SinkKey) -> (FanoutPath, Option<&'static str>) {
        let standing = self.standing.get(stream).and_then(|keys| *keys.get(key.0)?);
        match (&self.kernel, standing) {
            (None, _) => (FanoutPath::User, self.refused),
            (_, None) => (FanoutPath::User, Some("alone or with so few others that the kernel does not pay")),
            (_, Some(Standing::User(why))) => (FanoutPath::User, Some(why)),
            (Some(kernel), Some(Standing::Kernel { branch, cohort })) => {
                let roster = kernel.rosters.get(&(stream, branch, cohort));
                (roster.and_then(|roster| roster.path).unwrap_or(FanoutPath::User), None)
            }
        }
    }

    /// What did not go, for the core.
    pub(crate) fn reports(&mut self) -> &mut Vec<(SinkKey, Report)> {
        &mut self.user.reports
    }

    /// Sends `pieces` to the audience. What did not go stands in [`Fanout::reports`].
    pub(crate) fn send<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute> + Copy>(
        &mut self,
        audience: Audience<'_>,
        pieces: &[Piece<'_>],
        means: &mut Means<'_, R>,
    ) {
        match audience {
            Audience::Some(keys) => self.by_user(keys.iter().copied(), pieces, means),
            Audience::Members(members) if self.asks_kernel(members.all.len()) => {
                let mut rest = pieces;
                while !rest.is_empty() {
                    let (run, behind) = rest.split_at(run_length(rest));
                    rest = behind;
                    self.send_run(members, run, means);
                }
            }
            Audience::Layered(members, layers) => self.send_layered(members, layers, pieces, means),
            Audience::Members(members) => self.by_user(members.ordered().iter().copied(), pieces, means),
        }
    }

    /// Whether the kernel's fan-out may be worth its while for `members` members.
    pub(crate) fn asks_kernel(&self, members: usize) -> bool {
        self.kernel.is_some() && members >= rule::sinks_min(self.wish)
    }

    fn by_user<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute>>(
        &mut self,
        keys: impl ExactSizeIterator<Item = SinkKey>,
        pieces: &[Piece<'_>],
        means: &mut Means<'_, R>,
    ) {
        let count = keys.len();
        let routes = keys.filter_map(|key| Some((key, (means.route_of)(key)?)));
        self.connected.send(means.uring, &mut self.user, pieces, means.ports, routes, count);
    }

    /// Sends packets of one track and size, by the way that pays. What the kernel's fan-out cannot
    /// take, the relay's own system calls do.
    fn send_run<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute> + Copy>(
        &mut self,
        members: Members<'_>,
        run: &[Piece<'_>],
        means: &mut Means<'_, R>,
    ) {
        let ordered = members.ordered().iter().copied();
        let mut path = self.choose(members, run, means);
        // Frames go one by one; each may fail for itself.
        for part in run.chunks(if path == FanoutPath::Xdp { 1 } else { run.len() }) {
            match self.by_kernel(members, &mut path, part, None) {
                Some(missing) => self.by_user_alone(ordered.clone(), missing, part, means),
                None => self.by_user(ordered.clone(), part, means),
            }
        }
    }

    /// Finds the way that pays for packets of one track and size.
    fn choose<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute> + Copy>(
        &mut self,
        Members { id, version, all, .. }: Members<'_>,
        run: &[Piece<'_>],
        means: &mut Means<'_, R>,
    ) -> FanoutPath {
        let Fanout { wish, kernel: Some(in_kernel), standing, .. } = self else { return FanoutPath::User };
        let InKernel { kernel, routes, rosters, versions, .. } = in_kernel;
        let roster = rosters.entry(id).or_default();
        let reached = Standing::Kernel { branch: id.1, cohort: id.2 };
        let tell = |key, how: Result<(), Standing>| {
            stand(standing, id.0, key, how.err().unwrap_or(reached));
        };
        let (route_of, part_of) = (means.route_of, means.part_of);
        let versions = Versions { members: version, ..*versions };
        let sources = Sources { kernel, routes, ports: means.ports, route_of, part_of, versions };
        let path = match roster.update(all, run[0].track, sources, tell) {
            Some(listed) if run[0].len() <= listed.payload_max => {
                let frames = listed.xdp && kernel.xdp_refused().is_none();
                rule::choose(*wish, listed.reached, run.len(), frames)
            }
            _ => FanoutPath::User,
        };
        roster.path = Some(path);
        path
    }

    /// Sends packets by this way of the kernel's. Returns how many members that does not reach; `None` if it
    /// has not gone to any of them, and the way is another one then.
    fn by_kernel(
        &mut self,
        Members { id, all, first, count, .. }: Members<'_>,
        path: &mut FanoutPath,
        run: &[Piece<'_>],
        layered: Option<Layered>,
    ) -> Option<usize> {
        let InKernel { kernel, rosters, failing, .. } =
            self.kernel.as_mut().filter(|_| *path != FanoutPath::User)?;
        let roster = rosters.get_mut(&id)?;
        let listed = roster.listed(run[0].track)?;
        match carry_out(kernel, listed, *path, run, (first..first + count, layered)) {
            Ok(failed) => {
                *failing = false;
                report(kernel, listed, failed, all, &mut self.user.reports);
                Some(all.len() - listed.reached)
            }
            Err(error) => {
                let name = path.as_str();
                // Once, however long that lasts.
                if !core::mem::replace(failing, true) {
                    tracing::warn!(
                        %error, path = name,
                        "the kernel's fan-out fails: system calls do its work"
                    );
                }
                *path = FanoutPath::User;
                roster.path = Some(FanoutPath::User);
                None
            }
        }
    }

    /// Sends to sinks that the kernel does not reach. They are few, or it does not know how to reach them
    /// yet: they get no sockets of their own.
    fn by_user_alone<'r, R: Fn(SinkKey) -> Option<&'r UdpRoute>>(
        &mut self,
        keys: impl ExactSizeIterator<Item = SinkKey>,
        missing: usize,
        pieces: &[Piece<'_>],
        means: &mut Means<'_, R>,
    ) {
        if missing == 0 {
            return;
        }
        let Fanout { user, standing, .. } = self;
        let Means { stream, ports, route_of, .. } = means;
        let standing = standing.get(*stream);
        let is_reached = |key: &SinkKey| {
            matches!(standing.and_then(|keys| *keys.get(key.0)?), Some(Standing::Kernel { .. }))
        };
        let count = missing.min(keys.len());
        let left = keys.filter(|key| !is_reached(key));
        let routes = left.filter_map(|key| Some((key, route_of(key)?)));
        user.send(pieces, ports, routes, count);
    }
}

impl InKernel {
    fn open(receivers_max: usize) -> Result<Self, Box<dyn core::error::Error>> {
        // A receiver may have several tracks, and cohorts that grow move to a larger place.
        let targets = (2 * receivers_max).min(KERNEL_TARGETS_MAX);
        let kernel = Kernel::open(targets as u32)?;
        if let Some(error) = kernel.xdp_refused() {
            tracing::info!(%error, "the kernel's fan-out does without XDP");
        }
        let routes = Routes::open().map_err(|e| format!("asking the kernel for its routes: {e}"))?;
        let (rosters, next_tidy) = (BTreeMap::new(), Time::ZERO);
        let versions = Versions { receivers: 1, routes: 1, members: 0 };
        Ok(InKernel { kernel, routes, rosters, versions, next_tidy, failing: false })
    }

    /// Has the entries written again, if the route of a sink has changed.
    fn take_up(&mut self, changes: &Changes) {
        let mut asked = self.rosters.values().flat_map(Roster::asked);
        let concerns = |flow: &Flow| changes.concern(flow.0, flow.1, flow.2);
        if !changes.is_empty() && asked.any(concerns) {
            self.versions.routes += 1;
            self.kernel.forget_devices();
        }
    }
}

/// Sends a run of packets; says how many packets devices did not take.
fn carry_out(
    kernel: &mut Kernel,
    listed: &mut Listed,
    path: FanoutPath,
    run: &[Piece<'_>],
    (members, layered): (Range<usize>, Option<Layered>),
) -> io::Result<u64> {
    let mut payload = ArrayVec::<IoSlice<'_>, { 2 * (ORDER_PACKETS_MAX + 1) }>::new();
    for part in run.iter().flat_map(|piece| [piece.header, piece.body]).filter(|part| !part.is_empty()) {
        payload.push(IoSlice::new(part));
    }
    let group = &mut listed.group;
    let sent = match path {
        FanoutPath::Xdp => kernel.send_xdp(group, members, &payload, layered),
        FanoutPath::Tc | FanoutPath::User => kernel.send_tc(group, members, &payload, run[0].len(), layered),
    };
    Ok(sent?.failed)
}

fn report(
    kernel: &mut Kernel,
    listed: &mut Listed,
    failed: u64,
    all: &[SinkKey],
    reports: &mut Vec<(SinkKey, Report)>,
) {
    if failed == 0 {
        return;
    }
    let Listed { group, xdp, .. } = listed;
    kernel.take_failures(group, |place, Failure { packets, reason }| {
        // A device that says it takes frames, and then takes none, gets no further ones.
        *xdp &= !matches!(reason, Reason::Unsupported | Reason::TooLarge);
        let reason = match reason {
            Reason::Full => DropReason::DeviceFull,
            Reason::Down | Reason::Gone => DropReason::Unreachable,
            Reason::Unsupported | Reason::TooLarge | Reason::Other(_) => DropReason::System,
        };
        reports.push((all[place], Report::Lost { reason, packets }));
    });
}

fn stand(standing: &mut Vec<Vec<Option<Standing>>>, stream: usize, key: SinkKey, how: Standing) {
    if standing.len() <= stream {
        standing.resize_with(stream + 1, Vec::new);
    }
    let keys = &mut standing[stream];
    if keys.len() <= key.0 {
        keys.resize(key.0 + 1, None);
    }
    keys[key.0] = Some(how);
}
