//! The two ways to seal.

use core::fmt;

use aes::Aes128;
use aes::cipher::{KeyIvInit as _, StreamCipher as _};
use hmac::{Hmac, Mac as _};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha1::Sha1;

use crate::derive::{Label, Master};
use crate::{CONTROL_HEADER, Profile, Refused};

type Counter = ctr::Ctr128BE<Aes128>;

/// Bytes of the tag of HMAC-SHA1, 80 bits (RFC 3711, section 5.2).
const HMAC_TAG: usize = 10;

/// Which packet of which source something is: what makes the same bytes other ones each time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) ssrc: u32,
    /// 48 bits of RTP: how often sequence numbers have come round, and the number; 31 bits of RTCP.
    pub(crate) index: u64,
}

/// The session keys of one way, of RTP or of RTCP.
// One is for a peer, and both are of some hundred bytes.
#[expect(clippy::large_enum_variant, reason = "the larger one is the usual one")]
pub(crate) enum Cipher {
    Gcm { key: LessSafeKey, salt: [u8; 12] },
    CounterMode { key: [u8; 16], salt: [u8; 14], authentication: Hmac<Sha1> },
}

impl Cipher {
    pub(crate) fn new(profile: Profile, master: &Master, control: bool) -> Self {
        let labels = match control {
            false => (Label::Key, Label::Salt, Label::Authentication),
            true => (Label::ControlKey, Label::ControlSalt, Label::ControlAuthentication),
        };
        let (key, salt, authentication) = labels;
        let gcm = |algorithm, key: &[u8]| Cipher::Gcm {
            key: LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a key of its length")),
            salt: master.derive(salt),
        };
        match profile {
            Profile::AeadAes128Gcm => gcm(&AES_128_GCM, &master.derive::<16>(key)),
            Profile::AeadAes256Gcm => gcm(&AES_256_GCM, &master.derive::<32>(key)),
            Profile::Aes128CmSha1 => {
                let bytes = master.derive::<20>(authentication);
                let authentication = Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length");
                Cipher::CounterMode { key: master.derive(key), salt: master.derive(salt), authentication }
            }
        }
    }

    /// Reads at both ends of what a packet is sealed with.
    pub(crate) fn warm(&self) -> usize {
        match self {
            Cipher::Gcm { key, salt } => key.algorithm().key_len() ^ usize::from(salt[0]),
            Cipher::CounterMode { key, salt, .. } => usize::from(key[0] ^ salt[0]),
        }
    }

    /// Seals a packet of RTP, of which the header stays readable: it begins at the first of these places, and its payload
    /// at the second.
    pub(crate) fn seal(&self, out: &mut Vec<u8>, (start, payload): (usize, usize), place: Place) {
        match self {
            Cipher::Gcm { key, salt } => {
                let (head, payload) = out[start..].split_at_mut(payload - start);
                let nonce = gcm_nonce(salt, place);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(head), payload);
                out.extend_from_slice(tag.expect("a packet is not that long").as_ref());
            }
            Cipher::CounterMode { key, salt, authentication } => {
                Counter::new(key.into(), &counter(salt, place).into()).apply_keystream(&mut out[payload..]);
                let tag = signature(authentication, &[&out[start..], &rollover(place)]);
                out.extend_from_slice(&tag);
            }
        }
    }

    /// Opens a packet of RTP. Returns the bytes that are left; the others are not what they were.
    pub(crate) fn open(&self, packet: &mut [u8], header: usize, place: Place) -> Result<usize, Refused> {
        match self {
            Cipher::Gcm { key, salt } => {
                let (head, sealed) = packet.split_at_mut(header);
                let opened = key.open_in_place(gcm_nonce(salt, place), Aad::from(head), sealed);
                opened.map(|payload| header + payload.len()).map_err(|_| Refused::Unauthentic)
            }
            Cipher::CounterMode { key, salt, authentication } => {
                let end = packet.len().checked_sub(HMAC_TAG).filter(|end| *end >= header);
                let (body, tag) = packet.split_at_mut(end.ok_or(Refused::Malformed)?);
                verified(authentication, &[body, &rollover(place)], tag)?;
                Counter::new(key.into(), &counter(salt, place).into()).apply_keystream(&mut body[header..]);
                Ok(body.len())
            }
        }
    }

    /// Seals a packet of RTCP; `word` is its number, with what says that it is encrypted.
    pub(crate) fn seal_control(&self, packet: &mut Vec<u8>, word: [u8; 4], place: Place) {
        match self {
            Cipher::Gcm { key, salt } => {
                let (head, body) = packet.split_at_mut(CONTROL_HEADER);
                let aad = control_aad(head, word);
                let tag = key.seal_in_place_separate_tag(gcm_nonce(salt, place), Aad::from(aad), body);
                packet.extend_from_slice(tag.expect("a packet is not that long").as_ref());
                packet.extend_from_slice(&word);
            }
            Cipher::CounterMode { key, salt, authentication } => {
                let body = &mut packet[CONTROL_HEADER..];
                Counter::new(key.into(), &counter(salt, place).into()).apply_keystream(body);
                packet.extend_from_slice(&word);
                let tag = signature(authentication, &[packet]);
                packet.extend_from_slice(&tag);
            }
        }
    }

    /// The last bytes of a sealed packet of RTCP that say its number; none if it is too short.
    pub(crate) fn control_word(&self, packet: &[u8]) -> Option<[u8; 4]> {
        let behind = match self {
            Cipher::Gcm { .. } => 0,
            Cipher::CounterMode { .. } => HMAC_TAG,
        };
        let before = packet.len().checked_sub(behind + 4).filter(|at| *at >= CONTROL_HEADER)?;
        packet[before..].first_chunk().copied()
    }

    /// Opens a packet of RTCP. Returns the bytes that are left.
    pub(crate) fn open_control(
        &self,
        packet: &mut [u8],
        word: [u8; 4],
        place: Place,
    ) -> Result<usize, Refused> {
        let length = packet.len();
        match self {
            Cipher::Gcm { key, salt } => {
                let (head, sealed) = packet.split_at_mut(CONTROL_HEADER);
                let (sealed, _) = sealed.split_at_mut(length - CONTROL_HEADER - word.len());
                let aad = control_aad(head, word);
                let opened = key.open_in_place(gcm_nonce(salt, place), Aad::from(aad), sealed);
                opened.map(|body| CONTROL_HEADER + body.len()).map_err(|_| Refused::Unauthentic)
            }
            Cipher::CounterMode { key, salt, authentication } => {
                let (body, tag) = packet.split_at_mut(length - HMAC_TAG);
                verified(authentication, &[body], tag)?;
                let body = &mut body[CONTROL_HEADER..length - HMAC_TAG - word.len()];
                Counter::new(key.into(), &counter(salt, place).into()).apply_keystream(body);
                Ok(CONTROL_HEADER + body.len())
            }
        }
    }
}

/// RFC 7714, sections 8.1 and 9.1.
fn gcm_nonce(salt: &[u8; 12], place: Place) -> Nonce {
    let mut nonce = *salt;
    let ssrc = place.ssrc.to_be_bytes();
    let index = place.index.to_be_bytes();
    for (byte, other) in nonce[2..].iter_mut().zip(ssrc.iter().chain(&index[2..])) {
        *byte ^= other;
    }
    Nonce::assume_unique_for_key(nonce)
}

/// RFC 7714, section 9.2: the header, and the word at the end.
fn control_aad(head: &[u8], word: [u8; 4]) -> [u8; CONTROL_HEADER + 4] {
    let mut aad = [0; CONTROL_HEADER + 4];
    aad[..CONTROL_HEADER].copy_from_slice(head);
    aad[CONTROL_HEADER..].copy_from_slice(&word);
    aad
}

/// RFC 3711, section 4.1.1.
fn counter(salt: &[u8; 14], place: Place) -> [u8; 16] {
    let mut counter = [0; 16];
    counter[..14].copy_from_slice(salt);
    let ssrc = place.ssrc.to_be_bytes();
    let index = place.index.to_be_bytes();
    for (byte, other) in counter[4..14].iter_mut().zip(ssrc.iter().chain(&index[2..])) {
        *byte ^= other;
    }
    counter
}

/// What is signed behind a packet of RTP (RFC 3711, section 4.2).
fn rollover(place: Place) -> [u8; 4] {
    ((place.index >> 16) as u32).to_be_bytes()
}

fn signature(key: &Hmac<Sha1>, parts: &[&[u8]]) -> [u8; HMAC_TAG] {
    let mut mac = key.clone();
    parts.iter().for_each(|part| mac.update(part));
    let mut tag = [0; HMAC_TAG];
    tag.copy_from_slice(&mac.finalize().into_bytes()[..HMAC_TAG]);
    tag
}

fn verified(key: &Hmac<Sha1>, parts: &[&[u8]], tag: &[u8]) -> Result<(), Refused> {
    let mut mac = key.clone();
    parts.iter().for_each(|part| mac.update(part));
    mac.verify_truncated_left(tag).map_err(|_| Refused::Unauthentic)
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cipher::Gcm { .. } => "AES-GCM",
            Cipher::CounterMode { .. } => "AES-CM with HMAC-SHA1",
        })
    }
}
