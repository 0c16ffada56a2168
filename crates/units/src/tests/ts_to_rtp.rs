//! RTP into a transport stream, and out of it again.

use outflow_ts::{Coding, DATAGRAM_BYTES};

use super::*;
use crate::{FromTs, ToRtp};

const SPS: [u8; 4] = [0x67, 66, 0, 30];
const PPS: [u8; 3] = [0x68, 0xce, 0x38];

/// The datagrams of a transport stream, each with when it comes.
fn stream(pictures: usize) -> Vec<(Time, Bytes)> {
    let mut remux = RtpToTs::new(&[video(), opus()]).unwrap();
    let (mut datagrams, mut sequence) = (Vec::new(), 0);
    for index in 0..pictures {
        let at = Time::from_millis(40 * index as u64);
        let number = index as u16;
        let slice = [if index % 5 == 0 { &IDR[..] } else { &P }, &[number as u8 + 1; 3_000]].concat();
        let units: &[&[u8]] = if index % 5 == 0 { &[&SPS, &PPS, &slice] } else { &[&slice] };
        for (place, unit) in units.iter().enumerate() {
            let header = PlainHeader {
                marker: place + 1 == units.len(),
                payload_type: 96,
                sequence,
                timestamp: 3_600 * u32::from(number),
                ssrc: 1,
            };
            sequence += 1;
            let packet = Bytes::from([&header.emit()[..], unit].concat());
            remux.push(0, &packet, at, &mut |bytes| datagrams.push((at, bytes)));
        }
        for half in 0..2_u16 {
            let sequence = number * 2 + half;
            let sound = [&[0x78], &[sequence as u8; 80][..]].concat();
            let packet = packet(sequence, 960 * u32::from(sequence), &sound);
            remux.push(1, &packet, at, &mut |bytes| datagrams.push((at, bytes)));
        }
    }
    datagrams
}

fn from() -> FromTs {
    FromTs::new([Coding::H264, Coding::Audio("Opus")])
}

/// Of each track, its packets: sequence number, timestamp, marker, payload.
type Said = [Vec<(u16, u32, bool, Vec<u8>)>; 2];

fn rtp(from: &mut FromTs, datagrams: &[(Time, Bytes)]) -> (Said, ToRtp) {
    let mut to = ToRtp::new(&[video(), opus()], 0x1234_5678);
    let mut said = Said::default();
    for (at, datagram) in datagrams {
        from.push(datagram, *at, &mut |unit, is_behind_gap| {
            if is_behind_gap {
                to.skip(unit.track);
            }
            to.push(&unit, &mut |packet| {
                let header = outflow_rtp::RtpHeader::new_checked(&packet).expect("RTP");
                assert_eq!(header.ssrc(), 0x1234_5678 + unit.track as u32);
                let payload = header.payload().to_vec();
                said[unit.track].push((header.sequence(), header.timestamp(), header.marker(), payload));
            });
        });
    }
    (said, to)
}

#[test]
fn pictures_and_sound_come_out_as_they_went_in() {
    let ([picture, sound], _) = rtp(&mut from(), &stream(11));
    // Parameter sets in one packet in front of each key frame, three fragments a picture.
    assert_eq!(picture.iter().filter(|packet| packet.2).count(), 11);
    assert_eq!(picture.len(), 3 * 11 + 3);
    assert_eq!(picture[0].3[..5], [0x78, 0, 4, 0x67, 66]);
    assert!(picture.iter().chain(&sound).all(|packet| packet.3.len() <= 1200));
    let pairs = picture.windows(2).chain(sound.windows(2));
    assert!(pairs.into_iter().all(|pair| pair[1].0 == pair[0].0.wrapping_add(1)), "numbers run on");
    let times: Vec<u32> = picture.iter().filter(|packet| packet.2).map(|packet| packet.1).collect();
    assert!(times.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == 3_600), "{times:?}");
    assert_eq!(sound.len(), 22);
    let expected = (0..22).map(|at| [&[0x78], &[at; 80][..]].concat()).collect::<Vec<_>>();
    assert_eq!(sound.iter().map(|packet| packet.3.clone()).collect::<Vec<_>>(), expected);
    assert!(sound.windows(2).all(|pair| pair[1].1.wrapping_sub(pair[0].1) == 960));
}

#[test]
fn all_tracks_have_one_clock() {
    let mut from = from();
    assert_eq!(from.clock(), None, "before the first unit");
    let datagrams = stream(6);
    let ([picture, sound], to) = rtp(&mut from, &datagrams);
    let (at, ticks) = from.clock().expect("it has begun");
    assert_eq!(at, datagrams[0].0);
    let since = |track: usize, timestamp: u32, rate: i64| {
        let begins = to.timestamp(track, ticks).expect("it is carried");
        i64::from(timestamp.wrapping_sub(begins).cast_signed()) * 90_000 / rate
    };
    let (first, heard) = (since(0, picture[0].1, 90_000), since(1, sound[0].1, 48_000));
    assert_eq!((first, heard), (0, 0), "both began at the same moment");
    assert_eq!(to.timestamp(2, ticks), None);
}

#[test]
fn a_loss_is_a_gap_in_the_numbers_of_its_track_alone() {
    let mut datagrams = stream(11);
    let whole = rtp(&mut from(), &datagrams).0;
    let is_full = |(_, (_, datagram)): &(usize, &(Time, Bytes))| datagram.len() == DATAGRAM_BYTES;
    let (at, _) = datagrams.iter().enumerate().filter(is_full).nth(3).expect("it is there");
    datagrams.remove(at);
    let mut from = from();
    let ([picture, sound], _) = rtp(&mut from, &datagrams);
    let gaps = |said: &[(u16, u32, bool, Vec<u8>)]| {
        said.windows(2).filter(|pair| pair[1].0 != pair[0].0.wrapping_add(1)).count()
    };
    assert_eq!((gaps(&picture), gaps(&sound)), (1, 0));
    assert_eq!(from.dropped().incomplete, 1);
    assert_eq!(picture.iter().filter(|packet| packet.2).count(), 10);
    assert_eq!(sound, whole[1]);
}

#[test]
fn time_that_leaps_goes_on_from_where_it_arrives() {
    let mut datagrams = stream(4);
    let later = Time::from_millis(60_000);
    // The same once more, a minute later: its times are those of the first.
    datagrams.extend(stream(4).into_iter().map(|(at, bytes)| (later + at.since(Time::ZERO), bytes)));
    let mut from = from();
    let half = datagrams.len() / 2;
    let (before, _) = rtp(&mut from, &datagrams[..half]);
    from.break_off();
    let (after, _) = rtp(&mut from, &datagrams[half..]);
    let first = |said: &Said| said[0][0].1;
    assert_eq!(first(&after).wrapping_sub(first(&before)), 60 * 90_000);
}

#[test]
fn streams_that_are_not_chosen_are_passed_over_and_key_frames_are_told() {
    let datagrams = stream(2);
    let mut from = FromTs::new([Coding::H264]);
    let mut keys = Vec::new();
    for (at, datagram) in &datagrams {
        from.push(datagram, *at, &mut |unit, _| keys.push((unit.track, unit.key, unit.pts >= unit.dts)));
    }
    assert_eq!(keys, [(0, true, true), (0, false, true)]);
    assert_eq!(from.dropped().malformed, 0);
}
