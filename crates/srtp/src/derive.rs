//! Keys: those that DTLS exports, and those of a session that come of them.

use core::fmt;

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use aes::{Aes128, Aes256};

use crate::Profile;

/// Bytes of the longest key, and of the longest salt.
const KEY_MAX: usize = 32;
const SALT: usize = 14;
/// A block of AES.
const BLOCK: usize = 16;

/// What a session key is for (RFC 3711, section 4.3).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Label {
    Key = 0,
    Authentication = 1,
    Salt = 2,
    ControlKey = 3,
    ControlAuthentication = 4,
    ControlSalt = 5,
}

/// A master key with its salt. It is not shown.
#[derive(Clone)]
pub struct Master {
    profile: Profile,
    key: [u8; KEY_MAX],
    /// Twelve bytes of those of AES-GCM are used (RFC 7714, section 12).
    salt: [u8; SALT],
}

impl Master {
    /// A key and a salt; none if they have another length than the profile's.
    pub fn new(profile: Profile, key: &[u8], salt: &[u8]) -> Option<Self> {
        if key.len() != profile.key_bytes() || salt.len() != profile.salt_bytes() {
            return None;
        }
        let mut master = Master { profile, key: [0; KEY_MAX], salt: [0; SALT] };
        master.key[..key.len()].copy_from_slice(key);
        master.salt[..salt.len()].copy_from_slice(salt);
        Some(master)
    }

    /// The bytes of a session key of this many (RFC 3711, section 4.3.1; with a rate of 0: one key for all packets).
    pub(crate) fn derive<const BYTES: usize>(&self, label: Label) -> [u8; BYTES] {
        let mut derived = [0; BYTES];
        for (number, part) in (0_u16..).zip(derived.chunks_mut(BLOCK)) {
            let mut block = [0; BLOCK];
            block[..SALT].copy_from_slice(&self.salt);
            block[7] ^= label as u8;
            block[SALT..].copy_from_slice(&number.to_be_bytes());
            let block = self.encrypted(block);
            part.copy_from_slice(&block[..part.len()]);
        }
        derived
    }

    fn encrypted(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = GenericArray::from(block);
        match self.profile {
            Profile::AeadAes256Gcm => Aes256::new(&self.key.into()).encrypt_block(&mut block),
            Profile::AeadAes128Gcm | Profile::Aes128CmSha1 => {
                Aes128::new(GenericArray::from_slice(&self.key[..16])).encrypt_block(&mut block);
            }
        }
        block.into()
    }
}

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Master").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// What DTLS exports for SRTP, by the label `EXTRACTOR-dtls_srtp`: a master key for each way (RFC 5764, section 4.2).
#[derive(Debug, Clone)]
pub struct Halves {
    /// Of what the client of DTLS seals.
    pub client: Master,
    /// Of what the server seals.
    pub server: Master,
}

impl Halves {
    /// Takes it apart; none if it has another length than [`Halves::bytes`].
    pub fn new(profile: Profile, material: &[u8]) -> Option<Self> {
        if material.len() != Self::bytes(profile) {
            return None;
        }
        let (keys, salts) = material.split_at(2 * profile.key_bytes());
        let (client_key, server_key) = keys.split_at(profile.key_bytes());
        let (client_salt, server_salt) = salts.split_at(profile.salt_bytes());
        Some(Halves {
            client: Master::new(profile, client_key, client_salt)?,
            server: Master::new(profile, server_key, server_salt)?,
        })
    }

    /// As it was exported: a secret.
    pub fn material(&self) -> Vec<u8> {
        let Halves { client, server } = self;
        let profile = client.profile;
        let keys = [client, server].map(|master| &master.key[..profile.key_bytes()]);
        let salts = [client, server].map(|master| &master.salt[..profile.salt_bytes()]);
        [keys, salts].concat().concat()
    }

    /// Bytes that are exported.
    pub fn bytes(profile: Profile) -> usize {
        2 * (profile.key_bytes() + profile.salt_bytes())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    /// RFC 3711, appendix B.3.
    #[test]
    fn session_keys_are_those_of_the_rfc() {
        let (key, salt) = (hex("E1F97A0D3E018BE0D64FA32C06DE4139"), hex("0EC675AD498AFEEBB6960B3AABE6"));
        let master = Master::new(Profile::Aes128CmSha1, &key, &salt).expect("a key");
        assert_eq!(master.derive::<16>(Label::Key)[..], hex("C61E7A93744F39EE10734AFE3FF7A087"));
        assert_eq!(master.derive::<14>(Label::Salt)[..], hex("30CBBC08863D8C85D49DB34A9AE1"));
        let authentication = "CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4";
        assert_eq!(master.derive::<20>(Label::Authentication)[..], hex(authentication));
    }

    /// RFC 7714, section 17 has no master keys; what is exported is taken apart in the order of RFC 5764.
    #[test]
    fn what_is_exported_is_two_keys_and_two_salts() {
        let material: Vec<_> = (0..60).collect();
        let halves = Halves::new(Profile::Aes128CmSha1, &material).expect("60 bytes");
        assert_eq!(halves.client.key[..16], material[..16]);
        assert_eq!(halves.server.key[..16], material[16..32]);
        assert_eq!(halves.client.salt, material[32..46]);
        assert_eq!(halves.server.salt, material[46..]);
        assert_eq!(Profile::ALL.map(Halves::bytes), [56, 88, 60]);
        for profile in Profile::ALL {
            assert!(Halves::new(profile, &material[..55]).is_none());
            let material: Vec<_> = (0..Halves::bytes(profile) as u8).collect();
            assert_eq!(Halves::new(profile, &material).map(|halves| halves.material()), Some(material));
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let halves = Halves::new(Profile::AeadAes128Gcm, &[251; 56]).expect("56 bytes");
        assert!(!format!("{halves:?}").contains("251"));
    }
}
