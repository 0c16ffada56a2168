//! The certificate that browsers know the relay by, kept in a file.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outflow_dtls::Identity;
use outflow_engine::message::ControlError;
use outflow_file::Unreadable;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::limits::IDENTITY_BYTES_MAX;

/// The one of a file, which is made if it is not there; a new one without a file.
///
/// # Errors
/// The file cannot be read or made, or holds something else.
pub(crate) fn load(file: Option<&Path>) -> Result<Identity, ControlError> {
    let wrong = |why: &dyn std::fmt::Display| {
        let file = file.map(|file| format!("{}: ", file.display())).unwrap_or_default();
        ControlError::Configuration(format!("{file}{why} (see [webrtc] identity_file)"))
    };
    let generate = || Identity::generate().map_err(|error| wrong(&error));
    let Some(path) = file else { return generate() };
    match outflow_file::read_text(path, IDENTITY_BYTES_MAX) {
        Ok(text) => of_pem(&text).map_err(|why| wrong(&why)),
        Err(Unreadable::System(error)) if error.kind() == ErrorKind::NotFound => {
            let identity = generate()?;
            write(path, &to_pem(&identity)).map_err(|error| wrong(&error))?;
            tracing::info!(file = %path.display(), "made the certificate that browsers know this relay by");
            Ok(identity)
        }
        Err(error) => Err(wrong(&error)),
    }
}

/// A file that its owner alone can read, and that is not there yet.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Both in PEM (RFC 7468).
fn to_pem(identity: &Identity) -> String {
    let block = |label: &str, der: &[u8]| {
        let text = STANDARD.encode(der);
        let lines: Vec<&str> =
            (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    };
    block("CERTIFICATE", identity.certificate()) + &block("PRIVATE KEY", identity.key())
}

fn of_pem(text: &str) -> Result<Identity, String> {
    let certificate = CertificateDer::from_pem_slice(text.as_bytes());
    let certificate = certificate.map_err(|error| format!("it has no certificate in PEM: {error}"))?;
    let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes());
    let key = key.map_err(|error| format!("it has no key of PKCS #8 in PEM: {error}"))?;
    let identity = Identity::from_der(certificate.to_vec(), key.secret_pkcs8_der().to_vec());
    identity.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_the_same_after_a_restart_and_for_its_owner_alone() {
        let folder = std::env::temp_dir().join(format!("outflow-identity-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("webrtc.pem");
        let first = load(Some(&file)).expect("it is made");
        let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
        let again = load(Some(&file)).expect("it is read");
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
            .expect("written");
        let wrong = load(Some(&file)).map(|_| ()).expect_err("it is none any more").to_string();
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert_eq!(mode & 0o777, 0o600);
        assert!(wrong.contains("webrtc.pem") && wrong.contains("identity_file"), "{wrong}");
        assert_ne!(load(None).expect("made").fingerprint(), first.fingerprint());
    }
}
