//! Ends, at which real programs run when a network is emulated, and the paths between them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::model::{Network, NetworkError};
use crate::limits::PATHS_MAX;

/// An end. In virtual time nothing is there: traffic says what goes through the links.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndModel {
    /// The program that runs there, and its arguments.
    #[serde(default)]
    pub run: Vec<String>,
}

/// A path from an end to another one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathModel {
    /// The end at which it begins.
    pub from: String,
    /// The end to which it leads.
    pub to: String,
    /// The links that packets go through, in this order.
    pub via: Vec<String>,
}

/// A path, by the numbers of ends and links in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) links: Vec<usize>,
}

/// The paths between ends.
///
/// # Errors
/// One joins what is not there, or there are two for a pair of ends.
pub(super) fn ways(network: &Network) -> Result<Vec<Path>, NetworkError> {
    let Network { ends, links, paths, nodes, .. } = network;
    if paths.len() > PATHS_MAX {
        let must = format!("must be at most {PATHS_MAX}: leave some out");
        return Err(NetworkError::Value { key: "paths".to_owned(), must });
    }
    let mut ways: Vec<Path> = Vec::new();
    for PathModel { from, to, via } in paths {
        let wrong = |why: String| NetworkError::Path { from: from.clone(), to: to.clone(), why };
        let end = |name: &String| {
            let is_node = nodes.contains_key(name);
            let why = || match is_node {
                true => format!("{name} is a node, and paths are of ends: join both by a segment"),
                false => unknown("end", name, ends),
            };
            place(ends, name).ok_or_else(|| wrong(why()))
        };
        let link = |name| place(links, name).ok_or_else(|| wrong(unknown("link", name, links)));
        let (begins, leads) = (end(from)?, end(to)?);
        if begins == leads {
            return Err(wrong("it leads back to where it begins: name another end".to_owned()));
        }
        if ways.iter().any(|way| (way.from, way.to) == (begins, leads)) {
            return Err(wrong("there are two of them: leave one out".to_owned()));
        }
        let links = via.iter().map(link).collect::<Result<_, _>>()?;
        ways.push(Path { from: begins, to: leads, links });
    }
    Ok(ways)
}

fn place<T>(all: &BTreeMap<String, T>, name: &String) -> Option<usize> {
    all.keys().position(|known| known == name)
}

fn unknown<T>(what: &str, name: &str, all: &BTreeMap<String, T>) -> String {
    let names: Vec<_> = all.keys().map(String::as_str).collect();
    format!("there is no {what} '{name}': possible are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::model::Network;

    const NETWORK: &str = "seed = 1\nduration = '1 s'\n[links.up]\n[links.down]\n\
        [ends.studio]\nrun = ['true']\n[ends.home]\n\
        [[paths]]\nfrom = 'studio'\nto = 'home'\nvia = ['down']\n\
        [[paths]]\nfrom = 'home'\nto = 'studio'\nvia = ['up']\n";

    #[test]
    fn what_cannot_be_joined_is_refused_with_both_ends_named() {
        let network = Network::parse(NETWORK).expect("valid");
        assert_eq!(
            (network.ends["studio"].run.as_slice(), network.paths.len()),
            (&["true".to_owned()][..], 2)
        );
        for (from, to, error) in [
            (
                "to = 'home'",
                "to = 'hone'",
                "from studio to hone: there is no end 'hone': possible are home, studio",
            ),
            (
                "['up']",
                "['up', 'moon']",
                "from home to studio: there is no link 'moon': possible are down, up",
            ),
            ("to = 'home'", "to = 'studio'", "from studio to studio: it leads back to where it begins"),
            (
                "from = 'home'\nto = 'studio'",
                "from = 'studio'\nto = 'home'",
                "from studio to home: there are two of them",
            ),
        ] {
            let wrong = Network::parse(&NETWORK.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(wrong.contains(error), "{wrong}");
        }
    }
}
