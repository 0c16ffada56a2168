//! The relay as the API, the events and the status page show it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use outflow_config::{Listener, StreamAddress};
use outflow_control::{Control, Drain, EndedTurns, Heartbeat, LogState, OverloadState, recovered};
use outflow_door::Counts;
use outflow_engine::message::{LinkState, ReceiverState, StreamState};
use serde::Serialize;
use utoipa::ToSchema;

use crate::limits::RECEIVERS_SHOWN;
use crate::stream_pages::{StreamPage, StreamPages};

/// The whole relay.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Overview {
    /// Version of the program.
    version: &'static str,
    /// Milliseconds since the relay started.
    uptime_ms: u64,
    /// CPU time used by the process, percent of one core.
    cpu_percent: f64,
    /// Resident memory in bytes.
    rss_bytes: u64,
    /// When the control plane and each worker said last that they go on.
    heartbeats: Vec<Heartbeat>,
    /// How much the relay has to do, and what it has shed for that.
    overload: OverloadState,
    /// What has become of the lines of the log.
    log: LogState,
    /// How far its end is, once it is told to end.
    drain: Option<Drain>,
    /// Connections of all listeners.
    connections: Counts,
    /// RTCP packets that came by UDP from addresses of no receiver.
    rtcp_strangers: u64,
    /// Publishers that the relay has sent away.
    publishers_ended: EndedTurns,
    /// Times that another process went on because something of the relay had ended.
    recoveries: u64,
    /// Ports that the relay listens at.
    ports: Ports,
    /// How the addresses of streams there are made.
    addresses: Vec<AddressView>,
    /// Pages that there are of each stream, at this server.
    pages: Vec<StreamPage>,
    /// All streams by name, each with its receivers that fare worst.
    streams: Vec<StreamView>,
    /// All links, by name.
    links: Vec<LinkState>,
}

/// Ports that the relay listens at, by the key of `[listen]`; null where it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Ports(BTreeMap<&'static str, Option<u16>>);

/// How the address of a stream at a listener is made: `SCHEME://HOST:PORT/STREAM`, and the suffix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct AddressView {
    /// What it is, for people.
    label: &'static str,
    /// Its scheme, a key of `[listen]`.
    scheme: &'static str,
    /// Its port.
    port: u16,
    /// The port that an address leaves out.
    usual_port: Option<u16>,
    /// What follows the stream's name.
    suffix: &'static str,
    /// A command that publishes there, with `URL` in the place of the address.
    publish: Option<&'static str>,
}

impl AddressView {
    fn new((listener, at): (&Listener, Option<SocketAddr>)) -> Option<Self> {
        let StreamAddress { label, usual_port, suffix, publish } = listener.address?;
        at.map(|at| AddressView { label, scheme: listener.key, port: at.port(), usual_port, suffix, publish })
    }
}

/// A stream, and how many receivers it has besides those that are shown.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct StreamView {
    #[serde(flatten)]
    state: StreamState,
    /// How many receivers it has; `receivers` may hold only some of them.
    receiver_count: usize,
}

impl Overview {
    /// The relay as it is now.
    pub(super) fn of(control: &Control) -> Self {
        let (state, config) = (control.state(), control.config());
        Overview {
            version: state.version,
            uptime_ms: state.uptime_ms,
            cpu_percent: state.cpu_percent,
            rss_bytes: state.rss_bytes,
            heartbeats: control.health().heartbeats().collect(),
            overload: control.health().overload().state(),
            log: control.health().log(),
            drain: control.health().ending().drain(&state),
            connections: control.door().counts(),
            rtcp_strangers: state.rtcp_strangers,
            publishers_ended: control.ended_turns(),
            recoveries: recovered(control),
            ports: Ports::new(&config.listen),
            addresses: config.listen.listeners().filter_map(AddressView::new).collect(),
            pages: control.shared::<StreamPages>().all(),
            streams: state.streams.iter().map(|stream| StreamView::new(stream, RECEIVERS_SHOWN)).collect(),
            links: state.links.clone(),
        }
    }
}

impl Ports {
    fn new(listen: &outflow_config::Listen) -> Self {
        Ports(listen.listeners().map(|(listener, at)| (listener.key, at.map(|at| at.port()))).collect())
    }
}

impl StreamView {
    /// The stream with at most `shown` of its receivers, those that fare worst first.
    pub(super) fn new(stream: &StreamState, shown: usize) -> Self {
        let mut receivers: Vec<&ReceiverState> = stream.receivers.iter().collect();
        if shown < receivers.len() && shown > 0 {
            // Only the worst have to be in order.
            receivers.select_nth_unstable_by_key(shown, |receiver| rank(receiver));
        }
        receivers.truncate(shown);
        receivers.sort_by_key(|receiver| rank(receiver));
        let state = StreamState {
            name: stream.name.clone(),
            source: stream.source.clone(),
            out_drops: stream.out_drops.clone(),
            receivers: receivers.into_iter().cloned().collect::<Vec<_>>().into(),
            levels: stream.levels.clone(),
            ring_bytes: stream.ring_bytes,
            ring_packets: stream.ring_packets,
            ring_bytes_max: stream.ring_bytes_max,
            out_bps: stream.out_bps,
            out_packets: stream.out_packets,
            worker_us: stream.worker_us,
            out_bytes: stream.out_bytes,
            joins: stream.joins,
            elements: stream.elements.clone(),
            branches: stream.branches.clone(),
            services_note: stream.services_note.clone(),
            reported: stream.reported,
        };
        StreamView { state, receiver_count: stream.receivers.len() }
    }
}

/// The receiver that lags most comes first, then the one that lost most, then the one that came first.
fn rank(receiver: &ReceiverState) -> (Reverse<u64>, Reverse<u64>, u64) {
    (Reverse(receiver.queue_delay_ms), Reverse(receiver.drops.values().sum()), receiver.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(id: u64, queue_delay_ms: u64, lost: u64) -> ReceiverState {
        let drops = [("slow-sink", lost)].into();
        ReceiverState { id, queue_delay_ms, drops, ..ReceiverState::default() }
    }

    #[test]
    fn the_receivers_that_fare_worst_are_shown_first() {
        let receivers = vec![receiver(1, 0, 0), receiver(2, 5, 0), receiver(3, 0, 9), receiver(4, 5, 1)];
        let receivers = receivers.into();
        let stream = StreamState { name: "a".into(), receivers, ..StreamState::default() };
        let shown = |count| -> Vec<u64> {
            let view = StreamView::new(&stream, count);
            assert_eq!(view.receiver_count, 4);
            view.state.receivers.iter().map(|receiver| receiver.id).collect()
        };
        assert_eq!(shown(10), [4, 2, 3, 1]);
        assert_eq!(shown(3), [4, 2, 3]);
        assert!(shown(0).is_empty());
    }
}
