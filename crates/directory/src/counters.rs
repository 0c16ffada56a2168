//! What happened, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// What happened since the directory was started.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counters {
            $($(#[$doc])+ pub $name: u64,)+
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: Count,)+
        }

        impl Counts {
            pub(crate) fn read(&self) -> Counters {
                Counters { $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

counters! {
    /// Values and deletions that NATS has taken.
    put,
    /// Those that it refused: the log says why.
    put_refused,
    /// What was about a stream beyond [`OWN_MAX`](crate::limits::OWN_MAX), or with a name that is too long.
    own_refused,
    /// Connections that were made.
    connected,
    /// Connections that were lost.
    lost,
    /// Questions for a stream.
    lookups,
    /// Of those, the ones that were answered from memory.
    lookups_known,
    /// Of those, the ones that were answered with what had come when the time was over.
    lookups_late,
    /// Questions that had no answer, as NATS was away.
    lookups_away,
    /// Values of others that are no entries, or are not where they should be: left out.
    malformed,
    /// Values of others in a newer form than this relay reads: left out.
    newer,
}
