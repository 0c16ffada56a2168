//! A fault: what it does, what undoes it, and which viewers it concerns.

use std::time::Duration;

use anyhow::Result;

use crate::trouble::audience::Viewer;
use crate::trouble::background::Background;
use crate::trouble::logs::LogTo;
use crate::trouble::scene::{STUDIO, Scene};

/// Which viewers may notice a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concerns {
    None,
    /// Those of the published stream.
    Studio,
    /// Those behind the network that fails.
    Fragile,
    /// Those of what another program copies.
    Copied,
    /// All: the relay's process ends, whether or not another one goes on with it.
    All,
}

impl Concerns {
    pub(crate) fn viewer(self, viewer: &Viewer) -> bool {
        match self {
            Concerns::None => false,
            Concerns::Studio => viewer.stream == STUDIO,
            Concerns::Fragile => viewer.is_fragile,
            Concerns::Copied => viewer.is_copied,
            Concerns::All => true,
        }
    }
}

/// How long viewers may take to catch up when a fault is over.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(3);

/// Something that goes wrong.
pub struct Fault {
    /// What it is called.
    pub name: &'static str,
    pub(crate) concerns: Concerns,
    /// Where the relay has to log to for it, if that matters.
    pub(crate) log: Option<LogTo>,
    /// How long viewers that it concerns may take to be up with their source when it is over.
    pub(crate) back_within: Duration,
    /// Has it happen.
    pub(crate) begin: fn(&mut Scene<'_>) -> Result<Box<dyn Trouble>>,
}

impl Fault {
    /// One for which it does not matter where the relay logs to.
    pub(crate) const fn new(
        name: &'static str,
        concerns: Concerns,
        begin: fn(&mut Scene<'_>) -> Result<Box<dyn Trouble>>,
    ) -> Fault {
        Fault { name, concerns, log: None, back_within: CATCH_UP, begin }
    }

    /// The same whose viewers may take so long to come back.
    pub(crate) const fn back_within(self, back_within: Duration) -> Fault {
        Fault { back_within, ..self }
    }

    /// The same for which it logs there.
    pub(crate) const fn logged(self, to: LogTo) -> Fault {
        Fault { log: Some(to), ..self }
    }

    /// The relay's process ends by it.
    pub fn ends_the_relay(&self) -> bool {
        self.concerns == Concerns::All
    }

    /// Whether both can happen at the same time.
    pub(crate) fn goes_with(&self, other: &Fault) -> bool {
        let differ = self.concerns != other.concerns || self.concerns == Concerns::None;
        let differ = differ && !self.ends_the_relay() && !other.ends_the_relay();
        self.name != other.name && (self.log.is_none() || other.log.is_none()) && differ
    }
}

/// A fault that has begun.
pub(crate) trait Trouble {
    /// Goes on, where a fault does so step by step.
    fn go_on(&mut self, _scene: &mut Scene<'_>) -> Result<()> {
        Ok(())
    }

    /// Undoes it; how much was done, where that can be counted.
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64>;
}

/// What goes on by itself, in threads.
pub(crate) struct Storm(pub(crate) Vec<Background>);

impl Trouble for Storm {
    fn undo(self: Box<Self>, _scene: &mut Scene<'_>) -> Result<u64> {
        Ok(self.0.into_iter().map(Background::stop).sum())
    }
}
