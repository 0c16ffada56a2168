//! Streams pulled from RTSP servers: cameras, and other relays.

use outflow_client::{Credentials, Lower, Options};
use outflow_config::{Secret, StreamConfig};
use outflow_engine::message::ControlError;
use outflow_engine::system::random_u32;
use outflow_front_pull::Asked;

use crate::settings;
use crate::settings::{RtspSource, SourceSettings, Transport};

/// Where to ask for a configured source, and how.
///
/// # Errors
/// It is none of RTSP.
pub(super) fn ask(config: &StreamConfig) -> Result<Asked, ControlError> {
    let source = settings::source(config).ok_or_else(|| {
        ControlError::Unsupported(format!("{} is no address of an RTSP server", config.source))
    })?;
    Ok((source.url.clone(), options(source, config.section::<SourceSettings>().transport)))
}

fn options(source: &RtspSource, transport: Transport) -> Options {
    let revealed = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().to_owned());
    let (user, password) = (revealed(&source.user), revealed(&source.password));
    let credentials = user.is_some() || password.is_some();
    Options {
        transport: match transport {
            Transport::Tcp => Lower::Tcp,
            Transport::Udp => Lower::Udp,
        },
        credentials: credentials
            .then(|| Credentials { user: user.unwrap_or_default(), password: password.unwrap_or_default() }),
        seed: u64::from(random_u32()),
        ..Options::default()
    }
}
