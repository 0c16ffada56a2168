//! A graph goes on in another process: with what its elements say of themselves.

use minicbor::{Decode, Encode};

use super::{Graph, Replay};

/// What an element says of itself, in a form of its own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedElement {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// What it says.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub state: Vec<u8>,
}

impl Graph {
    /// What elements that are here say of themselves for another process. Those that can begin afresh say nothing.
    pub fn save(&self) -> Vec<SavedElement> {
        let says = self.nodes().filter_map(|node| Some((&node.name, node.element.save()?)));
        says.map(|(name, state)| SavedElement { name: name.clone(), state }).collect()
    }

    /// Its elements go on from what another process has saved. The packets that come next are the last ones that the
    /// other had; `trial` is what another graph that was told the same says behind them, which is nothing there.
    pub fn restore_before(&mut self, saved: &[SavedElement], trial: Option<&[SavedElement]>) {
        self.restore(saved, |name| Replay::Before(trial.and_then(|trial| of(trial, name))));
    }

    /// Its elements have worked on these packets, and stand where those of the other process stood.
    pub fn restore_after(&mut self, saved: &[SavedElement]) {
        self.restore(saved, |_| Replay::After);
    }

    fn restore<'a>(&mut self, saved: &[SavedElement], at: impl Fn(&str) -> Replay<'a>) {
        for node in self.stages.iter_mut().flat_map(|stage| &mut stage.nodes) {
            if let Some(saved) = of(saved, &node.name) {
                node.element.restore(saved, at(&node.name));
            }
        }
    }
}

fn of<'a>(all: &'a [SavedElement], name: &str) -> Option<&'a [u8]> {
    all.iter().find(|element| element.name == name).map(|element| &element.state[..])
}
