//! Levels of quality.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A level of quality: 1 is the best one, with all layers, and larger ones have fewer. Not wanting anything
/// is no level.
///
/// A host that has a better one has all that others want, so that what several want is the smallest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Level(u8);

impl From<Level> for u8 {
    fn from(level: Level) -> u8 {
        level.0
    }
}

impl TryFrom<u8> for Level {
    type Error = NoLevel;

    fn try_from(number: u8) -> Result<Self, NoLevel> {
        Level::new(number).ok_or(NoLevel)
    }
}

/// What was given is no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("levels are 1 (the best) to 127")]
pub struct NoLevel;

impl Level {
    /// The best one. A host that does not say what it wants is served with it.
    pub const BEST: Level = Level(1);
    /// The last one that the tag of a packet has room for: seven bits.
    pub const LAST: Level = Level(127);

    /// The level of this number, from 1 to 127.
    pub const fn new(number: u8) -> Option<Level> {
        if number >= Level::BEST.0 && number <= Level::LAST.0 { Some(Level(number)) } else { None }
    }

    /// The same of a byte in which a peer may say more: beyond the last level it is the last one, which has
    /// all that the peer asks for. None for 0.
    pub const fn lowered(number: u8) -> Option<Level> {
        if number > Level::LAST.0 { Some(Level::LAST) } else { Level::new(number) }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_1_to_127() {
        assert_eq!((Level::new(0), Level::new(128)), (None, None));
        assert_eq!(Level::new(1), Some(Level::BEST));
        assert_eq!(Level::new(127).map(Level::number), Some(127));
    }

    #[test]
    fn what_a_peer_says_beyond_the_last_level_is_the_last_level() {
        let lowered = [0, 1, 127, 128, 255].map(|number| Level::lowered(number).map(Level::number));
        assert_eq!(lowered, [None, Some(1), Some(127), Some(127), Some(127)]);
    }
}
