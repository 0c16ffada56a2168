//! Where the peer is, and where it may have gone (compare RFC 9000 section 9).

use core::net::SocketAddr;
use core::time::Duration;

use outflow_media::Time;

/// Bytes that may be sent to an address for each one that came from it, until it has answered.
const AMPLIFICATION: u64 = 3;

/// How often it is asked, at the most, and for how long.
const ASK_EVERY: Duration = Duration::from_millis(100);
const ASK_FOR: Duration = Duration::from_secs(3);

/// An address from which the peer seems to send now.
#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    challenge: [u8; 8],
    received_bytes: u64,
    sent_bytes: u64,
    /// When to ask again, and when to give up.
    ask_at: Time,
    until: Time,
}

#[derive(Debug)]
pub(super) struct Path {
    address: SocketAddr,
    candidate: Option<Candidate>,
    /// What was asked by the peer, and from where.
    response: Option<([u8; 8], SocketAddr)>,
    /// How often the peer moved.
    changes: u64,
}

impl Path {
    pub(super) fn new(address: SocketAddr) -> Self {
        Path { address, candidate: None, response: None, changes: 0 }
    }

    /// One of a peer that has moved so often.
    pub(super) fn restore(address: SocketAddr, changes: u64) -> Self {
        Path { changes, ..Path::new(address) }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The peer's newest packet came from there. `challenge` makes what no other host can guess.
    pub(super) fn handle_from(
        &mut self,
        now: Time,
        from: SocketAddr,
        bytes: u64,
        challenge: impl FnOnce() -> [u8; 8],
    ) {
        if from == self.address {
            return;
        }
        match &mut self.candidate {
            Some(candidate) if candidate.address == from => candidate.received_bytes += bytes,
            _ => {
                self.candidate = Some(Candidate {
                    address: from,
                    challenge: challenge(),
                    received_bytes: bytes,
                    sent_bytes: 0,
                    ask_at: now,
                    until: now + ASK_FOR,
                });
            }
        }
    }

    /// The peer asks whether we are here; it is answered to where that came from.
    pub(super) fn handle_challenge(&mut self, bytes: [u8; 8], from: SocketAddr) {
        self.response = Some((bytes, from));
    }

    /// The peer answered. Whether it is at another address now.
    pub(super) fn handle_response(&mut self, bytes: [u8; 8]) -> bool {
        let Some(candidate) = self.candidate.take_if(|candidate| candidate.challenge == bytes) else {
            return false;
        };
        self.address = candidate.address;
        self.changes += 1;
        true
    }

    pub(super) fn take_response(&mut self) -> Option<([u8; 8], SocketAddr)> {
        self.response.take()
    }

    /// What to ask, and where, in a packet of `bytes` bytes.
    pub(super) fn take_question(&mut self, now: Time, bytes: u64) -> Option<([u8; 8], SocketAddr)> {
        let candidate = self.candidate.as_mut()?;
        if now < candidate.ask_at {
            return None;
        }
        candidate.ask_at = now + ASK_EVERY;
        if candidate.sent_bytes + bytes > AMPLIFICATION * candidate.received_bytes {
            return None;
        }
        candidate.sent_bytes += bytes;
        Some((candidate.challenge, candidate.address))
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.candidate.as_ref().map(|candidate| candidate.ask_at.min(candidate.until))
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.candidate.take_if(|candidate| candidate.until <= now);
    }
}
