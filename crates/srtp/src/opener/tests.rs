//! Both ends, and another implementation at either end.

use libsrtp::{MasterKey, ProtectionProfile, RecvSession, SendSession, StreamConfig};
use proptest::prelude::*;

use super::*;
use crate::Sealer;
use crate::derive::tests::hex;
use crate::limits::WINDOW;

const KEY: [u8; 32] = *b"the key, which may be longer....";
const SALT: [u8; 14] = *b"salt, longer..";
const SSRC: u32 = 0xcafe_babe;

fn master(profile: Profile) -> Master {
    Master::new(profile, &KEY[..profile.key_bytes()], &SALT[..profile.salt_bytes()]).expect("their lengths")
}

fn ends(profile: Profile) -> (Sealer, Opener) {
    (Sealer::new(profile, &master(profile)), Opener::new(profile, &master(profile)))
}

/// The same key for the other implementation.
fn config(profile: Profile) -> StreamConfig {
    let theirs = match profile {
        Profile::AeadAes128Gcm => ProtectionProfile::AeadAes128Gcm,
        Profile::AeadAes256Gcm => ProtectionProfile::AeadAes256Gcm,
        Profile::Aes128CmSha1 => ProtectionProfile::Aes128CmHmacSha180,
    };
    let key = MasterKey::new(&KEY[..profile.key_bytes()], &SALT[..profile.salt_bytes()], &None);
    StreamConfig::new(vec![key], &theirs, &theirs)
}

/// A packet with an extension and two contributing sources.
fn rtp(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x92, 96, 0, 0, 0, 0, 0, 9];
    packet[2..4].copy_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&SSRC.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2, 0xbe, 0xde, 0, 1, 0x10, 7, 0, 0]);
    packet.extend_from_slice(payload);
    packet
}

fn rtcp(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, 201, 0, 1];
    packet.extend_from_slice(&SSRC.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

fn opened(opener: &mut Opener, sealed: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut packet = sealed.to_vec();
    let length = opener.open(&mut packet)?;
    packet.truncate(length);
    Ok(packet)
}

fn control_opened(opener: &mut Opener, sealed: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut packet = sealed.to_vec();
    let length = opener.open_control(&mut packet)?;
    packet.truncate(length);
    Ok(packet)
}

#[test]
fn what_is_sealed_here_is_opened_elsewhere() {
    for profile in Profile::ALL {
        let mut theirs = RecvSession::new();
        theirs.add_stream(Some(SSRC), &config(profile)).expect("a stream");
        let (mut sealer, _) = ends(profile);
        for sequence in 65_530..65_540_u32 {
            let plain = rtp(sequence as u16, b"a payload");
            let mut packet = plain.clone();
            sealer.seal(&mut packet, 0, sequence >> 16).expect("RTP");
            assert_eq!(packet.len(), plain.len() + profile.overhead());
            assert_eq!(theirs.rtp_unprotect(packet), Ok(plain), "{profile:?} {sequence}");
            let plain = rtcp(&[sequence as u8; 20]);
            let mut packet = plain.clone();
            sealer.seal_control(&mut packet).expect("RTCP");
            assert_eq!(packet.len(), plain.len() + profile.control_overhead());
            assert_eq!(theirs.rtcp_unprotect(packet), Ok(plain), "{profile:?} {sequence}");
        }
    }
}

#[test]
fn what_is_sealed_elsewhere_is_opened_here() {
    for profile in Profile::ALL {
        let mut theirs = SendSession::new();
        theirs.add_stream(Some(SSRC), &config(profile)).expect("a stream");
        let (_, mut opener) = ends(profile);
        for sequence in 65_530..65_540_u32 {
            let plain = rtp(sequence as u16, &[sequence as u8; 1200]);
            let sealed = theirs.rtp_protect(plain.clone()).expect("RTP");
            assert_eq!(opened(&mut opener, &sealed), Ok(plain), "{profile:?} {sequence}");
            let plain = rtcp(b"what a receiver says");
            let sealed = theirs.rtcp_protect(plain.clone()).expect("RTCP");
            assert_eq!(control_opened(&mut opener, &sealed), Ok(plain), "{profile:?} {sequence}");
        }
    }
}

/// RFC 7714, sections 16.1.1 and 16.2.1: what AES-GCM makes of a packet by a session key.
#[test]
fn packets_are_sealed_as_in_the_rfc() {
    let key: [u8; 32] = core::array::from_fn(|index| index as u8);
    let head = hex("8040f17b 8041f8d3 5501a0b2");
    let plain = [&head[..], b"Gallia est omnis divisa in partes tres"].concat();
    let place = Place { ssrc: 0x5501_a0b2, index: 0xf17b };
    for (algorithm, bytes, expected) in [
        (
            &ring::aead::AES_128_GCM,
            16,
            "f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b 36de3adf 8833 \
             899d7f27 beb16a91 52cf765e e4390cce",
        ),
        (
            &ring::aead::AES_256_GCM,
            32,
            "32b1de78 a822fe12 ef9f78fa 332e33aa b1801238 9a58e2f3 b50b2a02 76ffae0f 1ba63799 b87b \
             7aa3db36 dfffd6b0 f9bb7878 d7a76c13",
        ),
    ] {
        let unbound = ring::aead::UnboundKey::new(algorithm, &key[..bytes]).expect("a key");
        let salt = *hex("51756964 2070726f 2071756f").first_chunk().expect("twelve bytes");
        let cipher = Cipher::Gcm { key: ring::aead::LessSafeKey::new(unbound), salt };
        let mut packet = plain.clone();
        cipher.seal(&mut packet, (0, head.len()), place);
        assert_eq!(packet, [head.clone(), hex(expected)].concat(), "{bytes}");
        assert_eq!(cipher.open(&mut packet, head.len(), place), Ok(plain.len()));
        assert_eq!(packet[..plain.len()], plain);
    }
}

#[test]
fn what_was_changed_cut_or_comes_again_is_refused() {
    for profile in Profile::ALL {
        let (mut sealer, mut opener) = ends(profile);
        let mut packet = rtp(7, b"a payload");
        sealer.seal(&mut packet, 0, 0).expect("RTP");
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x20;
            assert!(opened(&mut opener, &changed).is_err(), "{profile:?}: byte {at}");
            assert!(opened(&mut opener, &packet[..at]).is_err(), "{profile:?}: {at} bytes");
        }
        assert!(opened(&mut opener, &packet).is_ok());
        assert_eq!(opened(&mut opener, &packet), Err(Refused::Replayed));
        let mut packet = rtcp(b"what a receiver says");
        sealer.seal_control(&mut packet).expect("RTCP");
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x20;
            // What kind of RTCP it is, and how long it says to be, is signed, too.
            assert!(control_opened(&mut opener, &changed).is_err(), "{profile:?}: byte {at}");
            assert!(control_opened(&mut opener, &packet[..at]).is_err(), "{profile:?}: {at} bytes");
        }
        assert!(control_opened(&mut opener, &packet).is_ok());
        assert_eq!(control_opened(&mut opener, &packet), Err(Refused::Replayed));
    }
}

#[test]
fn packets_out_of_order_and_losses_over_a_round_are_opened() {
    let (sealer, mut opener) = ends(Profile::AeadAes128Gcm);
    let mut came = |index: u64| {
        let mut packet = rtp(index as u16, b"x");
        sealer.seal(&mut packet, 0, (index >> 16) as u32).expect("RTP");
        opened(&mut opener, &packet).map(drop)
    };
    for index in [65_000, 65_400, 65_700, 65_300, 95_000, 127_000, 127_001 - WINDOW, 132_000, 131_900] {
        assert_eq!(came(index), Ok(()), "{index}");
    }
    for index in [132_000, 131_900, 132_000 - WINDOW] {
        assert_eq!(came(index), Err(Refused::Replayed), "{index}");
    }
}

#[test]
fn no_sources_are_kept_without_the_key_and_with_it_no_more_than_some() {
    let (sealer, mut opener) = ends(Profile::AeadAes128Gcm);
    let of = |ssrc: u32| {
        let mut packet = rtp(1, b"x");
        packet[8..12].copy_from_slice(&ssrc.to_be_bytes());
        packet
    };
    for ssrc in 0..100 {
        let mut packet = of(ssrc);
        packet.extend_from_slice(&[0; 16]);
        assert_eq!(opened(&mut opener, &packet), Err(Refused::Unauthentic));
    }
    assert!(opener.media_sources.0.is_empty());
    for ssrc in 0..=SOURCES_MAX as u32 {
        let mut packet = of(ssrc);
        sealer.seal(&mut packet, 0, 0).expect("RTP");
        let expected = if ssrc < SOURCES_MAX as u32 { None } else { Some(Refused::TooManySources) };
        assert_eq!(opened(&mut opener, &packet).err(), expected);
    }
}

#[test]
fn a_key_that_is_used_up_seals_no_more() {
    let (mut sealer, _) = ends(Profile::AeadAes128Gcm);
    sealer.use_up();
    let mut packet = rtcp(b"x");
    assert_eq!(sealer.seal_control(&mut packet), Ok(()));
    let mut packet = rtcp(b"x");
    assert_eq!(sealer.seal_control(&mut packet), Err(Refused::KeyUsedUp));
    assert_eq!(packet, rtcp(b"x"));
}

proptest! {
    #[test]
    fn whatever_comes_is_refused_without_a_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..100),
        version in any::<bool>(),
    ) {
        if version && let Some(first) = bytes.first_mut() {
            *first = *first & 0x3f | 0x80;
        }
        for profile in Profile::ALL {
            let (_, mut opener) = ends(profile);
            prop_assert!(opened(&mut opener, &bytes).is_err());
            prop_assert!(control_opened(&mut opener, &bytes).is_err());
        }
    }

    #[test]
    fn numbers_are_taken_for_the_nearest(newest in 0_u64..1 << 40, ahead in -32_767_i64..32_768) {
        let meant = newest.checked_add_signed(ahead);
        let sequence = newest.wrapping_add_signed(ahead) as u16;
        prop_assert_eq!(index(Some(newest), sequence), meant);
    }
}
