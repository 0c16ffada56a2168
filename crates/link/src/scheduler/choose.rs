//! What choosing among the buffers of a link means: what is asked, and what is known of each.

use core::fmt::Debug;

use outflow_turns::Part as Share;

use crate::flow::Medium;
use crate::streams::Party;

/// A buffer that has something to send, as far as choosing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Bytes of the packet that goes next.
    pub(crate) bytes: usize,
    /// Its share of the service, in parts of the sum of those that have something to send.
    pub(crate) weight: u64,
    /// The mean of all buffers, whether they have something to send or not.
    pub(crate) mean_weight: u64,
    /// The smaller, the sooner.
    pub(crate) class: u8,
    /// Of what its service is a part, where weights are given.
    pub(crate) part: Part,
}

/// Of what the service of a buffer is a part: of an application's, in that of a party's, and in that its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The application, as configurations name it.
    pub(crate) medium: Medium,
    /// What it weighs among applications.
    pub(crate) medium_weight: u64,
    /// The stream, or the buffer, where streams share one.
    pub(crate) party: Party,
    /// What that weighs in its application.
    pub(crate) party_weight: u64,
    /// What the buffer weighs among those of the party.
    pub(crate) buffer_weight: u64,
}

/// What is to be known of a buffer now; `None` if it has nothing to send.
pub(crate) type Look<'l> = &'l dyn Fn(usize) -> Option<Candidate>;

/// Chooses among buffers, without looking at all of them.
pub(crate) trait Scheduler: Debug + Send {
    /// What each class below the highest that has something is promised of the bytes from now on, where classes are
    /// heeded.
    fn promise(&mut self, lower_share: Share) {
        let _ = lower_share;
    }

    /// A buffer has something to send. It may have had before.
    fn wakes(&mut self, buffer: usize);

    /// The buffer that is next. One packet of it is taken out then. Those that turn out to have nothing to
    /// send are left out until they wake.
    fn next(&mut self, look: Look<'_>) -> Option<usize>;

    /// The packet that was taken out last does not take the link: it was too late for it.
    fn spared(&mut self) {}
}
