//! What an element takes and gives, and what fits what.

use core::fmt;

use super::content::{Content, Contents};
use super::message::Signals;

/// What an element takes and gives.
///
/// Of a stream with several tracks, an element works on those that it takes and lets the others pass;
/// there must be one that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// What it can work on.
    pub takes: Contents,
    /// What it is given at once.
    pub unit: Unit,
    /// What comes out of it.
    pub gives: Gives,
    /// What it does with messages.
    pub control: Control,
    /// What it may work on in several lanes at a time: what becomes of a frame of this depends on
    /// nothing before it.
    pub parallel: Contents,
}

/// What an element is given at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Packets as they come.
    #[default]
    Packets,
    /// All packets of a frame together, as many as came.
    Frames,
}

/// What comes out of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// The same as went in.
    Same,
    /// The same as went in, but of each pair the second for the first.
    Turned(&'static [(Content, Content)]),
    /// This, whatever went in.
    Only(Content),
    /// One of these: which, is known when the element is told what comes in.
    OneOf(Contents),
}

/// Which messages cause what in an element. Those that it does not hear pass by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// It is told of these, and they go on as they are.
    pub hears: Signals,
    /// It is told of these, and what goes on is what it makes of them.
    pub changes: Signals,
    /// It is told of these, and they go no further: they mean nothing behind it.
    pub ends: Signals,
    /// It cannot work where these do not come.
    pub needs: Signals,
}

impl Contract {
    /// One that takes and gives packets, and lets messages pass.
    pub const fn new(takes: Contents, gives: Gives) -> Self {
        Contract { takes, unit: Unit::Packets, gives, control: Control::NONE, parallel: Contents::NONE }
    }

    /// The same for an element that does this with messages.
    pub const fn with(self, control: Control) -> Self {
        Contract { control, ..self }
    }

    /// The same for an element that may work on several frames of this at a time.
    pub const fn parallel(self, parallel: Contents) -> Self {
        Contract { parallel, ..self }
    }

    /// The same for an element that is given this at once.
    pub const fn each(self, unit: Unit) -> Self {
        Contract { unit, ..self }
    }

    /// What may come out if one of `worlds` goes in; nothing if none of them fits.
    pub fn through(&self, worlds: Contents) -> Contents {
        let fit = worlds.and(self.takes);
        match self.gives {
            _ if fit.is_empty() => Contents::NONE,
            Gives::Same => fit,
            Gives::Turned(pairs) => turned(fit, pairs),
            Gives::Only(content) => Contents::of(&[content]),
            Gives::OneOf(contents) => contents,
        }
    }
}

fn turned(from: Contents, pairs: &[(Content, Content)]) -> Contents {
    let becomes = |content| pairs.iter().find(|(from, _)| *from == content).map_or(content, |(_, to)| *to);
    from.iter().fold(Contents::NONE, |all, content| all.with(Contents::of(&[becomes(content)])))
}

impl Control {
    /// It lets all pass by.
    pub const NONE: Control =
        Control { hears: Signals::NONE, changes: Signals::NONE, ends: Signals::NONE, needs: Signals::NONE };

    /// It is told of these.
    pub const fn hears(hears: Signals) -> Self {
        Control { hears, ..Control::NONE }
    }

    /// All that it is told of.
    pub const fn told(&self) -> Signals {
        self.hears.with(self.changes).with(self.ends)
    }
}

impl fmt::Display for Gives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gives::Same => f.write_str("what it took"),
            Gives::Turned(pairs) => {
                let pair = |(from, to): &(Content, Content)| format!("{} for {}", to.as_str(), from.as_str());
                let pairs: Vec<_> = pairs.iter().map(pair).collect();
                write!(f, "what it took, but {}", pairs.join(", "))
            }
            Gives::Only(content) => f.write_str(content.as_str()),
            Gives::OneOf(contents) => contents.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_is_what_fits_or_what_is_made_of_it() {
        let crop = Contract::new(Contents::IMAGES, Gives::Same);
        assert_eq!(crop.through(Contents::ANY), Contents::IMAGES);
        assert!(crop.through(Contents::of(&[Content::Ts, Content::H264])).is_empty());
        let gray = Contract::new(Contents::IMAGES, Gives::Turned(&[(Content::Ppm, Content::Pgm)]));
        assert_eq!(gray.through(Contents::PNM), Contents::of(&[Content::Pgm]));
        assert_eq!(gray.gives.to_string(), "what it took, but PGM images for PPM images");
        let mux = Contract::new(Contents::RTP, Gives::Only(Content::Ts));
        assert_eq!(mux.through(Contents::ANY), Contents::of(&[Content::Ts]));
        assert!(mux.through(Contents::of(&[Content::Ppm])).is_empty());
        let decrypt = Contract::new(Contents::of(&[Content::Srtp]), Gives::OneOf(Contents::RTP));
        assert_eq!(decrypt.through(Contents::ANY), Contents::RTP);
    }
}
