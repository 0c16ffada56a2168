//! What is emulated, as data.

use std::collections::BTreeMap;

use outflow_rtp::sdp::MediaDescription;
use outflow_sim::network::{EndModel, LinkModel, NetworkError, PathModel, Way, ways};

use crate::limits::{ENDS_MAX, LINKS_MAX};

/// Links, ends, and the paths between them.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// All chance comes from it.
    pub seed: u64,
    /// Links by name.
    pub links: BTreeMap<String, LinkModel>,
    /// Ends by name.
    pub ends: BTreeMap<String, EndModel>,
    /// One for each pair of ends, in each direction, at most.
    pub paths: Vec<PathModel>,
    /// What the media are that go through it, where that is described.
    pub described: Vec<MediaDescription>,
}

impl From<&outflow_sim::network::Network> for Network {
    /// What of a scenario is emulated: all but its traffic, for which programs stand.
    fn from(scenario: &outflow_sim::network::Network) -> Self {
        Network {
            seed: scenario.seed,
            links: scenario.links.clone(),
            ends: scenario.ends.clone(),
            paths: scenario.paths.clone(),
            described: Vec::new(),
        }
    }
}

impl Network {
    /// Two ends with a link there and a link back.
    pub fn between(ends: [&str; 2], there: LinkModel, back: LinkModel, seed: u64) -> Self {
        let path = |from: &str, to: &str, via: &str| PathModel {
            from: from.to_owned(),
            to: to.to_owned(),
            via: vec![via.to_owned()],
        };
        Network {
            seed,
            links: [("there".to_owned(), there), ("back".to_owned(), back)].into_iter().collect(),
            ends: ends.map(|name| (name.to_owned(), EndModel::default())).into_iter().collect(),
            paths: vec![path(ends[0], ends[1], "there"), path(ends[1], ends[0], "back")],
            described: Vec::new(),
        }
    }

    /// Its paths, by the numbers of ends and links.
    pub(crate) fn ways(&self) -> Result<Vec<Way>, NetworkError> {
        let must = |most: usize| format!("must be at most {most}: leave some out");
        for (key, count, most) in [
            ("ends", self.ends.len(), ENDS_MAX),
            ("links", self.links.len(), LINKS_MAX),
            ("paths", self.paths.len(), LINKS_MAX),
        ] {
            if count > most {
                return Err(NetworkError::Value { key: key.to_owned(), must: must(most) });
            }
        }
        ways(&self.ends, &self.links, &self.paths)
    }
}
