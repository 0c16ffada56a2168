//! The partial-order transport: who asks here for a stream or publishes one, and whom streams are sent to.
//!
//! A connection that a stream goes to leaves its socket, and the receiver's worker drives it (`peer.rs`). All else,
//! its beginning, what is published, what relays say to each other, stays with tasks of control.

mod ledger;
mod pace;
mod peer;
mod publish;
mod send;
mod server;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use outflow_config::{Encryption, Poc, PocUrl};
use outflow_poc_socket::noise::Keys;
use outflow_poc_socket::{Options, Security};

use crate::control::ControlError;

pub(crate) use send::keep_sending;
pub(crate) use server::{listen, serve};

/// How connections are to be: as the configuration says, and the address of the other end.
///
/// # Errors
/// The keys cannot be read.
pub(crate) fn options(config: &Poc, url: Option<&PocUrl>) -> Result<Options, ControlError> {
    let own = url.and_then(|url| url.key_file.as_ref());
    let is_plain = config.encryption == Encryption::Off || url.is_some_and(|url| url.is_plain);
    let security = match own.or(config.key_file.as_ref().filter(|_| !is_plain)) {
        None if is_plain => Security::Plain,
        None => {
            let text = "there are no keys: give [poc] key_file, or key-file= in the address".to_owned();
            return Err(ControlError::Configuration(text));
        }
        Some(file) => {
            let wrong = |why: &dyn std::fmt::Display| {
                ControlError::Configuration(format!("{}: {why} (see `outflow poc key`)", file.display()))
            };
            let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
            Security::Keys(Arc::new(text.parse::<Keys>().map_err(|error| wrong(&error))?))
        }
    };
    let mut options = Options::new(security);
    let congestion = &mut options.settings.connection.congestion;
    if let Some(rate) = config.min_rate {
        congestion.min_bps = rate.0;
    }
    if let Some(rate) = config.max_rate {
        congestion.max_bps = rate.0;
    }
    Ok(options)
}

/// For how long packets are sent again, to the other end at this address.
fn latency(config: &Poc, url: &PocUrl) -> Duration {
    url.latency.unwrap_or(config.latency)
}
