//! Certificate and key for encrypted connections.

use std::path::Path;
use std::sync::Arc;

use outflow_config::Tls;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A file that cannot be used: its path, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}: [tls] needs PEM files that fit each other")]
pub struct TlsError(String, String);

/// What accepts TLS connections with the configured certificate, for these protocols (ALPN, RFC 7301).
///
/// # Errors
/// A file cannot be read, or holds no certificate or key, or they do not fit.
pub fn acceptor(tls: &Tls, protocols: &[&str]) -> Result<TlsAcceptor, TlsError> {
    let wrong =
        |path: &Path, why: &dyn std::fmt::Display| TlsError(path.display().to_string(), why.to_string());
    let certificates: Vec<_> = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect)
        .map_err(|e| wrong(&tls.certificate, &e))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|e| wrong(&tls.key, &e))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|e| wrong(&tls.certificate, &e))?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
