//! How many connections by TCP there are, and what was refused and dropped.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_api::HttpError;
use outflow_api::metrics::Families;
use outflow_control::{Control, Task};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::hosts::{HostPlace, Hosts};
use crate::limits::{TCP_MAX, TCP_OF_HOST_MAX};

/// All connections by TCP; shared by [`Control::shared`].
#[derive(Debug)]
pub(crate) struct Connections {
    places: Arc<Hosts>,
    refused: AtomicU64,
    /// Datagrams that found no room, by where they were to go.
    dropped: [AtomicU64; 2],
}

/// Which way a datagram was to go.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// To the peer, whose connection takes less than is sent to it.
    Peer,
    /// To the relay's port.
    Relay,
}

impl Default for Connections {
    fn default() -> Self {
        let places = Arc::new(Hosts::new(TCP_MAX, TCP_OF_HOST_MAX));
        Connections { places, refused: AtomicU64::default(), dropped: Default::default() }
    }
}

impl Connections {
    /// A place for one from there, if there is room.
    pub(super) fn enter(&self, from: IpAddr) -> Option<HostPlace> {
        let place = self.places.enter(from);
        if place.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    /// Datagrams that were to go that way were dropped.
    pub(super) fn count_dropped(&self, way: Way, datagrams: usize) {
        self.dropped[way as usize].fetch_add(datagrams as u64, Ordering::Relaxed);
    }

    /// How many were.
    pub(super) fn dropped(&self, way: Way) -> u64 {
        self.dropped[way as usize].load(Ordering::Relaxed)
    }
}

/// The metrics.
pub(crate) fn measure(control: Control) -> Task<Result<Box<dyn Collector>, HttpError>> {
    let connections = control.shared::<Connections>();
    Box::pin(async move { Ok(Box::new(Snapshot(connections)) as Box<dyn Collector>) })
}

#[derive(Debug)]
struct Snapshot(Arc<Connections>);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (connections, mut families) = (&*self.0, Families(encoder));
        let none: [(&str, &str); 0] = [];
        let help = "Connections of browsers by TCP that are open";
        families.gauge("webrtc_tcp_connections", None, help, [(none, connections.places.count() as f64)])?;
        let help = "Connections of browsers by TCP that were closed at once, because a limit was reached";
        let refused = connections.refused.load(Ordering::Relaxed);
        families.counter("webrtc_tcp_refused_connections", None, help, [(none, refused)])?;
        let help = "Datagrams of browsers by TCP for which there was no room, by where they were to go";
        let dropped = [("peer", Way::Peer), ("relay", Way::Relay)]
            .map(|(name, way)| ([("to", name)], connections.dropped(way)));
        families.counter("webrtc_tcp_dropped_datagrams", None, help, dropped)
    }
}
