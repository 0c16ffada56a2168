//! DTLS: datagrams of anybody, and those of a peer, whole and changed, lost and late.

use core::time::Duration;
use std::sync::OnceLock;

use outflow_dtls::limits::DATAGRAM_MAX;
use outflow_dtls::testing::{Peer, Version, clock};
use outflow_dtls::{Clock, Identity, Output, Scratch, Server, Settings};
use outflow_media::Time;

/// Datagrams that one call may have sent.
const SENT_MAX: usize = 30;

struct Both {
    now: Time,
    server: Server,
    peer: Peer,
    scratch: Scratch,
    to_server: Vec<Vec<u8>>,
    has_ended: bool,
}

/// A byte says the peer's version. Then come steps, each of a byte that says what, one that says where, and one that says
/// how many bytes of a datagram follow.
pub(crate) fn dtls(data: &[u8]) {
    static MADE: OnceLock<(Identity, Identity, Settings, Clock)> = OnceLock::new();
    let (ours, theirs, settings, clock) = MADE.get_or_init(|| {
        let made = || Identity::generate().expect("a certificate");
        (made(), made(), Settings::new().expect("it works"), clock())
    });
    let Some((version, mut steps)) = data.split_first() else { return };
    let version = if version & 1 == 0 { Version::V12 } else { Version::V13 };
    let now = Time::from_millis(1000);
    let mut both = Both {
        now,
        server: Server::new(now, *clock, settings, ours, vec![theirs.fingerprint()]),
        peer: Peer::new(now, *clock, version, theirs),
        scratch: Scratch::default(),
        to_server: Vec::new(),
        has_ended: false,
    };
    while let [what, place, length, rest @ ..] = steps {
        let (body, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        steps = behind;
        both.to_server.extend(both.peer.sends());
        both.step(*what, usize::from(*place), body);
    }
}

impl Both {
    fn step(&mut self, what: u8, place: usize, body: &[u8]) {
        match what % 6 {
            0 => self.hand(body),
            1 => self.pass(1),
            // All that there is, there and back.
            2 => self.pass(usize::MAX),
            3 => {
                if !self.to_server.is_empty() {
                    let number = place % self.to_server.len();
                    let mut datagram = self.to_server[number].clone();
                    let at = usize::from(*body.first().unwrap_or(&0)) % datagram.len().max(1);
                    datagram
                        .iter_mut()
                        .skip(at)
                        .zip(body.iter().skip(1))
                        .for_each(|(byte, other)| *byte ^= other);
                    self.hand(&datagram);
                }
            }
            4 => self.to_server.truncate(place % 4),
            _ => {
                self.now = self.now + Duration::from_millis(place as u64 * 50);
                self.server.handle_timeout(self.now, &mut self.scratch);
                self.peer.handle_timeout(self.now);
                self.drain();
            }
        }
    }

    fn pass(&mut self, count: usize) {
        let count = count.min(self.to_server.len());
        let datagrams: Vec<_> = self.to_server.drain(..count).collect();
        datagrams.iter().for_each(|datagram| self.hand(datagram));
    }

    fn hand(&mut self, datagram: &[u8]) {
        let handled = self.server.handle_datagram(self.now, datagram, &mut self.scratch);
        assert!(datagram.len() <= DATAGRAM_MAX || handled.is_err(), "too long");
        self.drain();
    }

    fn drain(&mut self) {
        for _ in 0..SENT_MAX {
            match self.server.poll() {
                Output::Send(bytes) => {
                    assert!(bytes.len() <= outflow_dtls::limits::SENT_MAX, "{} bytes", bytes.len());
                    self.peer.handle_datagram(self.now, &bytes);
                }
                Output::Agreed(_) => assert!(!self.has_ended, "it has ended"),
                Output::Ended(_) => assert!(!core::mem::replace(&mut self.has_ended, true), "it ends once"),
                Output::Wait(_) => return,
            }
        }
        panic!("it never waits");
    }
}
