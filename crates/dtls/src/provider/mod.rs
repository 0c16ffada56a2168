//! The cryptography of dimpl, by ring.

mod exchange;
mod hash;
mod sign;
mod suites;

use dimpl::CryptoError;
use dimpl::crypto::{CryptoProvider, SecureRandom};
use ring::rand::{SecureRandom as _, SystemRandom};

/// What dimpl computes with.
pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: exchange::GROUPS,
        signature_verification: &sign::Verifier,
        key_provider: &sign::Keys,
        secure_random: &Random,
        hash_provider: &hash::Hashes,
        hmac_provider: &hash::Hashes,
        cipher_suites: suites::OF_1_2,
        dtls13_cipher_suites: suites::OF_1_3,
    }
}

#[derive(Debug)]
struct Random;

impl SecureRandom for Random {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), CryptoError> {
        let failed = CryptoError::OperationFailed(dimpl::CryptoOperation::FillRandom);
        SystemRandom::new().fill(bytes).map_err(|_| failed)
    }
}
