//! Packets, sealed and opened in place, by keys that change.

mod save;

use core::fmt;

use outflow_poc::protection::{Protection, Spent};
use outflow_poc::save::SavedBytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::KEY_BYTES;
use crate::limits::{FORGERIES_MAX, KEY_PACKETS, LAST_PACKETS, PACKETS_MAX};

pub use self::save::restore;

/// Bytes of the tag behind each packet, and of what a handshake's message ends with.
pub(super) const TAG_BYTES: usize = 16;

/// The packets of a connection, of both directions.
pub(super) struct Packets {
    sending: Key,
    /// The number that is to be sealed next, or a higher one.
    unsealed: u64,
    receiving: Key,
    /// The key before: for packets that come late.
    earlier: Option<Key>,
    /// The key behind: for the first packet of it.
    next: Key,
    forgeries: u64,
}

impl Packets {
    /// From what a handshake has split into: the key to send with, and the one to receive with.
    pub(super) fn new(sending: &[u8; KEY_BYTES], receiving: &[u8; KEY_BYTES]) -> Self {
        let (sending, receiving) = (Key::new(sending, 0), Key::new(receiving, 0));
        let next = receiving.behind();
        Packets { sending, unsealed: 0, receiving, earlier: None, next, forgeries: 0 }
    }

    fn key_of(&self, number: u64) -> Option<&LessSafeKey> {
        match epoch(number) {
            it if it == self.receiving.epoch => Some(&self.receiving.key),
            it if it == self.next.epoch => Some(&self.next.key),
            it if it + 1 == self.receiving.epoch => self.earlier.as_ref().map(|earlier| &earlier.key),
            _ => None,
        }
    }

    fn step(&mut self) {
        let behind = self.next.behind();
        let receiving = core::mem::replace(&mut self.receiving, core::mem::replace(&mut self.next, behind));
        self.earlier = Some(receiving);
    }
}

impl Protection for Packets {
    fn overhead(&self) -> usize {
        TAG_BYTES
    }

    fn seal(&mut self, number: u64, datagram: &mut Vec<u8>, head: usize) -> Result<(), Spent> {
        // A number used twice would give away the key that authenticates: better no packet at all.
        if number < self.unsealed || number >= PACKETS_MAX || epoch(number) > self.sending.epoch + 1 {
            return Err(Spent);
        }
        let (clear, frames) = datagram.split_at_mut_checked(head).ok_or(Spent)?;
        if self.sending.epoch < epoch(number) {
            self.sending = self.sending.behind();
        }
        let nonce = nonce(number);
        let tag = self.sending.key.seal_in_place_separate_tag(nonce, Aad::from(&*clear), frames);
        let tag = tag.map_err(|_| Spent)?;
        datagram.extend_from_slice(tag.as_ref());
        self.unsealed = number + 1;
        Ok(())
    }

    fn open(&mut self, number: u64, datagram: &mut [u8], head: usize) -> Option<usize> {
        if number >= PACKETS_MAX || self.forgeries >= FORGERIES_MAX {
            return None;
        }
        let (clear, sealed) = datagram.split_at_mut_checked(head)?;
        let opened = self.key_of(number)?.open_in_place(nonce(number), Aad::from(&*clear), sealed);
        let Ok(frames) = opened.map(|frames| frames.len()) else {
            self.forgeries += 1;
            return None;
        };
        if epoch(number) == self.next.epoch {
            self.step();
        }
        Some(head + frames)
    }

    fn is_spent(&self) -> bool {
        self.unsealed >= PACKETS_MAX - LAST_PACKETS || self.forgeries >= FORGERIES_MAX
    }

    fn save(&self) -> SavedBytes {
        save::save(self)
    }
}

impl fmt::Debug for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packets")
            .field("unsealed", &self.unsealed)
            .field("receiving", &self.receiving.epoch)
            .field("forgeries", &self.forgeries)
            .finish_non_exhaustive()
    }
}

/// A key, and what the one behind it is made of. There is no way back from that.
struct Key {
    epoch: u64,
    bytes: [u8; KEY_BYTES],
    key: LessSafeKey,
    behind: [u8; KEY_BYTES],
}

impl Key {
    fn new(bytes: &[u8; KEY_BYTES], epoch: u64) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, bytes).expect("keys of this cipher are of this length");
        let key = LessSafeKey::new(key);
        // REKEY of the Noise specification, section 4.2: no packet has this number.
        let mut behind = [0; KEY_BYTES];
        let _tag = key
            .seal_in_place_separate_tag(nonce(u64::MAX), Aad::empty(), &mut behind)
            .expect("32 bytes are not too many");
        Key { epoch, bytes: *bytes, key, behind }
    }

    fn behind(&self) -> Self {
        Key::new(&self.behind, self.epoch + 1)
    }
}

/// Which key, counted from 0, a packet is sealed by.
const fn epoch(number: u64) -> u64 {
    number / KEY_PACKETS
}

/// Section 12.4 of the Noise specification: 32 bits of zeros, the number big-endian.
fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests;
