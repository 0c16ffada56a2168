//! What a sink brings along that goes from one branch to another.

use bytes::Bytes;

use outflow_ring::Seq;

/// What a sink alone is sent between two branches: datagrams, with the RTP headers that they have where they
/// go by RTP.
#[derive(Debug, Default)]
pub(crate) struct Splice {
    datagrams: Vec<(Bytes, [u8; 12])>,
    given: usize,
}

/// How a sink came from a branch that carries something else, at a key frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered {
    /// Where it began here.
    pub(crate) at: Seq,
    /// Of what stands before this position, it has had all but the main track.
    pub(crate) had: Seq,
}

impl Splice {
    pub(crate) fn new(datagrams: Vec<(Bytes, [u8; 12])>) -> Self {
        Splice { datagrams, given: 0 }
    }

    /// The next of it is given, if not all was.
    pub(super) fn give(&mut self) -> Option<&(Bytes, [u8; 12])> {
        let next = self.datagrams.get(self.given)?;
        self.given += 1;
        Some(next)
    }

    /// Whether all of it was given.
    pub(crate) fn is_given(&self) -> bool {
        self.given == self.datagrams.len()
    }

    /// What is still to be given.
    pub(super) fn left(&self) -> &[(Bytes, [u8; 12])] {
        self.datagrams.get(self.given..).unwrap_or_default()
    }

    /// What the last order was.
    pub(crate) fn given(&self) -> Option<&(Bytes, [u8; 12])> {
        self.datagrams.get(self.given.checked_sub(1)?)
    }

    /// The last order was not carried out.
    pub(super) fn take_back(&mut self) {
        self.given = self.given.saturating_sub(1);
    }
}
