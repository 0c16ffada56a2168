//! A stream at its owner: what its replicas are handed.

use super::branches::{ORIGINAL, held};
use super::handed::{Handed, Joining};
use super::state::State;
use super::stream::Stream;

impl Stream {
    /// One more replica begins: what comes from now on is handed to it, too
    /// ([`Output::HandOver`](super::Output::HandOver)).
    pub fn handle_replica(&mut self) -> Joining {
        let before = self.state.sharing.begin();
        Joining { before, introduction: self.state.introduction() }
    }

    /// There are no replicas any more.
    pub fn end_replicas(&mut self) {
        self.state.sharing.end();
    }
}

impl State {
    /// All that a replica has to know when it begins, or has missed something: the format, the
    /// clocks, whether the source is away.
    pub fn situation(&self) -> Vec<Handed> {
        self.introduce(false)
    }

    /// The same with the packets from the newest key frame on, so that a sink that joins there is served
    /// at once.
    pub(super) fn introduction(&self) -> Vec<Handed> {
        self.introduce(true)
    }

    fn introduce(&self, with_packets: bool) -> Vec<Handed> {
        let (Some(origin), Some(original)) = (&self.out.origin, self.out.branches.get(ORIGINAL)) else {
            return Vec::new();
        };
        let mut all = vec![Handed::Format { format: origin.format().clone(), turn: origin.turn() }];
        let ring = original.ring();
        if with_packets {
            all.extend(held(ring, ring.join_floor()).into_iter().map(Handed::Packet));
        }
        all.extend((0..origin.tracks()).filter_map(|track| self.out.clock(track)).map(Handed::Clock));
        if !self.source.is_up() {
            all.push(Handed::Away);
        }
        all
    }
}
