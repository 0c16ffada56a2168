//! What goes through a graph besides packets.

use core::fmt;

use outflow_media::Time;

/// What the source tells besides its packets. It goes from element to element as packets do, behind
/// those that came before it; what each does with it is in its [`Control`](super::Control).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The clocks of a track (RFC 3550, section 6.4.1).
    Clock(TrackTime),
    /// The source was restarted: what comes does not continue what was.
    Break,
}

/// Times of a track that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackTime {
    /// The track.
    pub track: u8,
    /// Wall clock, NTP, 32.32 fixed point seconds since 1900.
    pub ntp: u64,
    /// The same in ticks of the track.
    pub rtp: u32,
    /// When that is.
    pub at: Time,
    /// The source says so, and its tracks agree; else it is by when packets came.
    pub told: bool,
}

macro_rules! signals {
    ($($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        /// The kinds of messages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Signal {
            $($(#[$doc])* $variant,)+
        }

        impl Signal {
            /// Every one there is.
            pub const ALL: &[Signal] = &[$(Signal::$variant,)+];
            /// Their names, in the same order.
            pub const NAMES: &[&str] = &[$($word,)+];

            /// Its name.
            pub const fn as_str(self) -> &'static str {
                Signal::NAMES[self as usize]
            }
        }
    };
}

signals! {
    /// [`Message::Clock`].
    Clock = "clock",
    /// [`Message::Break`].
    Break = "break",
}

/// A set of [`Signal`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals(u8);

impl Message {
    /// Its kind.
    pub const fn signal(&self) -> Signal {
        match self {
            Message::Clock(_) => Signal::Clock,
            Message::Break => Signal::Break,
        }
    }
}

impl Signals {
    /// None.
    pub const NONE: Signals = Signals(0);
    /// Every one.
    pub const ALL: Signals = Signals((1 << Signal::ALL.len()) - 1);
    /// Clocks.
    pub const CLOCK: Signals = Signals(1 << Signal::Clock as u8);
    /// Breaks.
    pub const BREAK: Signals = Signals(1 << Signal::Break as u8);

    /// Whether this one is in it.
    pub const fn has(self, signal: Signal) -> bool {
        self.0 >> signal as u8 & 1 == 1
    }

    /// Both together.
    pub const fn with(self, other: Signals) -> Self {
        Signals(self.0 | other.0)
    }

    /// What is in this one alone.
    pub const fn without(self, other: Signals) -> Self {
        Signals(self.0 & !other.0)
    }

    /// Those of these names.
    pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let named = |name: &str| Signal::NAMES.iter().position(|known| *known == name);
        names.into_iter().filter_map(named).fold(Signals::NONE, |all, at| Signals(all.0 | 1 << at))
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is in it.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        Signal::ALL.iter().copied().filter(move |signal| self.has(*signal))
    }
}

impl fmt::Display for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, signal) in self.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            f.write_str(signal.as_str())?;
        }
        Ok(())
    }
}
