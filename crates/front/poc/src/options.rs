//! How connections are to be.

use std::sync::Arc;
use std::time::Duration;

use outflow_engine::message::ControlError;
use outflow_poc_socket::noise::Keys;
use outflow_poc_socket::{Options, Security};

use crate::limits::KEY_BYTES_MAX;
use crate::settings::{Encryption, Poc, PocUrl};

/// How connections are to be: as the configuration says, and the address of the other end.
///
/// # Errors
/// The keys cannot be read.
pub fn options(config: &Poc, url: Option<&PocUrl>) -> Result<Options, ControlError> {
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
            let text = outflow_file::read_text(file, KEY_BYTES_MAX).map_err(|error| wrong(&error))?;
            Security::Keys(Arc::new(text.parse::<Keys>().map_err(|error| wrong(&error))?))
        }
    };
    Ok(options_with(config, security))
}

/// How connections are to be, by their keys.
pub(crate) fn options_with(config: &Poc, security: Security) -> Options {
    let mut options = Options::new(security);
    let congestion = &mut options.settings.connection.congestion;
    if let Some(rate) = config.min_rate {
        congestion.min_bps = rate.0;
    }
    if let Some(rate) = config.max_rate {
        congestion.max_bps = rate.0;
    }
    options
}

/// For how long packets are sent again, to the other end at this address.
pub(crate) fn latency(config: &Poc, url: &PocUrl) -> Duration {
    url.latency.unwrap_or(config.latency)
}
