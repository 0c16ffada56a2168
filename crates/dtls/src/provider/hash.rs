//! Hashes, and signatures by them.

use core::fmt;

use dimpl::CryptoError;
use dimpl::crypto::{Buf, HashAlgorithm, HashContext, HashProvider, HmacProvider};
use ring::{digest, hmac};

#[derive(Debug)]
pub(super) struct Hashes;

struct Running(digest::Context);

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

impl HashProvider for Hashes {
    fn create_hash(&self, algorithm: HashAlgorithm) -> Box<dyn HashContext> {
        // The suites here have no other hash than these two.
        let algorithm = if algorithm == HashAlgorithm::SHA384 { &digest::SHA384 } else { &digest::SHA256 };
        Box::new(Running(digest::Context::new(algorithm)))
    }
}

impl HashContext for Running {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn clone_and_finalize(&self, out: &mut Buf) {
        out.clear();
        out.extend_from_slice(self.0.clone().finish().as_ref());
    }
}

impl HmacProvider for Hashes {
    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let algorithm = match hash {
            HashAlgorithm::SHA256 => hmac::HMAC_SHA256,
            HashAlgorithm::SHA384 => hmac::HMAC_SHA384,
            other => return Err(CryptoError::UnsupportedHmacHash(other)),
        };
        let tag = hmac::sign(&hmac::Key::new(algorithm, key), data);
        let tag = tag.as_ref();
        let failed = CryptoError::OperationFailed(dimpl::CryptoOperation::ComputeHmac);
        out.get_mut(..tag.len()).ok_or(failed)?.copy_from_slice(tag);
        Ok(tag.len())
    }
}
