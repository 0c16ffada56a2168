//! A fault: what it does, what undoes it, and which viewers it concerns.

use anyhow::Result;

use crate::audience::Viewer;
use crate::background::Background;
use crate::logs::LogTo;
use crate::scene::{STUDIO, Scene};

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
}

impl Concerns {
    pub(crate) fn viewer(self, viewer: &Viewer) -> bool {
        match self {
            Concerns::None => false,
            Concerns::Studio => viewer.stream == STUDIO,
            Concerns::Fragile => viewer.is_fragile,
            Concerns::Copied => viewer.is_copied,
        }
    }
}

/// Something that goes wrong.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) concerns: Concerns,
    /// Where the relay has to log to for it, if that matters.
    pub(crate) log: Option<LogTo>,
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
        Fault { name, concerns, log: None, begin }
    }

    /// The same for which it logs there.
    pub(crate) const fn logged(self, to: LogTo) -> Fault {
        Fault { log: Some(to), ..self }
    }

    /// Whether both can happen at the same time.
    pub(crate) fn goes_with(&self, other: &Fault) -> bool {
        let differ = self.concerns != other.concerns || self.concerns == Concerns::None;
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
