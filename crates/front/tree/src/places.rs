//! What this relay has to find before it is one of a tree: the directory, and where relays are that are named.

use std::net::SocketAddr;

use outflow_directory::{Auth, Directory, Tls};
use outflow_engine::message::ControlError;
use tokio::sync::mpsc;

use crate::settings::Tree;

/// The directory, if there is to be one.
///
/// # Errors
/// The configuration names what there is not.
pub(super) fn directory(
    config: &Tree,
    name: &str,
    seed: u64,
) -> Result<Option<(Directory, mpsc::Receiver<outflow_directory::Event>)>, ControlError> {
    if config.directory.is_empty() {
        return Ok(None);
    }
    let auth = config.credentials.clone().map_or(Auth::None, Auth::File);
    let tls = config.ca.clone().map(|ca| Tls { ca: Some(ca), ..Tls::default() });
    let started = Directory::start(outflow_directory::Options {
        servers: config.directory.iter().map(|server| server.reveal().to_owned()).collect(),
        bucket: config.bucket.clone(),
        auth,
        tls,
        name: name.to_owned(),
        seed,
        ..outflow_directory::Options::default()
    });
    started.map(Some).map_err(|error| ControlError::Configuration(format!("[tree] directory: {error}")))
}

/// Where a relay is reached that is named by host and port.
pub(super) async fn look_up(place: &str) -> Result<SocketAddr, ControlError> {
    let failed = |error: &std::io::Error| {
        ControlError::system(format!("looking up {place} (see [tree] in the configuration)"), error)
    };
    let mut all = tokio::net::lookup_host(place).await.map_err(|error| failed(&error))?;
    let unknown = std::io::Error::new(std::io::ErrorKind::NotFound, "the name is not known");
    all.next().ok_or_else(|| failed(&unknown))
}
