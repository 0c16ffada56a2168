//! What was counted: figures go on where they were.

use minicbor::{Decode, Encode};

use crate::connection::{DatagramCounts, IncomingCounts, OutgoingCounts};
use crate::endpoint::Counts as EndpointCounts;
use crate::recovery::{RepairCounts, SentCounts};

/// A type to be saved of a type of counts, with all of its fields but one that is of another type.
macro_rules! counts {
    ($(#[$doc:meta])* $saved:ident of $counts:ident { $($number:tt $field:ident),* } $($other:ident)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
        #[cbor(map)]
        pub struct $saved {
            $(
                #[doc = concat!("[`", stringify!($counts), "::", stringify!($field), "`].")]
                #[n($number)]
                #[cbor(default)]
                pub $field: u64,
            )*
        }

        impl From<$counts> for $saved {
            fn from(counts: $counts) -> Self {
                let $counts { $($field,)* $($other: _)? } = counts;
                $saved { $($field),* }
            }
        }

        impl From<$saved> for $counts {
            fn from(saved: $saved) -> Self {
                // Sums of them fit.
                let of = |count: u64| count.min(super::NUMBER_MOST);
                $counts { $($field: of(saved.$field),)* $($other: Default::default())? }
            }
        }
    };
}

counts! {
    /// [`DatagramCounts`].
    SavedDatagramCounts of DatagramCounts {
        0 sent, 1 sent_bytes, 2 received, 3 received_bytes, 4 duplicate, 5 forged, 6 malformed, 7 closed,
        8 unread
    }
}

counts! {
    /// [`SentCounts`].
    SavedSentCounts of SentCounts {
        0 acked, 1 lost_by_packets, 2 lost_by_time, 3 lost_by_silence, 4 spurious, 5 probes, 6 ecn_refused
    }
}

counts! {
    /// [`IncomingCounts`].
    SavedIncomingCounts of IncomingCounts {
        0 delivered, 1 bytes, 2 lost, 3 deleted, 4 given_up, 5 duplicate, 6 late
    }
}

counts! {
    /// [`OutgoingCounts`], but for those of repairs.
    SavedOutgoingCounts of OutgoingCounts {
        0 units, 1 bytes, 2 delivered, 3 lost, 4 too_late, 5 overload, 6 dependency, 7 not_needed
    } repairs
}

counts! {
    /// [`RepairCounts`].
    SavedRepairCounts of RepairCounts {
        0 again, 1 copies, 2 copied_bytes, 3 copies_refused, 4 not_needed, 5 too_late, 6 unreliable,
        7 attempts
    }
}

counts! {
    /// [`EndpointCounts`].
    SavedEndpointCounts of EndpointCounts {
        0 hellos, 1 retries, 2 strangers, 3 busy, 4 other_versions, 5 malformed, 6 unknown, 7 resets, 8 early,
        9 answers_left_out
    }
}
