//! The core in virtual time: a discrete-event driver of the same `outflow-relay` that runs live.
//!
//! A [`Scenario`] is data (TOML). [`run`] plays it and gives a [`Outcome`], whose digest covers
//! every delivery: the same scenario with the same seed gives the same digest, bit for bit. Services are
//! those of a configuration, and plug-ins the very same files.

mod agenda;
pub mod capture;
mod limits;
pub mod network;
mod outcome;
mod receiver;
mod scenario;
mod services;
mod source;
pub mod trees;
mod world;

pub use outcome::{Delays, Digest, Outcome, Passed, Viewing};
pub use scenario::{Pausing, Receivers, RelayModel, Scenario, ScenarioError, Slow, SourceModel};
pub use world::run;
