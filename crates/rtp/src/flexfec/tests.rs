use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{PlainHeader, set_sequence};

const SOURCE: u32 = 0x0102_0304;

/// The identifier of the element that changes.
const CHANGES: u8 = 3;

/// A packet with two elements, of which the second one changes after it is covered.
fn packet(sequence: u16, timestamp: u32, marker: bool, payload: &[u8]) -> Vec<u8> {
    let header = PlainHeader { marker, payload_type: 100, sequence, timestamp, ssrc: SOURCE };
    let [one, two] = sequence.to_be_bytes();
    let elements = [0xbe, 0xde, 0, 2, 0x22, 0, 0x0f, 0xff, CHANGES << 4 | 1, one ^ 0x55, two ^ 0x55, 0];
    let mut packet = [&header.emit()[..], &elements, payload].concat();
    packet[0] |= 0x10;
    packet
}

/// The packet with zeros where the element that changes is.
fn as_covered(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[21..23].fill(0);
    packet
}

fn repair(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut parity = Parity::default();
    packets.iter().for_each(|packet| assert!(parity.cover(packet, Some(CHANGES))));
    let mut bytes = Vec::new();
    parity.write(&mut bytes);
    assert_eq!((bytes.len(), parity.packets() as usize), (parity.bytes(), packets.len()));
    bytes
}

#[test]
fn it_is_written_as_browsers_read_it() {
    let plain = |sequence, timestamp, payload: &[u8]| {
        let header = PlainHeader { marker: true, payload_type: 100, sequence, timestamp, ssrc: SOURCE };
        [&header.emit()[..], payload].concat()
    };
    let bytes = repair(&[plain(10, 7, &[1, 2, 3]), plain(12, 5, &[8]), plain(24, 5, &[])]);
    let expected = [
        &[0, 0x80 | 100, 0, 3 ^ 1, 0, 0, 0, 7, 1, 0, 0, 0, 1, 2, 3, 4, 0, 10][..],
        // The first, the third and the last of 15.
        &[0x80 | 0x50, 1, 1 ^ 8, 2, 3],
    ];
    assert_eq!(bytes, expected.concat());
    let mask = |last: u16| {
        repair(&[plain(65_530, 0, &[]), plain(65_530_u16.wrapping_add(last), 0, &[])])[18..].to_vec()
    };
    assert_eq!(mask(15), [0x40, 0, 0x80 | 0x40, 0, 0, 0]);
    assert_eq!(mask(45), [0x40, 0, 0x80, 0, 0, 1]);
    assert_eq!(mask(46), [0x40, 0, 0, 0, 0, 0, 0x80 | 0x40, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(mask(108)[6..], [0x80, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn what_cannot_be_covered_is_not() {
    let mut parity = Parity::default();
    assert!(!parity.cover(&[0x80, 0], None), "no packet");
    assert!(parity.cover(&packet(65_535, 0, true, &[1]), None));
    for sequence in [65_535, 65_534, 108] {
        assert!(!parity.cover(&packet(sequence, 0, true, &[1]), None), "{sequence}");
    }
    let mut other = packet(0, 0, true, &[1]);
    crate::set_ssrc(&mut other, 9);
    assert!(!parity.cover(&other, None), "of another source");
    assert!(parity.cover(&packet(107, 0, true, &[1]), None));
    parity.clear();
    assert!(parity.cover(&other, None), "it begins again");
}

#[test]
fn what_is_no_repair_packet_is_refused() {
    let good = repair(&[packet(10, 7, false, &[1, 2, 3]), packet(60, 7, false, &[1])]);
    assert!(Repair::new_checked(&good).is_ok());
    for length in 0..FIXED + 14 {
        assert!(Repair::new_checked(&good[..length]).is_err(), "{length}");
    }
    for (at, byte, reason) in [
        (0, 0x40, "not of the form with a mask"),
        (0, 0x80, "not of the form with a mask"),
        (8, 2, "not of one source"),
        (24, 0, "the mask does not end"),
    ] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert_eq!(Repair::new_checked(&bad).expect_err(reason).reason, reason);
    }
    let mut empty = good;
    empty[18..20].copy_from_slice(&[0x80, 0]);
    assert_eq!(Repair::new_checked(&empty).expect_err("empty").reason, "of no packet");
}

#[test]
fn nothing_comes_of_two_that_are_lost_or_of_packets_of_others() {
    let all = [10, 11, 12].map(|sequence| packet(sequence, 7, false, &[sequence as u8; 5]));
    let bytes = repair(&all);
    let repair = Repair::new_checked(&bytes).expect("its own");
    let came = |number: u16| all.get(usize::from(number) - 10).map(Vec::as_slice);
    assert_eq!(repair.recover(Some(CHANGES), came), None, "nothing is lost");
    assert_eq!(repair.recover(Some(CHANGES), |number| came(number).filter(|_| number == 11)), None);
    let mut other = all[0].clone();
    crate::set_ssrc(&mut other, 9);
    let others = |number| if number == 11 { None } else { Some(other.as_slice()) };
    assert_eq!(repair.recover(Some(CHANGES), others), None);
    // Longer than all that is there.
    let mut wrong = bytes.clone();
    wrong[2] ^= 0xff;
    let wrong = Repair::new_checked(&wrong).expect("its header is whole");
    assert_eq!(wrong.recover(Some(CHANGES), |number| came(number).filter(|_| number != 11)), None);
}

proptest! {
    /// With its header, its extension and its payload, whichever numbers are covered.
    #[test]
    fn any_one_packet_that_is_lost_comes_back_byte_for_byte(
        first in any::<u16>(),
        distances in proptest::collection::btree_set(1..SPAN, 0..20),
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 21),
        fields in proptest::collection::vec((any::<u32>(), any::<bool>()), 21),
        lost in any::<prop::sample::Index>(),
    ) {
        let numbers = core::iter::once(0).chain(distances).map(|far| first.wrapping_add(far));
        let numbers: Vec<u16> = numbers.collect();
        let all = numbers.iter().zip(&payloads).zip(&fields);
        let all = all.map(|((number, payload), (at, marker))| packet(*number, *at, *marker, payload));
        let all: Vec<Vec<u8>> = all.collect();
        let bytes = repair(&all);
        let repair = Repair::new_checked(&bytes).expect("its own");
        prop_assert_eq!(repair.numbers().collect::<Vec<_>>(), numbers.clone());
        prop_assert_eq!(repair.source(), SOURCE);
        let lost = lost.index(all.len());
        // What came has changed on its way out.
        let mut came: BTreeMap<u16, Vec<u8>> = numbers.iter().copied().zip(all.iter().cloned()).collect();
        came.values_mut().for_each(|packet| packet[21] ^= 0xaa);
        came.remove(&numbers[lost]);
        let recovered = repair.recover(Some(CHANGES), |number| came.get(&number).map(Vec::as_slice));
        prop_assert_eq!(recovered, Some(as_covered(&all[lost])));
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(repair) = Repair::new_checked(&bytes) {
            let mut other = packet(0, 1, true, &[2; 30]);
            set_sequence(&mut other, 9);
            let _lost = repair.recover(None, |number| (number % 2 == 0).then_some(other.as_slice()));
        }
    }
}
