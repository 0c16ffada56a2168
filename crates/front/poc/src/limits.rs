//! Every limit of receivers of the partial-order transport, with what happens when it is reached.

use core::time::Duration;

/// What is given to the partial-order transport of what a receiver gets to catch up: as much as goes within that.
/// The rest stays in the ring.
pub(crate) const POC_CATCH_UP: Duration = Duration::from_millis(20);
