//! What a ring does when it is full.
//!
//! A policy is asked about every packet before it goes into the ring. It sees how much the ring
//! still owes to sinks; packets that are kept only for receivers to join at are not owed to anyone
//! and make room first, so they never make a ring full.

mod arrival;
mod red;
mod slowest_sink;
mod tail;

pub use arrival::Verdict;
pub(super) use arrival::{Load, Policy};

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

#[cfg(test)]
mod tests {
    use outflow_media::Time;

    use super::*;
    use crate::limits::RING_PACKETS_MAX;

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
