//! Kept or left out: the verdict of elements that leave frames out.

use outflow_packet::DropReason;

use super::by_frame::Verdict;
use crate::{Form, Item, Opt};

/// The outputs of elements that part what they keep from the rest.
pub(super) const OUT_AND_REST: &[&str] = &["out", "rest"];

/// The option to keep frames whose references were left out.
pub(super) const DEPENDENTS: Opt = Opt::new(
    "dependents",
    Form::Flag,
    Some("true"),
    "A frame that needs one that was left out is left out, too, and counted as depends-on-dropped.",
);

/// Whether a frame is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It goes on.
    Yes,
    /// It does not.
    No(DropReason),
}

impl Kept {
    /// Kept if `keep` says so, else left out for this reason.
    pub(super) fn if_so(keep: bool, reason: DropReason) -> Self {
        if keep { Kept::Yes } else { Kept::No(reason) }
    }

    /// Lets a packet leave by one of [`OUT_AND_REST`].
    pub(super) fn part(self, item: &mut Item) {
        match self {
            Kept::Yes => item.leave_by(0, DropReason::Filtered),
            Kept::No(reason) => item.leave_by(1, reason),
        }
    }
}

impl Verdict for Kept {
    fn leaves_out(self) -> bool {
        self != Kept::Yes
    }
}
