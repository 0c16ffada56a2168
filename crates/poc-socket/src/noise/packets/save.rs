//! Keys are handed over to the process that goes on with a connection: packets are sealed and opened as before.

use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};
use outflow_poc::protection::Protection;
use outflow_poc::save::SavedBytes;

use super::{Key, PACKETS_MAX, Packets, epoch};
use crate::noise::KEY_BYTES;

/// What is saved of the packets of a connection. It is secret. Numbers of fields are never given to something else.
#[derive(Encode, Decode)]
#[cbor(map)]
struct SavedKeys {
    /// The key to send with.
    #[cbor(n(0), with = "minicbor::bytes")]
    sending: [u8; KEY_BYTES],
    #[n(1)]
    sending_epoch: u64,
    /// The number that is to be sealed next, or a higher one.
    #[n(2)]
    unsealed: u64,
    /// The key to receive with.
    #[cbor(n(3), with = "minicbor::bytes")]
    receiving: [u8; KEY_BYTES],
    #[n(4)]
    receiving_epoch: u64,
    /// The key before that one.
    #[n(5)]
    earlier: Option<ByteArray<KEY_BYTES>>,
    #[n(6)]
    forgeries: u64,
}

pub(super) fn save(packets: &Packets) -> SavedBytes {
    let saved = SavedKeys {
        sending: packets.sending.bytes,
        sending_epoch: packets.sending.epoch,
        unsealed: packets.unsealed,
        receiving: packets.receiving.bytes,
        receiving_epoch: packets.receiving.epoch,
        earlier: packets.earlier.as_ref().map(|earlier| earlier.bytes.into()),
        forgeries: packets.forgeries,
    };
    let bytes = minicbor::to_vec(saved).expect("memory takes all that is written to it");
    SavedBytes(bytes.into())
}

/// The protection of a connection, made of what it has saved ([`SavedConnection::keys`]); none if that was of another
/// kind.
///
/// [`SavedConnection::keys`]: outflow_poc::save::SavedConnection::keys
pub fn restore(saved: &SavedBytes) -> Option<Box<dyn Protection>> {
    let saved: SavedKeys = minicbor::decode(&saved.0).ok()?;
    let last = epoch(PACKETS_MAX);
    if saved.sending_epoch > last || saved.receiving_epoch > last || saved.unsealed > PACKETS_MAX {
        return None;
    }
    let receiving = Key::new(&saved.receiving, saved.receiving_epoch);
    let before = saved.receiving_epoch.checked_sub(1);
    Some(Box::new(Packets {
        sending: Key::new(&saved.sending, saved.sending_epoch),
        unsealed: saved.unsealed,
        next: receiving.behind(),
        receiving,
        earlier: saved.earlier.zip(before).map(|(bytes, epoch)| Key::new(&bytes, epoch)),
        forgeries: saved.forgeries,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::super::KEY_BYTES;
    use super::*;
    use crate::limits::KEY_PACKETS;

    const HEAD: usize = 4;

    fn sealed(sender: &mut dyn Protection, number: u64) -> Vec<u8> {
        let mut datagram = b"headframes of a packet".to_vec();
        sender.seal(number, &mut datagram, HEAD).expect("not spent");
        datagram
    }

    fn again(packets: &dyn Protection) -> Box<dyn Protection> {
        restore(&packets.save()).expect("it was just saved")
    }

    #[test]
    fn what_was_saved_seals_the_same_and_opens_the_same() {
        let mut sender: Box<dyn Protection> = Box::new(Packets::new(&[1; KEY_BYTES], &[2; KEY_BYTES]));
        let mut receiver: Box<dyn Protection> = Box::new(Packets::new(&[2; KEY_BYTES], &[1; KEY_BYTES]));
        let late = sealed(&mut *sender, 7);
        for number in [8, KEY_PACKETS - 1, KEY_PACKETS, KEY_PACKETS + 5, 2 * KEY_PACKETS, 2 * KEY_PACKETS + 1]
        {
            (sender, receiver) = (again(&*sender), again(&*receiver));
            let packet = sealed(&mut *sender, number);
            assert_eq!(
                receiver.open(number, &mut packet.clone(), HEAD),
                Some(packet.len() - sender.overhead())
            );
            assert!(
                again(&*sender).seal(number, &mut packet.clone(), HEAD).is_err(),
                "no number is used twice"
            );
            if number == KEY_PACKETS {
                assert!(again(&*receiver).open(7, &mut late.clone(), HEAD).is_some(), "by the key before");
            }
        }
        assert_eq!(receiver.open(7, &mut late.clone(), HEAD), None, "that key is forgotten");
        assert_eq!(again(&*sender).is_spent(), sender.is_spent());
    }

    #[test]
    fn what_is_not_of_this_kind_is_none() {
        assert!(restore(&SavedBytes::default()).is_none());
        let saved = Packets::new(&[1; KEY_BYTES], &[2; KEY_BYTES]).save();
        assert!(restore(&SavedBytes(saved.0.slice(..saved.0.len() - 1))).is_none());
        assert!(!format!("{saved:?}").contains("1, 1"));
    }
}
