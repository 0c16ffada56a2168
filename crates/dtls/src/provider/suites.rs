//! What records are encrypted with.

use core::fmt;

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use dimpl::crypto::{
    Aad, Buf, Cipher, Dtls12CipherSuite, Dtls13CipherSuite, HashAlgorithm, Nonce, SupportedDtls12CipherSuite,
    SupportedDtls13CipherSuite, TmpBuf,
};
use dimpl::{CryptoError, CryptoOperation};
use ring::aead::{self, AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey, quic};

const TAG: usize = 16;

pub(super) static OF_1_2: &[&dyn SupportedDtls12CipherSuite] = &[
    &Suite12(Dtls12CipherSuite::ECDHE_ECDSA_AES128_GCM_SHA256, &AES_128_GCM),
    &Suite12(Dtls12CipherSuite::ECDHE_ECDSA_AES256_GCM_SHA384, &AES_256_GCM),
    &Suite12(Dtls12CipherSuite::ECDHE_ECDSA_CHACHA20_POLY1305_SHA256, &CHACHA20_POLY1305),
];

pub(super) static OF_1_3: &[&dyn SupportedDtls13CipherSuite] = &[
    &Suite13(Dtls13CipherSuite::AES_128_GCM_SHA256, &AES_128_GCM),
    &Suite13(Dtls13CipherSuite::AES_256_GCM_SHA384, &AES_256_GCM),
    &Suite13(Dtls13CipherSuite::CHACHA20_POLY1305_SHA256, &CHACHA20_POLY1305),
];

#[derive(Debug)]
struct Suite12(Dtls12CipherSuite, &'static aead::Algorithm);

#[derive(Debug)]
struct Suite13(Dtls13CipherSuite, &'static aead::Algorithm);

struct Record(LessSafeKey);

impl Record {
    fn boxed(algorithm: &'static aead::Algorithm, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        let failed = |_| CryptoError::OperationFailed(CryptoOperation::CreateCipher);
        let key = UnboundKey::new(algorithm, key).map_err(failed)?;
        Ok(Box::new(Record(LessSafeKey::new(key))))
    }
}

impl Cipher for Record {
    fn encrypt(&mut self, plain: &mut Buf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let failed = |_| CryptoError::OperationFailed(CryptoOperation::Encrypt);
        self.0.seal_in_place_append_tag(nonce, aead::Aad::from(&aad[..]), plain).map_err(failed)
    }

    fn decrypt(&mut self, sealed: &mut TmpBuf<'_>, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let opened = self.0.open_in_place(nonce, aead::Aad::from(&aad[..]), sealed.as_mut());
        let plain = opened.map_err(|_| CryptoError::OperationFailed(CryptoOperation::Decrypt))?.len();
        sealed.truncate(plain);
        Ok(())
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Record")
    }
}

fn hash(algorithm: &'static aead::Algorithm) -> HashAlgorithm {
    if algorithm == &AES_256_GCM { HashAlgorithm::SHA384 } else { HashAlgorithm::SHA256 }
}

impl SupportedDtls12CipherSuite for Suite12 {
    fn suite(&self) -> Dtls12CipherSuite {
        self.0
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        hash(self.1)
    }

    fn key_lengths(&self) -> (usize, usize, usize) {
        // RFC 5288, section 3; RFC 7905, section 2.
        (0, self.1.key_len(), if self.1 == &CHACHA20_POLY1305 { 12 } else { 4 })
    }

    fn explicit_nonce_len(&self) -> usize {
        if self.1 == &CHACHA20_POLY1305 { 0 } else { 8 }
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Record::boxed(self.1, key)
    }
}

impl SupportedDtls13CipherSuite for Suite13 {
    fn suite(&self) -> Dtls13CipherSuite {
        self.0
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        hash(self.1)
    }

    fn key_len(&self) -> usize {
        self.1.key_len()
    }

    fn iv_len(&self) -> usize {
        12
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Record::boxed(self.1, key)
    }

    /// RFC 9147, section 4.2.3.
    fn encrypt_sn(&self, key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
        match self.0 {
            Dtls13CipherSuite::AES_128_GCM_SHA256 => block::<Aes128>(key, sample),
            Dtls13CipherSuite::AES_256_GCM_SHA384 => block::<Aes256>(key, sample),
            _ => {
                let key = quic::HeaderProtectionKey::new(&quic::CHACHA20, key).expect("a key of its length");
                let mut mask = [0; 16];
                let begin = key.new_mask(sample).expect("a sample of its length");
                // No more than two bytes of it are used.
                mask[..begin.len()].copy_from_slice(&begin);
                mask
            }
        }
    }
}

fn block<C: KeyInit + BlockEncrypt>(key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
    let cipher = C::new_from_slice(key).expect("a key of its length");
    let mut block = GenericArray::clone_from_slice(sample);
    cipher.encrypt_block(&mut block);
    let mut mask = [0; 16];
    mask.copy_from_slice(&block);
    mask
}
