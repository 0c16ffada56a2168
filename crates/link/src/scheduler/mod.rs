//! Which buffer of a link is next: the ways to choose among buffers.

mod choose;
mod deficit;
mod priority;
mod round_robin;
mod shares;

use outflow_turns::Part as Share;

pub(super) use choose::{Candidate, Part, Scheduler};

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

            /// Begins, with what lower classes are promised.
            pub(super) fn begin(self, lower_share: Share) -> Box<dyn Scheduler> {
                let mut scheduler: Box<dyn Scheduler> = match self {
                    $(Scheduling::$variant => Box::new(<$scheduler>::default()),)+
                };
                scheduler.promise(lower_share);
                scheduler
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
    /// The buffer of the most urgent class that has anything, but for what classes below it are promised.
    Priority = "priority": Equal, priority::Priority,
    /// Byte by byte, by the weights of applications, and in each by those of its streams (start-time fair
    /// queueing; Goyal, Vin and Cheng, 1996). Where everything shares one buffer, that is as it comes.
    Shares = "shares": Given, shares::Shares,
}

/// What the weights of buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weights {
    /// The bytes that are offered to each.
    Offered,
    /// All the same.
    Equal,
    /// What is said of applications and streams.
    Given,
}

#[cfg(test)]
mod tests;
