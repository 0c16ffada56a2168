//! The driver on real interfaces, with hosts and routers of others in namespaces of their own.
#![allow(clippy::disallowed_methods, missing_docs, reason = "tests own time, threads and files")]

mod alike;
mod changes;
mod described;
mod dvmrp;
mod frr;
mod further;
mod hosts;
mod mld;
mod mrouted;
mod net;
mod peers;
mod rate;
mod relay;
mod relayed;
mod routing;
mod thinned;
mod tshark;
mod wire;
