//! Marks of explicit congestion notification (RFC 3168), as IP carries them.

/// How the network marked a packet (ECN, RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Mark {
    /// Not ECT, or it is not known.
    #[default]
    None,
    /// ECT(0).
    Ect0,
    /// ECT(1): low latency is wanted (RFC 9331).
    Ect1,
    /// CE: there was congestion.
    Ce,
}

/// How many packets came with each mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MarkCounts {
    /// Those marked ECT(0).
    pub ect0: u64,
    /// Those marked ECT(1).
    pub ect1: u64,
    /// Those marked CE.
    pub ce: u64,
}

impl MarkCounts {
    /// Counts a packet.
    pub const fn count(&mut self, mark: Mark) {
        match mark {
            Mark::None => (),
            Mark::Ect0 => self.ect0 += 1,
            Mark::Ect1 => self.ect1 += 1,
            Mark::Ce => self.ce += 1,
        }
    }

    /// What came since the counts were `before`; `None` if any of those was larger.
    pub fn since(&self, before: &MarkCounts) -> Option<MarkCounts> {
        Some(MarkCounts {
            ect0: self.ect0.checked_sub(before.ect0)?,
            ect1: self.ect1.checked_sub(before.ect1)?,
            ce: self.ce.checked_sub(before.ce)?,
        })
    }
}
