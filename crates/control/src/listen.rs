//! TCP listeners of fronts, plain and in TLS.

use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use outflow_engine::message::ControlError;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::control::Control;
use crate::upgrade::Upgrade;

/// Where a front is reached, and what decrypts what comes there.
pub type Listener = (TcpListener, Option<TlsAcceptor>);

impl Control {
    /// Listens for a protocol at an address, and, where the configuration has a certificate, at another one in TLS.
    ///
    /// # Errors
    /// An address or the certificate cannot be used.
    pub async fn listeners(
        &self,
        protocol: &str,
        plain: Option<SocketAddr>,
        encrypted: Option<SocketAddr>,
    ) -> Result<Vec<Listener>, ControlError> {
        let config = self.config();
        let acceptor = |tls| outflow_door::tls::acceptor(tls, &["http/1.1"]);
        let tls = config.tls.as_ref().map(acceptor).transpose();
        let tls = tls.map_err(|error| ControlError::Configuration(error.to_string()))?;
        let mut listeners = Vec::new();
        for (at, tls) in [(plain, None), (encrypted.filter(|_| tls.is_some()), tls)] {
            if let Some(at) = at {
                listeners.push((listener(self, protocol, at).await?, tls));
            }
        }
        Ok(listeners)
    }
}

/// A listener of the process before, or a new one. An upgrade hands it on.
async fn listener(control: &Control, protocol: &str, at: SocketAddr) -> Result<TcpListener, ControlError> {
    let failed = |e| ControlError::system(format!("listening for {protocol} at {at} (see [listen])"), &e);
    let upgrade = control.shared::<Upgrade>();
    let listener = match upgrade.listener(protocol, at) {
        Some(taken) => TcpListener::from_std(taken.into()).map_err(failed)?,
        None => TcpListener::bind(at).await.map_err(failed)?,
    };
    upgrade.listens(protocol, at, listener.as_fd().try_clone_to_owned().map_err(failed)?);
    tracing::info!(protocol, %at, "listening");
    Ok(listener)
}
