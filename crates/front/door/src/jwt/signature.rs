//! Signatures are verified by ring, which TLS has here already; nothing is signed.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has the library verify by ring from now on.
pub(super) fn install() {
    // It was done before, if it fails.
    let _ = PROVIDER.install_default();
}

fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    Ok(Box::new(ByRing { algorithm: *algorithm, key: key.clone() }))
}

struct ByRing {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> core::result::Result<(), Error> {
        // A key of another kind than the algorithm's verifies nothing.
        let verified = match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let parameters = rsa(self.algorithm).ok_or_else(Error::new)?;
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            DecodingKeyKind::SecretOrDer(key) => {
                let curve = curve(self.algorithm).ok_or_else(Error::new)?;
                UnparsedPublicKey::new(curve, key).verify(message, signature)
            }
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn curve(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    match algorithm {
        Algorithm::ES256 => Some(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Some(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Some(&ED25519),
        _ => None,
    }
}
