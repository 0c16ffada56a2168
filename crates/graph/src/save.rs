//! A graph goes on in another process: with what its elements say of themselves.

use super::{Graph, Replay};

/// What elements say of themselves, by their names.
pub type SavedElements = Vec<(String, Vec<u8>)>;

impl Graph {
    /// What elements that are here say of themselves for another process. Those that can begin afresh say nothing.
    pub fn save(&self) -> SavedElements {
        self.nodes().filter_map(|node| Some((node.name.clone(), node.element.save()?))).collect()
    }

    /// Its elements go on from what another process has saved. The packets that come next are the last ones that the
    /// other had; `trial` is what another graph that was told the same says behind them, which is nothing there.
    pub fn restore_before(&mut self, saved: &SavedElements, trial: Option<&SavedElements>) {
        self.restore(saved, |name| Replay::Before(trial.and_then(|trial| of(trial, name))));
    }

    /// Its elements have worked on these packets, and stand where those of the other process stood.
    pub fn restore_after(&mut self, saved: &SavedElements) {
        self.restore(saved, |_| Replay::After);
    }

    fn restore<'a>(&mut self, saved: &SavedElements, at: impl Fn(&str) -> Replay<'a>) {
        for node in self.stages.iter_mut().flat_map(|stage| &mut stage.nodes) {
            if let Some(saved) = of(saved, &node.name) {
                node.element.restore(saved, at(&node.name));
            }
        }
    }
}

fn of<'a>(all: &'a SavedElements, name: &str) -> Option<&'a [u8]> {
    all.iter().find(|(of, _)| of == name).map(|(_, state)| &state[..])
}
