//! The relay's certificate.

use core::fmt;

use dimpl::DtlsCertificate;
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, SerialNumber, date_time_ymd};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::Fingerprint;

/// A certificate that the relay has signed itself, and its key. Peers know it by its fingerprint, so it is to be kept
/// over restarts: a peer that joins again needs no other description then.
#[derive(Clone)]
pub struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Why something is no identity, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadIdentity {
    /// The certificate.
    #[error("the certificate cannot be read: DER is wanted, with a key of P-256")]
    Certificate,
    /// The key.
    #[error("the key cannot be read: PKCS #8 in DER is wanted, with a key of P-256")]
    Key,
    /// The two do not fit.
    #[error("the key is another one than the certificate's")]
    Apart,
    /// A new one could not be made.
    #[error("no certificate can be made: {0}")]
    NotMade(String),
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate() -> Result<Self, BadIdentity> {
        let not_made = |error: rcgen::Error| BadIdentity::NotMade(error.to_string());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(not_made)?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "outflow");
        // Firefox takes no two certificates with the same number and name. When one is valid, nothing looks at.
        let mut serial = [0; 16];
        let random = SystemRandom::new().fill(&mut serial);
        random.map_err(|_| BadIdentity::NotMade("the system has no randomness".to_owned()))?;
        serial[0] &= 0x7f;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2120, 1, 1));
        let certificate = params.self_signed(&key).map_err(not_made)?;
        Self::from_der(certificate.der().to_vec(), key.serialize_der())
    }

    /// One that was kept: the certificate, and its key in PKCS #8, both in DER.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_der(certificate: Vec<u8>, key: Vec<u8>) -> Result<Self, BadIdentity> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &key, &SystemRandom::new());
        let pair = pair.map_err(|_| BadIdentity::Key)?;
        let parsed = X509Certificate::from_der(&certificate).ok().filter(|(behind, _)| behind.is_empty());
        let (_, parsed) = parsed.ok_or(BadIdentity::Certificate)?;
        if parsed.public_key().subject_public_key.data[..] != *pair.public_key().as_ref() {
            return Err(BadIdentity::Apart);
        }
        Ok(Identity { certificate, key })
    }

    /// The certificate in DER.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The key, in PKCS #8 in DER: a secret.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// As the library wants it.
    pub(crate) fn to_dimpl(&self) -> DtlsCertificate {
        DtlsCertificate { certificate: self.certificate.clone(), private_key: self.key.clone() }
    }

    /// By which peers know it.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_was_kept_has_the_same_fingerprint_and_each_new_one_another() {
        let first = Identity::generate().expect("a certificate");
        let kept =
            Identity::from_der(first.certificate().to_vec(), first.key().to_vec()).expect("it was kept");
        assert_eq!(first.fingerprint(), kept.fingerprint());
        let second = Identity::generate().expect("a certificate");
        assert_ne!(first.fingerprint(), second.fingerprint());
        assert!(first.certificate().len() < 500, "it fits a datagram with all else");
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let [first, second] = [(); 2].map(|()| Identity::generate().expect("a certificate"));
        let made = |certificate: &[u8], key: &[u8]| {
            Identity::from_der(certificate.to_vec(), key.to_vec()).expect_err("it does not fit")
        };
        assert_eq!(made(first.certificate(), second.key()), BadIdentity::Apart);
        assert_eq!(made(first.certificate(), b"no key"), BadIdentity::Key);
        assert_eq!(made(b"no certificate", first.key()), BadIdentity::Certificate);
        assert_eq!(made(&[first.certificate(), b"x"].concat(), first.key()), BadIdentity::Certificate);
    }

    #[test]
    fn the_key_is_not_shown() {
        let identity = Identity::generate().expect("a certificate");
        let shown = format!("{identity:?}");
        assert!(shown.contains(&identity.fingerprint().to_string()) && shown.len() < 150, "{shown}");
    }
}
