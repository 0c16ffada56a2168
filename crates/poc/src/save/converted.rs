//! Counts become what is saved of them, and the other way round.

use super::counts::each_of_counts;
use super::{
    NUMBER_MOST, SavedDatagramCounts, SavedEndpointCounts, SavedIncomingCounts, SavedOutgoingCounts,
    SavedRepairCounts, SavedSentCounts,
};
use crate::connection::{DatagramCounts, IncomingCounts, OutgoingCounts};
use crate::endpoint::Counts as EndpointCounts;
use crate::recovery::{RepairCounts, SentCounts};

macro_rules! converted {
    ($(#[$doc:meta])* $saved:ident of $counts:ident { $($number:tt $field:ident),* } $($other:ident)?) => {
        impl From<$counts> for $saved {
            fn from(counts: $counts) -> Self {
                let $counts { $($field,)* $($other: _)? } = counts;
                $saved { $($field),* }
            }
        }

        impl From<$saved> for $counts {
            fn from(saved: $saved) -> Self {
                // Sums of them fit.
                let of = |count: u64| count.min(NUMBER_MOST);
                $counts { $($field: of(saved.$field),)* $($other: Default::default())? }
            }
        }
    };
}

each_of_counts!(converted);
