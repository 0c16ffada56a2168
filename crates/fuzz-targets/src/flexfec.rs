//! Repair packets: those of anybody, and what comes back by our own.

use std::collections::BTreeMap;

use outflow_rtp::RtpHeader;
use outflow_rtp::flexfec::{Parity, Repair, SPAN};

use crate::packets::packets;

/// A byte says which element of header extensions is not covered, if one is. Then come packets, each read as a repair packet
/// for those in front of it, and covered by one.
pub(crate) fn flexfec(data: &[u8]) {
    let Some((id, data)) = data.split_first() else { return };
    let changes = (*id > 0).then_some(*id);
    let (mut parity, mut covered) = (Parity::default(), BTreeMap::<u16, &[u8]>::new());
    for packet in packets(data) {
        if let Ok(repair) = Repair::new_checked(packet) {
            assert!((1..=usize::from(SPAN)).contains(&repair.numbers().count()));
            let recovered = repair.recover(changes, |number| covered.get(&number).copied());
            if let Some(recovered) = recovered {
                let header = RtpHeader::new_checked(&recovered).expect("it was checked");
                assert_eq!(header.ssrc(), repair.source());
                assert!(repair.numbers().any(|number| number == header.sequence()));
            }
        }
        if parity.cover(packet, changes) {
            let sequence = RtpHeader::new_checked(packet).expect("it is covered").sequence();
            assert!(covered.insert(sequence, packet).is_none(), "no number is covered twice");
        }
    }
    assert_eq!(parity.packets() as usize, covered.len());
    let mut bytes = Vec::new();
    parity.write(&mut bytes);
    assert_eq!(bytes.len(), parity.bytes());
    if covered.is_empty() {
        assert!(Repair::new_checked(&bytes).is_err());
        return;
    }
    let repair = Repair::new_checked(&bytes).expect("its own");
    for (lost, packet) in &covered {
        let came = |number| covered.get(&number).copied().filter(|_| number != *lost);
        assert_eq!(repair.recover(changes, came), Some(without(packet, changes)));
    }
}

/// The packet with zeros where the first element of this identifier is.
fn without(packet: &[u8], changes: Option<u8>) -> Vec<u8> {
    let mut expected = packet.to_vec();
    let header = RtpHeader::new_checked(packet).expect("it is covered");
    if let Some(data) = changes.and_then(|id| header.extension(id)) {
        let at = data.as_ptr() as usize - packet.as_ptr() as usize;
        expected[at..at + data.len()].fill(0);
    }
    expected
}
