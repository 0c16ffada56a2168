//! Sets of tracks.

/// A set of tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackMask(pub u32);

impl TrackMask {
    /// Every track.
    pub const ALL: TrackMask = TrackMask(u32::MAX);
    /// No track.
    pub const NONE: TrackMask = TrackMask(0);

    /// Just this track.
    pub const fn only(track: u8) -> Self {
        TrackMask(1 << (track & 31))
    }

    /// Whether `track` is in the set.
    pub const fn has(self, track: u8) -> bool {
        self.0 >> (track & 31) & 1 == 1
    }

    /// The set with `other` as well.
    pub const fn with(self, other: TrackMask) -> Self {
        TrackMask(self.0 | other.0)
    }

    /// The set without `other`.
    pub const fn without(self, other: TrackMask) -> Self {
        TrackMask(self.0 & !other.0)
    }

    /// Whether no track is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
