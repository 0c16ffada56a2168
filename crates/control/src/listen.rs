//! TCP listeners of fronts, plain and in TLS.

use std::net::SocketAddr;

use outflow_engine::message::ControlError;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::control::Control;

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
                listeners.push((bind(protocol, at).await?, tls));
            }
        }
        Ok(listeners)
    }
}

async fn bind(protocol: &str, at: SocketAddr) -> Result<TcpListener, ControlError> {
    let bound = TcpListener::bind(at).await;
    let listener = bound
        .map_err(|e| ControlError::system(format!("listening for {protocol} at {at} (see [listen])"), &e))?;
    tracing::info!(protocol, %at, "listening");
    Ok(listener)
}
