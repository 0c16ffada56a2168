//! How much of a layered stream a sink takes, and where that may change: the `gmc` filter of the paper
//! (GMS, section III). A packet goes to a sink if its layer is within what the sink takes.

use core::fmt;
use core::num::NonZeroU8;
use core::str::FromStr;

use outflow_media::Tag;

/// The quality that a receiver asks for: 1 is the best, and the number of layers the base alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(NonZeroU8);

impl Level {
    /// All there is.
    pub const BEST: Level = Level(NonZeroU8::MIN);

    /// Layers have 7 bits, so there are no more levels than that.
    pub const MAX: u8 = 128;

    /// The level of this number, if that is 1 to [`Level::MAX`].
    pub const fn new(number: u8) -> Option<Self> {
        match NonZeroU8::new(number) {
            Some(number) if number.get() <= Self::MAX => Some(Level(number)),
            _ => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0.get()
    }

    /// The layers that belong to it, of `layers` layers: 0 … n − q. A level beyond the last is the base.
    pub const fn of(self, layers: u8) -> MaxLayer {
        match self {
            Level::BEST => MaxLayer::ALL,
            // There is nothing to choose.
            _ if layers <= 1 => MaxLayer::ALL,
            Level(number) => MaxLayer(layers.saturating_sub(number.get())),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What was asked for is no level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLevel(String);

impl fmt::Display for NoLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no level: write 1 (the best) to {}", self.0, Level::MAX)
    }
}

impl core::error::Error for NoLevel {}

impl TryFrom<u8> for Level {
    type Error = NoLevel;

    fn try_from(number: u8) -> Result<Self, NoLevel> {
        Level::new(number).ok_or_else(|| NoLevel(number.to_string()))
    }
}

impl FromStr for Level {
    type Err = NoLevel;

    fn from_str(text: &str) -> Result<Self, NoLevel> {
        text.trim().parse().ok().and_then(Level::new).ok_or_else(|| NoLevel(text.to_owned()))
    }
}

impl Default for Level {
    fn default() -> Self {
        Level::BEST
    }
}

/// The highest layer of its main track that a sink takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaxLayer(u8);

impl MaxLayer {
    /// All layers, however many there are.
    pub const ALL: MaxLayer = MaxLayer(Level::MAX - 1);

    /// Layers up to this one; all, if there is no such layer.
    pub const fn up_to(layer: u8) -> Self {
        if layer < Level::MAX { MaxLayer(layer) } else { MaxLayer::ALL }
    }

    /// Whether packets of this layer are taken.
    pub const fn takes(self, layer: u8) -> bool {
        layer <= self.0
    }

    /// Whether nothing above this layer is taken, if there is one given.
    pub const fn is_up_to(self, layer: Option<u8>) -> bool {
        match layer {
            Some(layer) => self.0 <= layer,
            None => false,
        }
    }

    /// The layer itself.
    pub const fn layer(self) -> u8 {
        self.0
    }

    /// The same layers, and those that are new, by the numbers that they have from this packet of the main track
    /// on ([`Tag::grown`]), of a sink that took all it asked for. Others wait for what opens.
    pub fn grown(self, level: Level, tag: &Tag) -> MaxLayer {
        let has_all_below = self.0 >= tag.layer.saturating_sub(tag.grown);
        let had = level.of(tag.layers.saturating_sub(tag.grown));
        if tag.grown > 0 && self == had && has_all_below { level.of(tag.layers) } else { self }
    }

    /// What a sink that wants `wish` takes from this packet of the main track on. `opens_all`: all layers
    /// can be taken from there.
    ///
    /// Less is taken from the next picture on; more where what is new can be decoded: where all layers open, or
    /// from a frame that opens the next layer.
    pub const fn from(self, wish: MaxLayer, tag: &Tag, opens_all: bool) -> MaxLayer {
        let less = wish.0 < self.0 && tag.first && !tag.adds;
        let opens = tag.first && tag.opens && tag.layer == self.0 + 1 && tag.layer <= wish.0;
        if less || (wish.0 > self.0 && opens_all) {
            wish
        } else if opens {
            MaxLayer(tag.layer)
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn level(number: u8) -> Level {
        Level::new(number).expect("it is one")
    }

    fn frame(layer: u8) -> Tag {
        Tag { layer, first: true, ..Tag::default() }
    }

    #[test]
    fn level_one_is_all_and_the_last_the_base() {
        assert_eq!(Level::BEST.of(0), MaxLayer::ALL, "of what nothing is known of, too");
        assert_eq!(
            (level(2).of(33), level(33).of(33), level(99).of(33)),
            (MaxLayer(31), MaxLayer(0), MaxLayer(0))
        );
        assert_eq!((Level::new(0), Level::new(129)), (None, None));
        assert_eq!("33".parse(), Ok(level(33)));
        assert!(["0", "129", "-1", "best", ""].iter().all(|text| text.parse::<Level>().is_err()));
    }

    #[test]
    fn less_is_taken_from_the_next_picture_on() {
        let goes_on = Tag { first: false, ..frame(0) };
        assert_eq!(MaxLayer(5).from(MaxLayer(2), &goes_on, false), MaxLayer(5));
        let adds = Tag { adds: true, ..frame(3) };
        assert_eq!(
            MaxLayer(5).from(MaxLayer(2), &adds, false),
            MaxLayer(5),
            "a spatial layer of the same picture"
        );
        assert_eq!(MaxLayer(5).from(MaxLayer(2), &frame(5), false), MaxLayer(2));
    }

    #[test]
    fn one_that_has_what_it_asked_for_has_it_when_layers_show_below() {
        // Of three spatial layers, the lowest has three temporal ones, as the second picture shows.
        let shows = Tag { layer: 2, layers: 5, grown: 2, ..frame(2) };
        let grown = |number: u8| level(number).of(3).grown(level(number), &shows);
        assert_eq!(
            [1, 2, 3, 4, 5].map(grown),
            [MaxLayer::ALL, MaxLayer(3), MaxLayer(2), MaxLayer(1), MaxLayer(0)]
        );
        assert_eq!(MaxLayer(0).grown(level(2), &shows), MaxLayer(0), "it waits for more");
        assert_eq!(MaxLayer(3).grown(level(2), &shows), MaxLayer(3), "once is enough");
        // There were two temporal layers, of which it took one.
        let shows = Tag { layer: 2, layers: 5, grown: 1, ..frame(2) };
        assert_eq!(level(4).of(4).grown(level(4), &shows), MaxLayer(0));
        assert_eq!(level(3).of(4).grown(level(3), &shows), MaxLayer(2));
    }

    #[test]
    fn more_is_taken_where_decoding_can_start_or_go_on() {
        assert_eq!(MaxLayer(0).from(MaxLayer(2), &frame(1), false), MaxLayer(0));
        assert_eq!(MaxLayer(0).from(MaxLayer(2), &frame(0), true), MaxLayer(2), "a key frame opens all");
        let opens = |layer| Tag { opens: true, ..frame(layer) };
        assert_eq!(MaxLayer(0).from(MaxLayer(2), &opens(1), false), MaxLayer(1), "layer by layer");
        assert_eq!(
            MaxLayer(0).from(MaxLayer(2), &opens(2), false),
            MaxLayer(0),
            "which needs the one below it"
        );
        assert_eq!(MaxLayer(0).from(MaxLayer(0), &opens(1), false), MaxLayer(0), "if that is wanted");
    }

    #[test]
    fn a_key_picture_of_spatial_layers_has_one_end() {
        // Of two spatial layers; for a sink that takes the lower one alone, the picture ends with that.
        let lower = Tag { key: true, opens: true, ends: Some(0), ..frame(0) };
        let upper = Tag { key: true, opens: true, adds: true, ..frame(1) };
        let had_asked = MaxLayer(0).from(MaxLayer(1), &lower, true);
        assert!(!had_asked.is_up_to(lower.ends), "it goes on for those that asked before");
        let asks_in_it = MaxLayer(0).from(MaxLayer(0), &lower, true);
        assert!(asks_in_it.is_up_to(lower.ends), "that it would is not known");
        assert_eq!(
            asks_in_it.from(MaxLayer(1), &upper, false),
            MaxLayer(1),
            "but none waits for the next key picture"
        );
    }
}
