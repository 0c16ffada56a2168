//! A stream at its owner: what its replicas are handed.

use super::branches::{ORIGINAL, held};
use super::handed::Handed;
use super::state::State;
use super::stream::Stream;

impl Stream {
    /// From now on what replicas need is put down for [`Stream::handed`], or no longer.
    pub fn set_shared(&mut self, shared: bool) {
        self.state.sharing.set_shared(shared);
    }

    /// Takes out what replicas are to be handed; the driver does so when it is told to
    /// ([`Output::HandOver`](super::Output::HandOver)), or earlier, and gives it to each replica by
    /// [`Stream::handle_handed`].
    pub fn handed(&mut self) -> impl Iterator<Item = Handed> + '_ {
        self.state.sharing.take_handed()
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
    pub fn introduction(&self) -> Vec<Handed> {
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
