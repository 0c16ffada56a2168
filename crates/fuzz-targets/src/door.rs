//! The door: requests of many peers, in any words, with any tokens.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use futures_util::FutureExt as _;
use outflow_config::Secret;
use outflow_door::{Door, Permit, Refused, Request, Right, Rules, query_value};

/// The tokens of each right.
const TOKENS: [&str; 4] = ["pub", "play", "ctl", "relay"];
const RIGHTS: [Right; 4] = [Right::Publish, Right::Play, Right::Control, Right::Relay];
/// Connections of all peers, and of one.
const PLACES: (usize, usize) = (8, 3);

/// Lines. Of each, the first byte says what is asked, the second by which peer; behind that stand a name and a query,
/// with a question mark between.
pub(crate) fn door(data: &[u8]) {
    let mut scene = Scene { door: Door::new(rules(0xff)), closed: 0xff, permits: Vec::new() };
    for line in data.split(|byte| *byte == b'\n') {
        if let [what, whose, text @ ..] = line {
            scene.step(*what, peer(*whose), &String::from_utf8_lossy(text));
        }
    }
}

/// Rules with tokens for those rights that have a bit.
fn rules(closed: u8) -> Rules {
    let tokens = |at: usize| match closed >> at & 1 {
        1 => vec![Secret::new(TOKENS[at])],
        _ => Vec::new(),
    };
    Rules {
        publish: tokens(0),
        play: tokens(1),
        control: tokens(2),
        relay: tokens(3),
        tokens: Vec::new(),
        jwt: None,
        hook: None,
        connections: PLACES.0,
        connections_per_address: PLACES.1,
    }
}

/// Some peers are near each other, some on this machine.
fn peer(whose: u8) -> SocketAddr {
    let address = match whose % 4 {
        0 => IpAddr::from([127, 0, 0, 1]),
        1 => IpAddr::from([10, 0, 0, whose]),
        2 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(whose)]),
        _ => Ipv6Addr::from([0, 0, 0, 0, 0, 0xffff, 0x0a00, u16::from(whose)]).into(),
    };
    SocketAddr::new(address, 5000)
}

struct Scene {
    door: Door,
    closed: u8,
    permits: Vec<(IpAddr, Permit)>,
}

impl Scene {
    fn step(&mut self, what: u8, peer: SocketAddr, text: &str) {
        match what % 8 {
            0..=3 => self.enter(usize::from(what % 4), peer, text),
            4 => {
                self.closed = text.bytes().next().unwrap_or(0);
                self.door.set_rules(rules(self.closed));
            }
            5 => drop(self.permits.pop()),
            _ => self.admit(peer.ip()),
        }
    }

    /// A request that comes in shows a token of its right, or needs none.
    fn enter(&mut self, right: usize, peer: SocketAddr, text: &str) {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let Ok(request) = Request::parse(peer, name, query) else { return };
        assert_eq!(request.token, query_value(query, "token"));
        let is_closed = self.closed >> right & 1 == 1;
        let mut good = BTreeSet::from([TOKENS[right]]);
        if RIGHTS[right] == Right::Play && self.closed >> 3 & 1 == 1 {
            good.insert(TOKENS[3]);
        }
        let is_good = request.token.as_deref().is_some_and(|token| good.contains(token));
        // Without a hook, nothing is waited for.
        let Some(entered) = self.door.enter(RIGHTS[right], &request).now_or_never() else {
            panic!("{text:?} is waited for")
        };
        match entered {
            Ok(_) if is_closed => assert!(is_good, "{text:?} came in"),
            Ok(_) if RIGHTS[right] == Right::Control => assert!(peer.ip().to_canonical().is_loopback()),
            Err(Refused::TokenWrong | Refused::TokenMissing) => assert!(is_closed && !is_good, "{text:?}"),
            _ => {}
        }
    }

    /// There are no more connections than places.
    fn admit(&mut self, peer: IpAddr) {
        if let Ok(permit) = self.door.admit(peer) {
            self.permits.push((peer.to_canonical(), permit));
            let own = self.permits.iter().filter(|(other, _)| *other == peer.to_canonical()).count();
            assert!(self.permits.len() <= PLACES.0 && own <= PLACES.1);
        }
    }
}
