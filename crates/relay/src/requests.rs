//! What a receiver has asked for: how often it may, which requests are old, which were refused.

use outflow_media::{Rate, Time, TokenBucket};

use crate::limits::{LEVEL_REQUEST_EVERY, LEVEL_REQUESTS_BURST};
use crate::save::SavedAsked;

/// How fast requests may come.
const RATE: Rate = Rate::one_every(LEVEL_REQUEST_EVERY);

/// Why a request for a level was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There were many just before.
    TooMany,
    /// It names a source that this receiver does not receive.
    Foreign,
    /// It is older than one that came before.
    Replayed,
    /// The stream has no such level.
    NoSuchLevel,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Refusal; 4] =
        [Refusal::TooMany, Refusal::Foreign, Refusal::Replayed, Refusal::NoSuchLevel];

    /// Its name in metrics and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Refusal::TooMany => "too-many",
            Refusal::Foreign => "foreign",
            Refusal::Replayed => "replayed",
            Refusal::NoSuchLevel => "no-such-level",
        }
    }
}

/// What a receiver has asked for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Number of the newest request.
    newest: Option<u16>,
    /// Requests that may still come.
    left: TokenBucket,
    /// Requests that were taken.
    pub taken: u64,
    /// Those that were refused, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
}

impl Default for Asked {
    fn default() -> Self {
        // One, and the burst behind it.
        let left = TokenBucket::new(LEVEL_REQUESTS_BURST as u64 + 1);
        Asked { newest: None, left, taken: 0, refused: [0; Refusal::ALL.len()] }
    }
}

impl Asked {
    /// What goes on in another process.
    pub(crate) fn save(&self) -> SavedAsked {
        SavedAsked { newest: self.newest, taken: self.taken, refused: self.refused.to_vec() }
    }

    /// Goes on from what another process has saved. As many may come as of one that has just joined.
    pub(crate) fn restore(saved: &SavedAsked) -> Self {
        let mut asked = Asked { newest: saved.newest, taken: saved.taken, ..Asked::default() };
        for (refused, saved) in asked.refused.iter_mut().zip(&saved.refused) {
            *refused = *saved;
        }
        asked
    }

    /// One was refused.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Whether one more may come at this time.
    pub(crate) fn may(&mut self, now: Time) -> bool {
        let may = self.left.pass(now, RATE);
        if !may {
            self.refuse(Refusal::TooMany);
        }
        may
    }

    /// By how much the number of a request is higher than that of the newest: 0 of the same again, less of one
    /// that is older.
    pub(crate) fn step(&self, number: u16) -> i16 {
        self.newest.map_or(1, |newest| number.wrapping_sub(newest).cast_signed())
    }

    /// One was taken; with a number where it has one.
    pub(crate) fn take(&mut self, number: Option<u16>) {
        self.newest = number.or(self.newest);
        self.taken += 1;
    }
}
