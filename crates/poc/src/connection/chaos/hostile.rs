//! An attacker that hears everything, and sends what it likes from any address.

use core::time::Duration;

use fastrand::Rng;
use outflow_petri::service::Class;

use super::super::Settings;
use super::super::testing::{Pair, Weather, address, chain, data, flow};
use crate::packet::{Code, ConnectionId, Mark};
use crate::protection::{Plain, Protection, Spent};
use crate::save::SavedBytes;
use crate::secret::Secret;

/// Does not encrypt, but knows what the peer sealed: four bytes that only an end with the key can work out.
struct Tagged {
    /// To seal with, and to open.
    keys: [Secret; 2],
}

impl Tagged {
    fn end(is_client: bool) -> Box<dyn Protection> {
        let (ours, theirs) = if is_client { (1, 2) } else { (2, 1) };
        Box::new(Tagged { keys: [ours, theirs].map(|key| Secret::new([key; 16])) })
    }

    fn tag(key: &Secret, number: u64, bytes: &[u8]) -> [u8; 4] {
        let tag = key.tag(&[&number.to_le_bytes(), bytes].concat());
        [tag[0], tag[1], tag[2], tag[3]]
    }
}

impl Protection for Tagged {
    fn overhead(&self) -> usize {
        4
    }

    fn seal(&mut self, number: u64, datagram: &mut Vec<u8>, _head: usize) -> Result<(), Spent> {
        let tag = Tagged::tag(&self.keys[0], number, datagram);
        datagram.extend_from_slice(&tag);
        Ok(())
    }

    fn open(&mut self, number: u64, datagram: &mut [u8], head: usize) -> Option<usize> {
        let (bytes, tag) = datagram.split_last_chunk::<4>()?;
        let is_theirs = bytes.len() >= head && *tag == Tagged::tag(&self.keys[1], number, bytes);
        is_theirs.then_some(bytes.len())
    }

    fn is_spent(&self) -> bool {
        false
    }

    fn save(&self) -> SavedBytes {
        SavedBytes::default()
    }
}

/// What becomes of a datagram that was heard.
fn spoilt(random: &mut Rng, heard: &[u8]) -> Vec<u8> {
    let mut bytes = heard.to_vec();
    match random.u8(..7) {
        // Again, as it is, before or behind the right one.
        0 => (),
        1 => bytes.truncate(random.usize(..bytes.len())),
        2 => bytes.iter_mut().skip(1).take(8).for_each(|byte| *byte = random.u8(..)),
        3 => bytes.extend((0..random.usize(1..40)).map(|_| random.u8(..))),
        // Another number, or other frames, with the right id.
        4 => bytes.iter_mut().skip(9).for_each(|byte| *byte = random.u8(..)),
        _ => {
            for _ in 0..random.usize(1..9) {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.u8(..8);
            }
        }
    }
    bytes
}

/// Lets everything that is under way be heard, and something be made of it.
fn meddle(pair: &mut Pair, random: &mut Rng, heard: &mut Vec<(bool, Vec<u8>)>) {
    heard.extend(pair.heard());
    for _ in 0..random.usize(..6).min(heard.len()) {
        // The last ones mostly; some are old.
        let recent = if random.bool() { heard.len().min(4) } else { heard.len() };
        let (to_server, bytes) = &heard[heard.len() - 1 - random.usize(..recent)];
        let to_server = *to_server ^ (random.u8(..8) == 0);
        let bytes = spoilt(random, bytes);
        let own = if to_server { address(1) } else { address(2) };
        let from = if random.bool() { own } else { address(60 + random.u8(..3)) };
        pair.inject(to_server, from, [Mark::None, Mark::Ce][random.usize(..2)], bytes);
    }
    if random.u8(..10) == 0 {
        let now = pair.now;
        pair.client.handle_reset(now);
        pair.server.handle_reset(now);
    }
    pair.flush();
}

#[test]
fn what_has_no_key_does_not_disturb_a_connection() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let weather = Weather { jitter: Duration::from_millis(5), ..Weather::FAIR };
        let flow = flow(chain(16, None), Class::Reliable, None);
        let mut pair = Pair::protected(&flow, weather, seed, Settings::default(), Tagged::end);
        let mut heard = Vec::new();
        for unit in 0..200 {
            pair.send(unit, data(unit)).expect("there is room");
            meddle(&mut pair, &mut random, &mut heard);
            pair.run(Duration::from_millis(5));
        }
        for _ in 0..200 {
            meddle(&mut pair, &mut random, &mut heard);
            pair.run(Duration::from_millis(5));
        }
        pair.finish(Duration::from_secs(10));
        let (told, at_client) = (&pair.at_server, &pair.at_client);
        assert!(told.delivered.iter().map(|(unit, ..)| *unit).eq(0..200), "seed {seed}");
        assert!(told.delivered.iter().all(|(unit, bytes, _)| *bytes == data(*unit)), "seed {seed}");
        assert!(told.missed.is_empty() && at_client.lost.is_empty() && at_client.given_up.is_empty());
        for (end, closed) in [(&pair.client, &at_client.closed), (&pair.server, &told.closed)] {
            assert_eq!(closed.as_ref().map(|closed| closed.code), Some(Code::DONE), "seed {seed}");
            assert_eq!(end.path_changes(), 0, "seed {seed}");
            assert!(end.counts().forged > 100 && end.counts().malformed > 0, "{:?}", end.counts());
        }
    }
}

#[test]
fn what_cannot_be_read_or_is_for_others_disturbs_none_even_without_protection() {
    let mut random = Rng::with_seed(1);
    let flow = flow(chain(16, None), Class::Reliable, None);
    let mut pair = Pair::protected(&flow, Weather::FAIR, 1, Settings::default(), |_| Box::new(Plain));
    for unit in 0..200 {
        pair.send(unit, data(unit)).expect("there is room");
        for (to_server, heard) in pair.heard() {
            let mut others = heard.clone();
            others[1 + random.usize(..ConnectionId::BYTES)] ^= 1 << random.u8(..8);
            let cut = heard[..random.usize(..ConnectionId::BYTES + 2)].to_vec();
            // Its own numbers, with a frame of an unknown type behind.
            let mut unknown = heard[..1 + ConnectionId::BYTES].to_vec();
            unknown.extend([unit as u8 & 0x7f, 1, 0xff]);
            let from = address(60 + random.u8(..3));
            for bytes in [others, cut, unknown, vec![], vec![random.u8(..); 1200]] {
                pair.inject(to_server, from, Mark::None, bytes);
            }
            pair.inject(!to_server, from, Mark::None, heard);
        }
        pair.run(Duration::from_millis(5));
    }
    pair.finish(Duration::from_secs(10));
    assert!(pair.at_server.delivered.iter().map(|(unit, ..)| *unit).eq(0..200));
    assert!(pair.at_server.delivered.iter().all(|(unit, bytes, _)| *bytes == data(*unit)));
    assert_eq!(pair.at_server.closed.as_ref().map(|closed| closed.code), Some(Code::DONE));
    assert_eq!((pair.server.path_changes(), pair.client.path_changes()), (0, 0));
}
