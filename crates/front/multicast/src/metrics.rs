//! Metrics of multicast.

use std::fmt;

use outflow_api::HttpError;
use outflow_api::metrics::{Count, Families, Level, reasons};
use outflow_control::{Control, Task};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::handle::Attached;
use crate::state::{MulticastDvmrp, MulticastInterface, MulticastNeighbours, MulticastState};

const MULTICAST_COUNTS: &[Count<MulticastInterface>] = &[
    ("multicast_joins", None, "Times that hosts began to want a group", |i| i.joins),
    ("multicast_leaves", None, "Times that the last host left a group", |i| i.leaves),
];

const MULTICAST_LEVELS: &[Level<MulticastInterface>] = &[
    ("multicast_groups", None, "Groups that hosts want on the interface", |i| i.groups.len() as f64),
    ("multicast_hosts", None, "Hosts on the interface that are known", |i| i.hosts as f64),
    ("multicast_querier", None, "Whether this relay asks the hosts", |i| f64::from(u8::from(i.is_querier))),
];

const NEIGHBOURS_LEVELS: &[Level<MulticastNeighbours>] = &[
    ("multicast_neighbours", None, "Routers that hear this relay, and that it hears", |i| {
        i.neighbours.iter().filter(|one| one.two_way).count() as f64
    }),
    ("multicast_sent_groups", None, "Groups that the relay sends where routers are", |i| i.sent.len() as f64),
];

/// What there is now.
pub(super) fn measure(control: Control) -> Task<Result<Box<dyn Collector>, HttpError>> {
    Box::pin(async move {
        let state = Attached::of(&control)?.state().await?;
        Ok(Box::new(Snapshot(state)) as Box<dyn Collector>)
    })
}

#[derive(Debug)]
struct Snapshot(MulticastState);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        multicast(&self.0, &mut Families(encoder))
    }
}

fn multicast(state: &MulticastState, families: &mut Families<'_>) -> fmt::Result {
    let label = |interface: &MulticastInterface| {
        [("interface", interface.name.clone()), ("protocol", interface.protocol.to_owned())]
    };
    for (name, unit, help, value) in MULTICAST_COUNTS {
        families.counter(name, unit.clone(), help, state.interfaces.iter().map(|i| (label(i), value(i))))?;
    }
    for (name, unit, help, value) in MULTICAST_LEVELS {
        families.gauge(name, unit.clone(), help, state.interfaces.iter().map(|i| (label(i), value(i))))?;
    }
    let all = state.interfaces.iter();
    let refused = all.flat_map(|i| reasons(&i.refused).map(move |(reason, n)| (i, reason, n)));
    let refused = refused.map(|(i, reason, n)| {
        let [interface, protocol] = label(i);
        ([interface, protocol, ("reason", reason.to_owned())], n)
    });
    let help = "Messages of hosts and routers, or parts of them, that had no effect";
    families.counter("multicast_refused_messages", None, help, refused)?;
    let counts = reasons(&state.counts).map(|(what, n)| ([("what", what)], n));
    families.counter("multicast_events", None, "What the multicast driver counts", counts)?;
    state.dvmrp.as_ref().map_or(Ok(()), |dvmrp| multicast_routers(dvmrp, families))
}

fn multicast_routers(dvmrp: &MulticastDvmrp, families: &mut Families<'_>) -> fmt::Result {
    for (name, unit, help, value) in NEIGHBOURS_LEVELS {
        let values = dvmrp.interfaces.iter().map(|i| ([("interface", i.name.clone())], value(i)));
        families.gauge(name, unit.clone(), help, values)?;
    }
    let help = "Networks that sources are in, as routers tell";
    families.gauge("multicast_routes", None, help, [([("protocol", "dvmrp")], dvmrp.routes.len() as f64)])?;
    let refused = reasons(&dvmrp.refused).map(|(reason, n)| ([("reason", reason)], n));
    let help = "Messages of routers, or parts of them, that had no effect";
    families.counter("multicast_refused_router_messages", None, help, refused)
}
