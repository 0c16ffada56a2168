//! The relay goes on in another process.

use std::time::Duration;

use outflow_engine::message::ControlError;

use crate::control::Control;

/// How a relay has come to go on in another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgraded {
    /// The version that goes on.
    pub version: String,
    /// How long nothing was sent.
    pub gap: Duration,
}

/// Why a relay has ended, if nothing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    AsTold,
    /// It goes on in another process.
    HandedOver {
        /// That one's number.
        pid: u32,
    },
}

/// Has another process go on with what this one does.
///
/// # Errors
/// It was not handed over ([`ControlError::NotUpgraded`]), and goes on here.
pub async fn hand_over(_: &Control) -> Result<Upgraded, ControlError> {
    let why = "the relay has no starter: only one that `outflow run` started can be upgraded; start it again";
    Err(ControlError::NotUpgraded(why.to_owned()))
}
