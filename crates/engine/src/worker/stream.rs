//! A stream as its worker holds it: the core, and beside it what the core does not know.

use std::collections::BTreeMap;

use outflow_graph::View;
use outflow_media::Time;
use outflow_packet::{Drops, Level};
use outflow_relay::schedule::Counters;
use outflow_relay::{Feedback, Priority, SinkKey, Stream, StreamOptions};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{mpsc, oneshot};

use super::demand::Demands;
use super::links::Behind;
use super::services::Next;
use super::share::{Inlet, Outlet};
use crate::context::Line;
use crate::message::{CloseReason, Demand, Framing, Ingest, ReceiverId, ReceiverReport, SourceId, StreamId};
use crate::send::stream::{Connection, Connections};
use crate::send::udp::UdpRoute;

/// A stream and everything that is connected to it.
pub(super) struct LiveStream {
    pub(super) id: StreamId,
    /// Its number at its home, which is this one unless it is a replica.
    pub(super) home: StreamId,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) core: Stream,
    pub(super) source: Option<LiveSource>,
    /// To the workers that serve it, too.
    pub(super) outlets: Vec<Outlet>,
    /// From the streams that hand it packets: its renditions, or its home, in a replica that does not rest.
    pub(super) inlets: Vec<Inlet>,
    /// By [`SinkKey`].
    pub(super) sinks: Vec<Option<LiveSink>>,
    pub(super) receivers: BTreeMap<ReceiverId, SinkKey>,
    /// When the core wants to be polled again.
    pub(super) wake: Option<Time>,
    /// Something came in since it was polled last.
    pub(super) touched: bool,
    pub(super) out_bytes: Rate,
    /// What the last snapshot said was sent and dropped: later ones say no less.
    pub(super) shown: (Counters, Drops),
    /// To the contexts in which other stages of its services run.
    pub(super) line: Option<Line>,
    /// The same, whose stages are here.
    pub(super) at_home: Option<Line>,
    /// Services that are put in place once all stages have come back; or those that are there, bound
    /// again.
    pub(super) next: Option<Next>,
    /// What there is to say of its services.
    pub(super) note: Option<String>,
    /// Of each element, by name: its work, and what came in and went out, between two snapshots.
    pub(super) work: BTreeMap<String, [Rate; 3]>,
    /// What receivers want.
    pub(super) demands: Demands,
    /// The sink at which the sender reports that are due go on.
    pub(super) reporting: Option<usize>,
}

/// A source's turn.
pub(super) struct LiveSource {
    pub(super) id: SourceId,
    pub(super) peer: String,
    pub(super) queue: Option<mpsc::Receiver<Ingest>>,
    /// Tokens of its sockets.
    pub(super) sockets: Vec<usize>,
    /// To its front.
    pub(super) feedback: mpsc::Sender<Feedback>,
    /// Key frames that its sender was asked for; it wraps.
    pub(super) requests: u8,
}

/// A receiver.
pub(super) struct LiveSink {
    pub(super) id: ReceiverId,
    pub(super) kind: &'static str,
    pub(super) to: String,
    pub(super) name: Option<String>,
    pub(super) closed: oneshot::Sender<CloseReason>,
    pub(super) out: Out,
    /// What it has at the link that it is behind.
    pub(super) behind: Option<Behind>,
    pub(super) reports: Vec<ReceiverReport>,
    pub(super) sent_bytes: Rate,
    /// The level that it wants, as the task that fetches the stream was told.
    pub(super) wants: Option<Level>,
}

/// How a receiver is reached.
pub(super) enum Out {
    /// By UDP.
    Udp {
        route: UdpRoute,
        /// Where sender reports go, per track.
        rtcp: Vec<(u8, socket2::SockAddr)>,
        /// The socket is its own and closes with it.
        own_socket: bool,
    },
    /// Through a connection, once it is there.
    Stream { connection: Option<(Connection, usize)>, framing: Framing },
    /// By a state machine of its own, once it is there: its place among those of the worker. Each packet takes so
    /// many bytes on the way beside its own and those of UDP.
    Peer { place: Option<usize>, overhead: usize },
}

impl Out {
    /// The place of its state machine, if it has one.
    pub(super) fn peer(&self) -> Option<usize> {
        match self {
            Out::Peer { place, .. } => *place,
            Out::Udp { .. } | Out::Stream { .. } => None,
        }
    }
}

impl Connections for Vec<Option<LiveSink>> {
    fn connection(&mut self, key: SinkKey) -> Option<(&mut Connection, &Framing)> {
        match &mut self.get_mut(key.0)?.as_mut()?.out {
            Out::Stream { connection: Some((connection, _)), framing } => Some((connection, framing)),
            Out::Stream { connection: None, .. } | Out::Udp { .. } | Out::Peer { .. } => None,
        }
    }
}

/// Turns a growing count into a rate, between two snapshots.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    last: u64,
    at: Time,
}

impl Rate {
    /// How much of the time since the last call, in percent, of a count of nanoseconds.
    pub(super) fn percent(&mut self, now: Time, nanos: u64) -> f64 {
        // Bits a second of as many bytes: eight times the nanoseconds of a second.
        self.bps(now, nanos) as f64 / 8e7
    }

    /// Bits a second since the last call, of a count of bytes.
    pub(super) fn bps(&mut self, now: Time, bytes: u64) -> u64 {
        let passed = now.since(self.at).as_nanos().max(1);
        let bits = u128::from(bytes.saturating_sub(self.last)) * 8;
        *self = Rate { last: bytes, at: now };
        (bits * 1_000_000_000 / passed) as u64
    }
}

impl LiveStream {
    /// A stream without a source and without receivers.
    pub(super) fn new(
        (id, home): (StreamId, StreamId),
        name: String,
        url: String,
        options: StreamOptions,
        inlets: Vec<Inlet>,
        told: UnboundedSender<Demand>,
    ) -> Self {
        // It has one home, but several renditions.
        let mut core = match inlets.len() {
            0 | 1 => Stream::new(options),
            renditions => Stream::of_renditions(options, renditions),
        };
        core.set_probe(crate::clock::probe);
        LiveStream {
            id,
            home,
            name,
            url,
            core,
            source: None,
            outlets: Vec::new(),
            inlets,
            sinks: Vec::new(),
            receivers: BTreeMap::new(),
            wake: None,
            touched: false,
            out_bytes: Rate::default(),
            shown: Default::default(),
            line: None,
            at_home: None,
            next: None,
            note: None,
            work: BTreeMap::new(),
            demands: Demands::new(id, told),
            reporting: None,
        }
    }

    /// The class in which its source is read: that of its most urgent sinks, wherever they are.
    pub(super) fn class(&self) -> Priority {
        let elsewhere = self.outlets.iter().map(Outlet::class);
        self.core.classes().next().into_iter().chain(elsewhere).min().unwrap_or_default()
    }

    pub(super) fn sink_mut(&mut self, key: SinkKey) -> Option<&mut LiveSink> {
        self.sinks.get_mut(key.0)?.as_mut()
    }

    pub(super) fn put(&mut self, key: SinkKey, sink: LiveSink) {
        if self.sinks.len() <= key.0 {
            self.sinks.resize_with(key.0 + 1, || None);
        }
        self.receivers.insert(sink.id, key);
        self.sinks[key.0] = Some(sink);
        self.count_wish(key);
    }

    /// Says in the log which tracks have no place in what receivers get that were there before the source.
    pub(super) fn look_for_left_out(&self) {
        let (mut receivers, mut left_out) = (0, Vec::new());
        for lacks in self.receivers.values().map(|key| self.core.left_out(*key)).filter(|l| !l.is_empty()) {
            receivers += 1;
            left_out.extend(lacks);
        }
        left_out.sort_unstable();
        left_out.dedup();
        self.warn_of_left_out(&left_out, receivers);
    }

    /// Says in the log which tracks have no place in what receivers get.
    pub(super) fn warn_of_left_out(&self, left_out: &[String], receivers: usize) {
        if !left_out.is_empty() {
            let (stream, left_out) = (&self.name, left_out.join(", "));
            tracing::warn!(stream, left_out, receivers, "MPEG-TS has no place for these tracks");
        }
    }

    /// Takes note of what a receiver wants now. One that wants something that is made of the stream here,
    /// wants all of it.
    pub(super) fn count_wish(&mut self, key: SinkKey) {
        let spec = self.core.spec(key);
        let wants = spec.map(|spec| match spec.branch.is_none() && spec.view == View::default() {
            true => spec.level,
            false => Level::BEST,
        });
        let Some(sink) = self.sinks.get_mut(key.0).and_then(Option::as_mut) else { return };
        let before = std::mem::replace(&mut sink.wants, wants);
        self.demands.change(before, wants);
    }

    /// A receiver that was taken out wants nothing any more.
    pub(super) fn forget_wish(&mut self, sink: &LiveSink) {
        self.demands.change(sink.wants, None);
    }
}
