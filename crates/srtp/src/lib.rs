//! Secure RTP (RFC 3711), with AES-GCM (RFC 7714) or AES in counter mode and HMAC-SHA1, keyed by DTLS (RFC 5764).
//!
//! A [`Sealer`] is one end's way out, an [`Opener`] its way in. Both work in place, on packets of the caller's, and
//! neither allocates. The owner of a source knows how often its sequence numbers have come round; so a sealer is told,
//! and keeps nothing for each source: what is sent once more, or by another source, is sealed like everything else.
//!
//! ```
//! use outflow_srtp::{Halves, Opener, Profile, Sealer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let material = [7; 56];
//! // What DTLS exports, of which both ends have the same.
//! let profile = Profile::AeadAes128Gcm;
//! let halves = Halves::new(profile, &material).ok_or("another length")?;
//! let (sealer, mut opener) = (Sealer::new(profile, &halves.server), Opener::new(profile, &halves.server));
//!
//! let mut packet = vec![0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, b'a', b'b'];
//! sealer.seal(&mut packet, 0, 0)?;
//! assert_eq!(packet.len(), 14 + profile.overhead());
//! let plain = opener.open(&mut packet)?;
//! assert_eq!(packet[12..plain], *b"ab");
//! # Ok(())
//! # }
//! ```

mod cipher;
mod derive;
pub mod limits;
mod opener;
mod replay;
mod sealer;

pub use derive::{Halves, Master};
pub use opener::Opener;
pub use sealer::Sealer;

/// What packets are sealed with: the profiles of DTLS that browsers have, by their numbers there (RFC 5764, section
/// 4.1.2; RFC 7714, section 14.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// `SRTP_AEAD_AES_128_GCM`, the cheapest.
    AeadAes128Gcm = 7,
    /// `SRTP_AEAD_AES_256_GCM`.
    AeadAes256Gcm = 8,
    /// `SRTP_AES128_CM_HMAC_SHA1_80`, which all have.
    Aes128CmSha1 = 1,
}

impl Profile {
    /// All of them, the cheapest first.
    pub const ALL: [Profile; 3] = [Profile::AeadAes128Gcm, Profile::AeadAes256Gcm, Profile::Aes128CmSha1];

    /// The one of this number; none if it is not among them.
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| *profile as u16 == number)
    }

    /// Bytes that a packet of RTP is longer once it is sealed.
    pub fn overhead(self) -> usize {
        match self {
            Profile::AeadAes128Gcm | Profile::AeadAes256Gcm => 16,
            Profile::Aes128CmSha1 => 10,
        }
    }

    /// The same of RTCP, which says its number.
    pub fn control_overhead(self) -> usize {
        self.overhead() + INDEX_BYTES
    }

    fn key_bytes(self) -> usize {
        if self == Profile::AeadAes256Gcm { 32 } else { 16 }
    }

    fn salt_bytes(self) -> usize {
        if self == Profile::Aes128CmSha1 { 14 } else { 12 }
    }
}

/// Bytes of a packet of RTCP that are not encrypted: its header and the source.
const CONTROL_HEADER: usize = 8;
/// The number of a packet of RTCP, and whether it is encrypted.
const INDEX_BYTES: usize = 4;
/// That it is (RFC 3711, section 3.4).
const ENCRYPTED: u32 = 1 << 31;

/// Why a packet was not sealed, or not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no packet of RTP or RTCP, or too short to be a sealed one.
    #[error("no packet of SRTP")]
    Malformed,
    /// It was sealed without the key, or it was changed.
    #[error("not authentic")]
    Unauthentic,
    /// It was there before, or is too old to tell.
    #[error("it came before, or is too old to tell")]
    Replayed,
    /// It is of one source more than are kept. What to do: see [`limits::SOURCES_MAX`].
    #[error("too many sources")]
    TooManySources,
    /// The key has sealed as many packets as it may (RFC 3711, section 9.2): the peer has to join again.
    #[error("the key is used up: join again")]
    KeyUsedUp,
}
