//! Which buffer of a link is next: the ways to choose among buffers.

mod deficit;
mod priority;
mod round_robin;

use core::fmt::Debug;

/// A buffer that has something to send, as far as choosing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Bytes of the packet that goes next.
    pub(super) bytes: usize,
    /// Its share of the service, in parts of the sum of those that have something to send.
    pub(super) weight: u64,
    /// The mean of all buffers, whether they have something to send or not.
    pub(super) mean_weight: u64,
    /// The smaller, the sooner.
    pub(super) class: u8,
}

/// What is to be known of a buffer now; `None` if it has nothing to send.
pub(super) type Look<'l> = &'l dyn Fn(usize) -> Option<Candidate>;

macro_rules! schedulers {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $weights:ident, $scheduler:path),+ $(,)?) => {
        /// Which buffer of a link is next, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Scheduling {
            $($(#[$doc])* $variant,)+
        }

        impl Scheduling {
            /// All ways.
            pub const ALL: &[Scheduling] = &[$(Scheduling::$variant,)+];

            /// Its name, as it stands in configurations.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Scheduling::$variant => $name,)+
                }
            }

            /// The way of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Scheduling::ALL.iter().copied().find(|way| way.as_str() == name)
            }

            /// What the weights of buffers are.
            pub const fn weights(self) -> Weights {
                match self {
                    $(Scheduling::$variant => Weights::$weights,)+
                }
            }

            pub(super) fn begin(self) -> Box<dyn Scheduler> {
                match self {
                    $(Scheduling::$variant => Box::new(<$scheduler>::default()),)+
                }
            }
        }
    };
}

schedulers! {
    /// Packet by packet, by what is offered to each buffer (ABD, section 5).
    Wrr = "wrr": Offered, round_robin::RoundRobin,
    /// Packet by packet, all the same.
    Weq = "weq": Equal, round_robin::RoundRobin,
    /// Byte by byte (deficit round robin; Shreedhar and Varghese, 1995), by what is offered to each.
    Drr = "drr": Offered, deficit::Deficit,
    /// Byte by byte, all the same.
    DrrEqual = "drr-equal": Equal, deficit::Deficit,
    /// The buffer of the most urgent class that has anything.
    Priority = "priority": Equal, priority::Strict,
}

/// What the weights of buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weights {
    /// The bytes that are offered to each.
    Offered,
    /// All the same.
    Equal,
}

/// Chooses among buffers, without looking at all of them.
pub(super) trait Scheduler: Debug + Send {
    /// A buffer has something to send. It may have had before.
    fn wakes(&mut self, buffer: usize);

    /// The buffer that is next. One packet of it is taken out then. Those that turn out to have nothing to
    /// send are left out until they wake.
    fn next(&mut self, look: Look<'_>) -> Option<usize>;
}

#[cfg(test)]
mod tests;
