//! Bounds of the levels: receivers get no more than these, whatever they ask for. What they asked for stays
//! known, and is what they get again when a bound goes.

use std::collections::BTreeMap;

use outflow_packet::Level;

/// The best levels that receivers of a stream get. One beyond the last level is the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelBounds {
    /// Of all receivers.
    pub stream: Level,
    /// Of those of a declared branch, by its name; it need not be there yet.
    pub branches: BTreeMap<String, Level>,
}

impl LevelBounds {
    /// Adds a bound, of a branch or of the whole stream. The lowest level holds.
    pub fn lower(&mut self, branch: Option<&str>, to: Level) {
        let bound = match branch {
            Some(name) => self.branches.entry(name.to_owned()).or_default(),
            None => &mut self.stream,
        };
        *bound = to.max(*bound);
    }

    /// The bound of sinks of a declared branch, or the stream as it comes in.
    pub(in crate::control) fn of(&self, branch: Option<&str>) -> Level {
        let of_branch = branch.and_then(|name| self.branches.get(name));
        self.stream.max(of_branch.copied().unwrap_or_default())
    }
}
