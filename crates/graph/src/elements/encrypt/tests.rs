use bytes::Bytes;

use super::super::testing::{Run, Source, numbers, settings, video, word};
use super::*;

/// What libsrtp is tested with (`test/srtp_driver.c`): key and salt, and a packet.
const KEY_AND_SALT: &str = "4fl6DT4Bi+DWT6MsBt5BOQ7Gda1Jiv7rtpYLOqvm";
const GCM_KEY_AND_SALT: &str = "AAECAwQFBgcICQoLDA0OD6ChoqOkpaanqKmqqw==";
const PLAIN: &str = "800f1234decafbadcafebabeabababababababababababababababab";

fn hex(text: &str) -> Bytes {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn run(suite: &str, key: &str) -> Run {
    Run::new(&KIND, &settings([("suite", word(suite)), ("key", word(key))]), &video(1))
}

#[test]
fn packets_are_those_of_the_reference_implementation() {
    for (suite, key, expected) in [
        (
            "AES_CM_128_HMAC_SHA1_80",
            KEY_AND_SALT,
            "800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb",
        ),
        (
            "AES_CM_128_HMAC_SHA1_32",
            KEY_AND_SALT,
            "800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc",
        ),
        (
            "AEAD_AES_128_GCM",
            GCM_KEY_AND_SALT,
            "800f1234decafbadcafebabec5002ede04cfdd2eb91159e0880aa06ed2976826f796b201df3131a127e8a392",
        ),
    ] {
        let mut item = Source::new(0).frames("D").remove(0);
        item.packet.bytes = hex(PLAIN);
        let out = run(suite, key).give(vec![item]);
        assert_eq!(out[0].packet.bytes, hex(expected), "{suite}");
    }
}

#[test]
fn the_description_says_that_it_is_encrypted() {
    let Format::Rtp(tracks) = run("AES_CM_128_HMAC_SHA1_80", KEY_AND_SALT).format else { panic!() };
    assert_eq!((&tracks[0].codec, tracks[0].payload_type), (&Codec::Srtp { video: true }, 96));
    let again = Format::Rtp(tracks);
    let error = Run::refusal(&KIND, &settings([("key", word(KEY_AND_SALT))]), &again);
    assert!(error.contains("not encrypted yet"), "{error}");
}

#[test]
fn numbers_are_final_and_gaps_before_it_are_closed() {
    let mut run = run("AES_CM_128_HMAC_SHA1_80", KEY_AND_SALT);
    let mut source = Source::new(0);
    let mut items = source.frames("DD");
    items.remove(1);
    let mut out = run.give(items);
    assert_eq!(numbers(&out), [100, 101, 102]);
    let mut exit = Numbering::default();
    out.remove(1);
    out.iter_mut().for_each(|item| exit.number(item));
    assert_eq!(numbers(&out), [100, 102], "it is signed");
}

#[test]
fn no_number_is_used_twice() {
    let mut run = run("AES_CM_128_HMAC_SHA1_80", KEY_AND_SALT);
    let mut source = Source::new(0);
    let items = source.frames("D");
    run.give(items.clone());
    let mut next = run.replace(&KIND, &settings([("key", word(KEY_AND_SALT))]), &video(1));
    let again: Vec<Item> = items.iter().map(Item::once_more).collect();
    assert!(next.give(again).is_empty());
    assert_eq!(next.dropped(DropReason::Duplicate), 2);
}

#[test]
fn a_source_that_restarts_goes_on_with_new_numbers() {
    let mut run = run("AES_CM_128_HMAC_SHA1_80", KEY_AND_SALT);
    let mut source = Source::new(0);
    source.sequence = 20_000;
    run.give(source.frames("D"));
    let mut restarted = Source::new(0);
    restarted.sequence = 5_000;
    let mut items = restarted.frames(&"D".repeat(10));
    items.iter_mut().for_each(Item::keep_number);
    let out = run.give(items);
    assert_eq!(numbers(&out), [20_002, 20_003, 20_004, 20_005, 20_006]);
    assert_eq!(run.dropped(DropReason::Late), 15);
}

/// The same element in another process.
fn elsewhere(run: &Run) -> Run {
    let saved = run.element.save().expect("it is said");
    let mut next = super::tests::run("AES_CM_128_HMAC_SHA1_80", KEY_AND_SALT);
    next.element.restore(&saved, Replay::After);
    next
}

#[test]
fn another_process_goes_on_with_the_same_numbers_and_uses_none_twice() {
    let (mut source, mut other) = (Source::new(0), Source::new(0));
    let [mut one, mut moved] = [(); 2].map(|()| run("AES_CM_128_HMAC_SHA1_80", KEY_AND_SALT));
    for round in 0..9 {
        // Numbers begin again at every third.
        for source in [&mut source, &mut other] {
            source.sequence = source.sequence.wrapping_add(20_000);
        }
        let (expected, out) = (one.give(source.frames("DD")), moved.give(other.frames("DD")));
        assert_eq!(expected.len(), 4);
        let bytes = |out: &[Item]| out.iter().map(Item::whole).collect::<Vec<_>>();
        assert_eq!(bytes(&expected), bytes(&out), "{round}");
        moved = elsewhere(&moved);
    }
    // What had its number there has none here.
    let mut late = Source::new(0);
    late.sequence = other.sequence.wrapping_sub(4);
    assert!(moved.give(late.frames("D").iter().map(Item::once_more).collect()).is_empty());
}
