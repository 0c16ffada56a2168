//! Certificate and key for encrypted connections.

use std::sync::Arc;

use outflow_config::Tls;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::control::ControlError;

/// What accepts TLS connections with the configured certificate.
///
/// # Errors
/// A file cannot be read, or holds no certificate or key, or they do not fit.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ControlError> {
    let wrong = |path: &std::path::Path, why: &dyn std::fmt::Display| {
        ControlError::Configuration(format!(
            "{}: {why}: [tls] needs PEM files that fit each other",
            path.display()
        ))
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect)
        .map_err(|e| wrong(&tls.certificate, &e))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|e| wrong(&tls.key, &e))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|e| wrong(&tls.certificate, &e))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
