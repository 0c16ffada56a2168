//! What was counted: figures go on where they were.

use minicbor::{Decode, Encode};

/// Does something for each type of counts: what it is saved as, and its fields; then one that is of another type.
macro_rules! each_of_counts {
    ($each:ident) => {
        $each! {
            /// `DatagramCounts`.
            SavedDatagramCounts of DatagramCounts {
                0 sent, 1 sent_bytes, 2 received, 3 received_bytes, 4 duplicate, 5 forged, 6 malformed,
                7 closed,
                8 unread
            }
        }
        $each! {
            /// `SentCounts`.
            SavedSentCounts of SentCounts {
                0 acked, 1 lost_by_packets, 2 lost_by_time, 3 lost_by_silence, 4 spurious, 5 probes,
                6 ecn_refused
            }
        }
        $each! {
            /// `IncomingCounts`.
            SavedIncomingCounts of IncomingCounts {
                0 delivered, 1 bytes, 2 lost, 3 deleted, 4 given_up, 5 duplicate, 6 late
            }
        }
        $each! {
            /// `OutgoingCounts`, but for those of repairs.
            SavedOutgoingCounts of OutgoingCounts {
                0 units, 1 bytes, 2 delivered, 3 lost, 4 too_late, 5 overload, 6 dependency, 7 not_needed
            } repairs
        }
        $each! {
            /// `RepairCounts`.
            SavedRepairCounts of RepairCounts {
                0 again, 1 copies, 2 copied_bytes, 3 copies_refused, 4 not_needed, 5 too_late, 6 unreliable,
                7 attempts
            }
        }
        $each! {
            /// `EndpointCounts`.
            SavedEndpointCounts of EndpointCounts {
                0 hellos, 1 retries, 2 strangers, 3 busy, 4 other_versions, 5 malformed, 6 unknown,
                7 resets, 8 early,
                9 answers_left_out
            }
        }
    };
}
pub(super) use each_of_counts;

/// A type to be saved of a type of counts.
macro_rules! saved {
    ($(#[$doc:meta])* $saved:ident of $counts:ident { $($number:tt $field:ident),* } $($other:ident)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
        #[cbor(map)]
        pub struct $saved {
            $(
                #[doc = concat!("`", stringify!($counts), "::", stringify!($field), "`.")]
                #[n($number)]
                #[cbor(default)]
                pub $field: u64,
            )*
        }
    };
}

each_of_counts!(saved);
