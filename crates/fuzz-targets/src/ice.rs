//! ICE: messages of STUN, and what runs of them do to an agent.

use core::time::Duration;
use std::collections::BTreeSet;

use outflow_ice::limits::{ASK_TIMES, PATHS_MAX};
use outflow_ice::testing::request_with;
use outflow_ice::{Agent, Check, Credentials, Output, Path};
use outflow_media::Time;

/// Bytes of an answer: a refusal names no more than some attributes.
const ANSWER_MAX: usize = 128;

/// Behind a byte of zero comes a message. Behind another one come steps, each of a byte that says what, one that says
/// where, and one that says how many bytes it has: a message as it is, one that the peer has signed with these
/// attributes, time that passes, and what the agent's owner tells it.
pub(crate) fn ice(data: &[u8]) {
    match data.split_first() {
        Some((0, message)) => {
            if let Ok(check) = Check::new_checked(message) {
                assert!(Check::is_stun(message), "what is STUN looks like it");
                check.names();
            }
        }
        Some((_, steps)) => run(steps),
        None => (),
    }
}

fn credentials(name: &str) -> Credentials {
    Credentials { ufrag: name.to_owned(), password: format!("the password of {name}") }
}

struct Run {
    agent: Agent,
    now: Time,
    known: BTreeSet<Path>,
    has_ended: bool,
}

fn run(mut steps: &[u8]) {
    let now = Time::from_millis(1000);
    let agent = Agent::new(now, [7; 32], credentials("relay"), credentials("peer"));
    let mut run = Run { agent, now, known: BTreeSet::new(), has_ended: false };
    while let [what, place, length, rest @ ..] = steps {
        let (body, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        steps = behind;
        let path = Path { own: u32::from(place >> 7), peer: ([192, 0, 2, place & 15], 9000).into() };
        run.step(*what, path, body);
        run.drain(path);
    }
}

impl Run {
    fn step(&mut self, what: u8, path: Path, body: &[u8]) {
        match what % 6 {
            0 => self.hand(path, body),
            1 => self.hand(path, &signed(body)),
            2 => {
                self.now = self.now + Duration::from_millis(body.len() as u64 * 100);
                self.agent.handle_timeout(self.now);
            }
            3 => self.agent.handle_proof(self.now, path),
            4 => {
                self.agent.handle_closed(path);
                self.known.remove(&path);
            }
            _ => self.agent.restart(credentials("relay"), credentials("peer")),
        }
    }

    fn hand(&mut self, path: Path, message: &[u8]) {
        if let Ok(check) = Check::new_checked(message) {
            let _ignored = self.agent.handle(self.now, path, &check);
        }
    }

    /// Takes out what follows from a step at a path.
    fn drain(&mut self, at: Path) {
        for _ in 0..=ASK_TIMES + 4 {
            match self.agent.poll() {
                Output::Send(to, bytes) => {
                    assert!(bytes.len() <= ANSWER_MAX, "{} bytes", bytes.len());
                    assert!(to == at || self.known.contains(&to), "to one that was heard");
                }
                Output::Valid(path) => assert!(self.known.insert(path), "it is new"),
                Output::Invalid(path) => assert!(self.known.remove(&path), "it was known"),
                Output::Selected(path) => assert!(self.known.contains(&path), "it was heard there"),
                Output::Ended(_) => assert!(!core::mem::replace(&mut self.has_ended, true), "it ends once"),
                Output::Wait(at, _) => {
                    assert!(at > self.now || !self.has_ended, "it waits for what comes");
                    assert!(self.known.len() <= PATHS_MAX, "{} paths", self.known.len());
                    return;
                }
                Output::Nothing => return,
            }
        }
        panic!("it never waits");
    }
}

/// A request of the peer's with attributes, each of two bytes that say what, one that says how long, and that.
fn signed(mut body: &[u8]) -> Vec<u8> {
    let mut attributes = Vec::new();
    while let [high, low, length, rest @ ..] = body {
        let (value, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        body = behind;
        attributes.push((u16::from_be_bytes([*high, *low]), value));
    }
    request_with("relay:peer", &credentials("relay"), &attributes)
}
