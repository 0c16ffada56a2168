use proptest::prelude::*;

use super::super::encrypt;
use super::super::testing::{BODY, Run, Source, numbers, settings, video, word};
use super::*;

const KEY_TEXT: &str = "4fl6DT4Bi+DWT6MsBt5BOQ7Gda1Jiv7rtpYLOqvm";

fn options() -> Settings {
    settings([("key", word(KEY_TEXT))])
}

/// Suites, and the bytes of their keys and salts.
const SUITES: [(&str, usize); 4] = [
    ("AES_CM_128_HMAC_SHA1_32", 30),
    ("AES_256_CM_HMAC_SHA1_80", 46),
    ("AEAD_AES_128_GCM", 28),
    ("AEAD_AES_256_GCM", 44),
];

/// Both ends.
fn ends() -> (Run, Run) {
    let encrypt = Run::new(&encrypt::KIND, &options(), &video(1));
    let decrypt = Run::new(&KIND, &options(), &encrypt.format);
    (encrypt, decrypt)
}

fn h264() -> Format {
    let codec = Codec::H264 { sps: None, pps: None };
    Format::Rtp(vec![Track { codec, payload_type: 96, encoding: "H264".to_owned(), ..Track::mp2t() }])
}

#[test]
fn what_was_encrypted_comes_out_as_it_was() {
    let (mut encrypt, mut decrypt) = ends();
    let items = Source::new(0).frames("DDD");
    let plain: Vec<_> = items.iter().map(Item::whole).collect();
    let secret = encrypt.give(items);
    assert!(secret.iter().zip(&plain).all(|(item, plain)| item.packet.bytes[12..100] != plain[12..]));
    let out = decrypt.give(secret);
    assert_eq!(out.iter().map(Item::whole).collect::<Vec<_>>(), plain);
}

#[test]
fn padding_is_encrypted_with_the_rest() {
    let (mut encrypt, mut decrypt) = ends();
    let mut source = Source::new(0);
    // Some of these end in a byte that would be no padding.
    for _ in 0..20 {
        let mut item = source.frames("D").remove(0);
        let mut padded = item.packet.bytes.to_vec();
        padded[0] |= 0x20;
        *padded.last_mut().unwrap() = 4;
        item.packet.bytes = padded.clone().into();
        let out = decrypt.give(encrypt.give(vec![item]));
        assert_eq!((out[0].packet.bytes[0], &out[0].packet.bytes[4..]), (0xa0, &padded[4..]));
    }
}

#[test]
fn codecs_are_what_the_description_says_and_packets_are_understood_again() {
    let encrypt = Run::new(&encrypt::KIND, &options(), &h264());
    let mut decrypt = Run::new(&KIND, &options(), &encrypt.format);
    assert_eq!(decrypt.format, h264());
    let mut encrypt = encrypt;
    let mut item = Source::new(0).frames("D").remove(0);
    // A slice of an IDR picture: nal_unit_type 5, first_mb_in_slice 0, slice_type 7.
    item.packet.bytes = [&item.packet.bytes[..12], &[0x65, 0x88, 0x80, 0x10]].concat().into();
    let out = decrypt.give(encrypt.give(vec![item]));
    assert_eq!((out[0].packet.tag.kind, out[0].packet.tag.key), (outflow_media::Kind::Intra, true));
}

#[test]
fn what_was_changed_or_made_without_the_key_is_counted() {
    let (mut encrypt, mut decrypt) = ends();
    let mut source = Source::new(0);
    let mut items = encrypt.give(source.frames("D"));
    items.extend(source.frames("D"));
    let mut changed = items[1].packet.bytes.to_vec();
    changed[20] ^= 1;
    items[1].packet.bytes = changed.into();
    assert_eq!(numbers(&decrypt.give(items)), [100]);
    assert_eq!(decrypt.dropped(DropReason::Unauthentic), 3);
    let short = Item::empty();
    assert!(decrypt.give(vec![short]).is_empty());
    assert_eq!(decrypt.dropped(DropReason::Malformed), 1);
}

#[test]
fn what_was_recorded_is_not_taken_again_even_by_the_next_one() {
    let (mut encrypt, mut decrypt) = ends();
    let items = encrypt.give(Source::new(0).frames("D"));
    assert_eq!(decrypt.give(items.clone()).len(), 2);
    assert_eq!(decrypt.give(items.clone()).len(), 0);
    assert_eq!(decrypt.dropped(DropReason::Duplicate), 2);
    let mut next = decrypt.replace(&KIND, &options(), &encrypt.format);
    assert_eq!(next.give(items).len(), 0);
    assert_eq!(next.dropped(DropReason::Duplicate), 2);
}

#[test]
fn numbers_wrap_and_the_next_ones_go_on() {
    let (mut encrypt, mut decrypt) = ends();
    let mut source = Source::new(0);
    source.sequence = 65_533;
    let first = encrypt.give(source.frames("DD"));
    assert_eq!(numbers(&decrypt.give(first)), [65_533, 65_534, 65_535, 0]);
    let mut encrypt = encrypt.replace(&encrypt::KIND, &options(), &video(1));
    let mut decrypt = decrypt.replace(&KIND, &options(), &encrypt.format);
    let second = encrypt.give(source.frames("D"));
    assert_eq!(numbers(&decrypt.give(second)), [1, 2]);
}

#[test]
fn one_that_joins_late_finds_out_how_often_numbers_began_again() {
    let (mut encrypt, mut decrypt) = ends();
    let mut source = Source::new(0);
    source.sequence = 65_000;
    // Fifteen rounds, of which few packets are needed.
    for _ in 0..15 * 4 {
        encrypt.give(source.frames("D"));
        source.sequence = source.sequence.wrapping_add(16_382);
    }
    let items = encrypt.give(source.frames("DDD"));
    let out = decrypt.give(items);
    assert_eq!((out.len(), decrypt.dropped(DropReason::Unauthentic)), (5, 1));
    assert_eq!(out[0].len(), 12 + BODY);
}

#[test]
fn a_restarted_source_counts_from_zero_again() {
    let (mut encrypt, mut decrypt) = ends();
    let mut source = Source::new(0);
    source.sequence = 65_535;
    assert_eq!(decrypt.give(encrypt.give(source.frames("D"))).len(), 2);
    let mut restarted = Run::new(&encrypt::KIND, &options(), &video(1));
    decrypt.element.message(Time::ZERO, Message::Break);
    assert_eq!(decrypt.give(restarted.give(source.frames("D"))).len(), 2);
}

#[test]
fn sources_that_were_never_authentic_make_room_first() {
    let (mut encrypt, mut decrypt) = ends();
    let mut source = Source::new(0);
    assert_eq!(decrypt.give(encrypt.give(source.frames("D"))).len(), 2);
    for ssrc in 0..2 * FLOWS_MAX as u32 {
        let mut forged = source.frames("D").remove(0);
        outflow_rtp::set_ssrc(forged.header_mut().unwrap(), ssrc);
        assert!(decrypt.give(vec![forged]).is_empty());
    }
    let items = encrypt.give(source.frames("D"));
    assert_eq!(decrypt.give(items.clone()).len(), 2);
    assert!(decrypt.give(items).is_empty(), "it was not forgotten");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn loss_and_reordering_cost_only_what_was_lost(
        start in 1_u16..=u16::MAX,
        lost in proptest::collection::vec(proptest::bool::weighted(0.2), 400),
        swaps in proptest::collection::vec((0_usize..400, 1_usize..20), 40),
        suite in proptest::sample::select(SUITES.to_vec()),
    ) {
        use base64::Engine as _;
        let key = base64::engine::general_purpose::STANDARD.encode(vec![7; suite.1]);
        let options = settings([("suite", word(suite.0)), ("key", word(&key))]);
        let mut encrypt = Run::new(&encrypt::KIND, &options, &video(1));
        let mut decrypt = Run::new(&KIND, &options, &encrypt.format);
        let mut source = Source::new(0);
        source.sequence = start;
        let mut items = encrypt.give(source.frames(&"D".repeat(200)));
        for (at, by) in swaps {
            let to = (at + by).min(items.len() - 1);
            items.swap(at, to);
        }
        let mut left = lost.iter();
        // The first of all is not among those that come late: before it nothing is known.
        items.retain(|item| numbers([item]) == [start] || !left.next().unwrap_or(&false));
        items.sort_by_key(|item| numbers([item]) != [start]);
        let expected = numbers(&items);
        prop_assert_eq!(numbers(&decrypt.give(items)), expected);
        prop_assert_eq!(decrypt.tally.drops.total(), 0);
    }
}
