//! A server that is flooded with what is of no use.

use core::time::Duration;

use fastrand::Rng;

use super::tests::{Pair, SECOND, address, to_send};
use super::*;
use crate::connection::Event;
use crate::packet::Hello;

const STEP: Duration = Duration::from_micros(10);

/// A tenth of a second, with a million datagrams a second.
const STEPS: usize = 10_000;
const A_STEP: usize = 10;

/// An attacker that has heard the id of a connection, and what was sent.
struct Flood {
    random: Rng,
    id: ConnectionId,
    /// What has come to the server.
    heard: Vec<Vec<u8>>,
    bytes: u64,
}

impl Flood {
    fn noise(&mut self, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|_| self.random.u8(..)).collect()
    }

    fn next(&mut self) -> Vec<u8> {
        let length = self.random.usize(1..1300);
        match self.random.u8(..5) {
            0 => self.noise(length),
            // To look like one of ours.
            1 => [&[8 + self.random.u8(..6)], &self.noise(length)[..]].concat(),
            // Of a connection that there is, with frames that there are not.
            2 => [&[12], &self.id.0[..], &[self.random.u8(..128)], &vec![0xee; length]].concat(),
            3 if !self.heard.is_empty() => self.heard[self.random.usize(..self.heard.len())].clone(),
            _ => {
                let (client, cookie) = (ConnectionId(self.random.u32(..).to_le_bytes()), self.noise(16));
                let cookie: &[u8] = if self.random.bool() { &cookie } else { &[] };
                let mut hello = Vec::new();
                Hello { client, cookie, service: &[1, 2, 3] }.emit(&mut hello).expect("a short one");
                hello
            }
        }
    }

    /// Some datagrams from anywhere, the address of the client among others.
    fn strike(&mut self, pair: &mut Pair) {
        for _ in 0..A_STEP {
            let mut datagram = self.next();
            self.bytes += datagram.len() as u64;
            let random = ([10, 1, self.random.u8(..), self.random.u8(..)], self.random.u16(..)).into();
            let from = if self.random.u8(..4) == 0 { address(1) } else { random };
            pair.server.handle_datagram(pair.now, from, Mark::None, &mut datagram);
        }
    }
}

/// How many events there were after each step, the events, what the server sent, and with what it was flooded.
fn play(is_flooded: bool) -> (Vec<usize>, Vec<Event>, u64, u64) {
    let mut pair = Pair::new(Settings::default());
    let client = pair.connect(to_send());
    let server = pair.accept();
    pair.run(SECOND / 10);
    let id = pair.server.connection(server).expect("it is there").local();
    let mut flood = Flood { random: Rng::with_seed(1), id, heard: Vec::new(), bytes: 0 };
    let (mut counts, before) = (Vec::new(), pair.sent_bytes[1]);
    let mut under_way = VecDeque::new();
    for step in 0..STEPS {
        if step % 100 == 0 {
            let data = Bytes::from(vec![step as u8; 900]);
            pair.client.send(pair.now, client, None, data, Worth::default()).expect("there is room");
        }
        pair.run(STEP);
        let newest = under_way.back().map_or(Time::ZERO, |(at, _)| *at);
        let to_server = pair.flying.iter().filter(|(at, _, to, _)| *to == address(2) && *at > newest);
        under_way.extend(to_server.map(|(at, _, _, bytes)| (*at, bytes.clone())));
        while let Some((_, bytes)) = under_way.pop_front_if(|(at, _)| *at <= pair.now) {
            flood.heard.push(bytes);
        }
        if is_flooded {
            flood.strike(&mut pair);
        }
        counts.push(pair.events.len());
    }
    let sent = pair.sent_bytes[1] - before;
    pair.run(SECOND);
    assert_eq!((pair.server.len(), pair.server.by_hello.len(), pair.server.by_id.len()), (1, 1, 1));
    assert!(pair.server.answers.is_empty() && pair.server.notices.is_empty());
    assert_eq!(pair.server.timers.len(), 1);
    (counts, pair.events.into_iter().map(|(_, event)| event).collect(), sent, flood.bytes)
}

#[test]
fn a_million_datagrams_a_second_change_nothing_of_a_connection() {
    let (counts, events, sent, _) = play(false);
    let (flooded_counts, flooded_events, flooded_sent, flood) = play(true);
    assert!(events.iter().filter(|event| matches!(event, Event::Delivered { .. })).count() == 100);
    assert!(flooded_events == events, "the same events");
    assert!(flooded_counts == counts, "at the same times");
    assert!((flooded_sent - sent) * 10 < flood, "{} bytes for {flood}", flooded_sent - sent);
}

#[test]
fn answers_to_others_do_not_hold_up_a_connection() {
    let mut pair = Pair::new(Settings::default());
    pair.connect(to_send());
    let server = pair.accept();
    pair.run(SECOND / 10);
    let id = pair.server.connection(server).expect("it is there").local();
    let mut flood = Flood { random: Rng::with_seed(1), id, heard: Vec::new(), bytes: 0 };
    (0..100).for_each(|_| flood.strike(&mut pair));
    pair.server.with(server, |connection| connection.close(pair.now, Code::DONE, ""));
    let mut out = Vec::new();
    let mut kind = || pair.server.poll_transmit(pair.now, &mut out).map(|_| out[0]);
    assert!([kind(), kind()].contains(&Some(12)), "a packet of the connection is among the first");
}
