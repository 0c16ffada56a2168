//! The relay's key, and what peers sign.

use core::fmt;

use dimpl::crypto::{
    Buf, HashAlgorithm, KeyProvider, NamedGroup, SignatureAlgorithm, SignatureVerifier, SigningKey,
    check_verify_scheme,
};
use dimpl::{CryptoError, CryptoOperation};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_ASN1, EcdsaKeyPair, UnparsedPublicKey,
};
use x509_parser::oid_registry::{OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Keys of P-256 in PKCS #8, which is what [`crate::Identity`] has.
#[derive(Debug)]
pub(super) struct Keys;

struct Key(EcdsaKeyPair);

impl KeyProvider for Keys {
    fn load_private_key(&self, der: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &SystemRandom::new());
        pair.map(|pair| Box::new(Key(pair)) as Box<dyn SigningKey>)
            .map_err(|_| CryptoError::InvalidPrivateKey)
    }
}

impl SigningKey for Key {
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), CryptoError> {
        if hash != HashAlgorithm::SHA256 {
            return Err(CryptoError::SigningKeyUnsupportedHash { group: NamedGroup::Secp256r1, hash });
        }
        let failed = |_| CryptoError::OperationFailed(CryptoOperation::Sign);
        let signature = self.0.sign(&SystemRandom::new(), data).map_err(failed)?;
        out.clear();
        out.extend_from_slice(signature.as_ref());
        Ok(())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &[HashAlgorithm::SHA256]
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Whether a peer has the key of the certificate that it shows. The fingerprint of the certificate says which peer that is.
#[derive(Debug)]
pub(super) struct Verifier;

impl SignatureVerifier for Verifier {
    fn verify_signature(
        &self,
        certificate: &[u8],
        data: &[u8],
        signed: &[u8],
        hash: HashAlgorithm,
        signature: SignatureAlgorithm,
    ) -> Result<(), CryptoError> {
        let parsed = X509Certificate::from_der(certificate);
        let (_, certificate) = parsed.map_err(|_| CryptoError::CertificateParseFailed)?;
        let key = certificate.public_key();
        if key.algorithm.algorithm != OID_KEY_TYPE_EC_PUBLIC_KEY {
            return Err(CryptoError::UnsupportedPublicKeyAlgorithm);
        }
        let parameters = key.algorithm.parameters.as_ref().ok_or(CryptoError::MissingEcCurveParameter)?;
        let curve = parameters.as_oid().map_err(|_| CryptoError::InvalidEcCurveParameter)?;
        let group = if curve == OID_EC_P256 {
            NamedGroup::Secp256r1
        } else if curve == OID_NIST_EC_P384 {
            NamedGroup::Secp384r1
        } else {
            return Err(CryptoError::UnsupportedEcCurve);
        };
        check_verify_scheme(signature, hash, group)?;
        let algorithm = match (group, hash) {
            (NamedGroup::Secp256r1, HashAlgorithm::SHA384) => &ECDSA_P256_SHA384_ASN1,
            (NamedGroup::Secp256r1, _) => &ECDSA_P256_SHA256_ASN1,
            (_, HashAlgorithm::SHA384) => &ECDSA_P384_SHA384_ASN1,
            (_, _) => &ECDSA_P384_SHA256_ASN1,
        };
        let failed = |_| CryptoError::SignatureVerificationFailed { signature, hash, group };
        UnparsedPublicKey::new(algorithm, &key.subject_public_key.data).verify(data, signed).map_err(failed)
    }
}
