//! What a ring does when it is full.
//!
//! A policy is asked about every packet before it goes into the ring. It sees how much the ring
//! still owes to sinks; packets that are kept only for receivers to join at are not owed to anyone
//! and make room first, so they never make a ring full.

mod red;
mod slowest_sink;
mod tail;

use core::fmt::Debug;

use outflow_media::Time;
use outflow_packet::DropReason;

use crate::limits::RING_PACKETS_MAX;

macro_rules! policies {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $policy:path),+ $(,)?) => {
        /// Which receiver loses packets when a ring is full: the policies there are, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WhenFull {
            $($(#[$doc])* $variant,)+
        }

        impl WhenFull {
            /// All policies, the default first.
            pub const ALL: &[WhenFull] = &[$(WhenFull::$variant,)+];

            /// The policy's name, as it stands in configurations.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(WhenFull::$variant => $name,)+
                }
            }

            /// The policy of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                WhenFull::ALL.iter().copied().find(|policy| policy.as_str() == name)
            }

            /// A policy at its beginning. All its chance comes from `seed`.
            pub(super) fn begin(self, seed: u64) -> Box<dyn Policy> {
                match self {
                    $(WhenFull::$variant => Box::new(<$policy>::new(seed)),)+
                }
            }
        }
    };
}

policies! {
    /// The sinks that lag furthest lose their oldest packets, and those that depend on them.
    SlowestSink = "slowest-sink" => slowest_sink::SlowestSink,
    /// The packet that does not fit any more is lost to all sinks.
    Tail = "tail" => tail::Tail,
    /// As the ring fills, arriving packets are lost to all sinks with rising probability.
    Red = "red" => red::Red,
}

/// What becomes of a packet that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes into the ring, where it fits.
    Admit,
    /// It goes into the ring; what does not fit any more is taken from the sinks that lag furthest.
    MakeRoom,
    /// It does not: all sinks that want its track lose it, for this reason.
    Refuse(DropReason),
}

/// How full a ring is when a packet arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    /// Bytes of the arriving packet.
    pub arriving_bytes: usize,
    /// Bytes that are owed to at least one sink.
    pub owed_bytes: usize,
    /// Packets that are owed to at least one sink.
    pub owed_packets: usize,
    /// Bytes that the ring may hold.
    pub bytes_max: usize,
}

impl Load {
    /// Whether the arriving packet does not fit beside what is owed.
    fn is_full(&self) -> bool {
        self.owed_bytes + self.arriving_bytes > self.bytes_max || self.owed_packets >= RING_PACKETS_MAX
    }
}

/// Decides about the packets that arrive at one ring.
pub(super) trait Policy: Debug + Send {
    /// At its beginning. All its chance comes from `seed`.
    fn new(seed: u64) -> Self
    where
        Self: Sized;

    /// What becomes of the packet that arrives at `now`. Asked once a packet, in their order.
    fn arrives(&mut self, now: Time, load: &Load) -> Verdict;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of 100 kB that owes so much when a packet of 1 kB arrives.
    pub(super) fn owing(owed_bytes: usize) -> Load {
        Load { arriving_bytes: 1_000, owed_bytes, owed_packets: owed_bytes / 1_000, bytes_max: 100_000 }
    }

    #[test]
    fn names_lead_back_to_their_policies() {
        for &policy in WhenFull::ALL {
            assert_eq!(WhenFull::from_name(policy.as_str()), Some(policy));
        }
        assert_eq!(WhenFull::from_name("head"), None);
    }

    #[test]
    fn every_policy_admits_what_fits_an_empty_ring_and_never_lets_a_full_one_grow() {
        for &when_full in WhenFull::ALL {
            let mut policy = when_full.begin(1);
            assert_eq!(policy.arrives(Time::ZERO, &owing(0)), Verdict::Admit, "{when_full:?}");
            assert_ne!(policy.arrives(Time::ZERO, &owing(99_001)), Verdict::Admit, "{when_full:?}");
            let many = Load { owed_packets: RING_PACKETS_MAX, ..owing(0) };
            assert_ne!(policy.arrives(Time::ZERO, &many), Verdict::Admit, "{when_full:?}");
        }
    }
}
