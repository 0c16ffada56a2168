//! Certificate and key for encrypted connections. Files that change are read again: a certificate is renewed without
//! a restart.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use outflow_config::Tls;
use outflow_file::Stamp;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::limits::{CERTIFICATE_LOOK_EVERY, PEM_BYTES_MAX};

/// A file that cannot be used: its path, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}: [tls] needs PEM files that fit each other")]
pub struct TlsError(String, String);

/// What accepts TLS connections with the configured certificate, for these protocols (ALPN, RFC 7301). When the files
/// change, connections from then on get the new certificate, once it fits its key.
///
/// # Errors
/// A file cannot be read, or holds no certificate or key, or they do not fit.
pub fn acceptor(tls: &Tls, protocols: &[&str]) -> Result<TlsAcceptor, TlsError> {
    let builder = ServerConfig::builder();
    let files = FromFiles::open(tls, Arc::clone(builder.crypto_provider()))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(files));
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A certificate and its key, as they stand in files.
#[derive(Debug)]
struct FromFiles {
    files: Tls,
    provider: Arc<CryptoProvider>,
    current: ArcSwap<CertifiedKey>,
    seen: Mutex<Seen>,
}

/// What the files were when they were looked at last.
#[derive(Debug)]
struct Seen {
    stamps: Stamps,
    next_look: Instant,
}

/// What shows that a file has changed; none if it is not there.
type Stamps = [Option<Stamp>; 2];

impl FromFiles {
    fn open(files: &Tls, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let stamps = stamps(files);
        let current = ArcSwap::from_pointee(load(files, &provider)?);
        let seen = Mutex::new(Seen { stamps, next_look: Instant::now() + CERTIFICATE_LOOK_EVERY });
        Ok(FromFiles { files: files.clone(), provider, current, seen })
    }

    /// Reads the files again if they have changed. What does not fit is left: half of a pair may be there.
    fn look(&self, now: Instant) {
        // If another handshake looks just now, that is enough.
        let Ok(mut seen) = self.seen.try_lock() else { return };
        if now < seen.next_look {
            return;
        }
        seen.next_look = now + CERTIFICATE_LOOK_EVERY;
        let stamps = stamps(&self.files);
        if stamps == seen.stamps {
            return;
        }
        seen.stamps = stamps;
        match load(&self.files, &self.provider) {
            Ok(key) => {
                self.current.store(Arc::new(key));
                tracing::info!(file = %self.files.certificate.display(), "the certificate was read again");
            }
            Err(error) => {
                tracing::warn!(%error, "the certificate has changed and cannot be used: that before is kept");
            }
        }
    }
}

impl ResolvesServerCert for FromFiles {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.look(Instant::now());
        Some(self.current.load_full())
    }
}

fn stamps(files: &Tls) -> Stamps {
    [Stamp::at(&files.certificate), Stamp::at(&files.key)]
}

fn load(files: &Tls, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let wrong = |path: &Path, why: &dyn Display| TlsError(path.display().to_string(), why.to_string());
    let read = |path: &Path| outflow_file::read(path, PEM_BYTES_MAX).map_err(|e| wrong(path, &e));
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(&files.certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|e| wrong(&files.certificate, &e))?;
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(|e| wrong(&files.key, &e))?;
    CertifiedKey::from_der(certificates, key, provider).map_err(|e| wrong(&files.certificate, &e))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// Files with a certificate for this name, and its key.
    fn write(files: &Tls, name: &str) {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        fs::write(&files.certificate, made.cert.pem()).expect("written");
        fs::write(&files.key, made.signing_key.serialize_pem()).expect("written");
    }

    #[test]
    fn a_certificate_that_is_exchanged_is_read_again_once_it_fits_its_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Tls { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
        write(&files, "one.example");
        let provider = Arc::clone(ServerConfig::builder().crypto_provider());
        let from_files = FromFiles::open(&files, provider).expect("they fit");
        let now = Instant::now();
        let shown = |ms: u64| {
            from_files.look(now + CERTIFICATE_LOOK_EVERY + Duration::from_millis(ms));
            from_files.current.load().cert[0].to_vec()
        };
        let first = shown(0);
        let key = fs::read(&files.key).expect("a key");
        write(&files, "two.example");
        let second_key = fs::read(&files.key).expect("a key");
        fs::write(&files.key, key).expect("written");
        assert_eq!(shown(5_000), first, "the new certificate does not fit the old key");
        fs::write(&files.key, second_key).expect("written");
        assert_eq!(shown(5_001), first, "it is too early to look");
        let second = shown(10_000);
        assert_ne!(second, first);
        fs::remove_file(&files.certificate).expect("removed");
        assert_eq!(shown(15_000), second);
    }
}
