//! What goes along a line.

use std::sync::{Arc, Mutex, PoisonError};

use outflow_graph::{Item, Message, Stage, Target};
use outflow_media::Time;

/// What one lane gives to another.
#[derive(Debug)]
pub(super) enum Passed {
    /// A packet, and where it goes.
    Packet(Target, Item),
    /// The packets before this belong together: they are worked on, at this time.
    End(Time),
    /// So they are, and then it is the next lane's turn.
    Turn(Time),
    /// What every lane is to hear, each once, in this place between the packets.
    ForAll(ForAll),
}

/// What every lane is to hear.
#[derive(Debug, Clone)]
pub(super) enum ForAll {
    /// What the source tells, and where it goes.
    Messages(Time, Vec<(Target, Message)>),
    /// Whether what comes out of each element is wanted.
    Wanted(Arc<[bool]>),
    /// An element is to let everything pass as it is, or no longer.
    Bypass(Arc<str>, bool),
    /// Stages for their contexts.
    Stages(Carried),
    /// All stages are to come back.
    Recall(Carried),
}

/// Stages on their way to their contexts, or back: by context and lane.
#[derive(Debug, Clone)]
pub(super) struct Carried(Arc<Mutex<Vec<Vec<Option<Stage>>>>>);

impl Carried {
    pub(super) fn new(stages: Vec<Vec<Option<Stage>>>) -> Self {
        Carried(Arc::new(Mutex::new(stages)))
    }

    fn with<T>(&self, at: (usize, usize), act: impl FnOnce(&mut Option<Stage>) -> T) -> Option<T> {
        let mut stages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stages.get_mut(at.0)?.get_mut(at.1).map(act)
    }

    /// Takes out the one for this place.
    pub(super) fn take(&self, at: (usize, usize)) -> Option<Stage> {
        self.with(at, Option::take).flatten()
    }

    /// Puts down the one of this place.
    pub(super) fn put(&self, at: (usize, usize), stage: Option<Stage>) {
        self.with(at, |place| *place = stage);
    }

    /// All of them, those of a context as one again.
    pub(super) fn joined(&self) -> Vec<Stage> {
        let mut stages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = stages.drain(..).map(|lanes| lanes.into_iter().flatten().collect());
        lanes.filter_map(Stage::join).collect()
    }
}
