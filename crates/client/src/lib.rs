//! The receiving side: [`subscribe`] to a stream, whatever carries it, and [`measure`] it.
//!
//! `outflow watch` and the relay's own pulled sources stand on this.
#![allow(clippy::disallowed_methods, reason = "a driver owns clock and sockets")]

mod adapter;
mod address;
mod clock;
mod datagrams;
mod described;
mod error;
pub mod http;
pub mod limits;
pub mod machine;
pub mod measure;
mod negotiation;
mod options;
mod packet;
mod poc;
mod rtsp;
mod socket;
mod subscription;
mod tls;
mod track;
mod udp;
mod wire;

pub use adapter::{Adapter, AdapterSummary, Change, DecisionSummary};
pub use clock::Clock;
pub use error::Error;
pub use options::{AskBy, Options};
pub use outflow_rtsp::Lower;
pub use outflow_rtsp::auth::Credentials;
pub use packet::{Packet, Received, Rejected, RtpStamp};
pub use subscription::{Subscription, subscribe};
