//! Segments: what several ends and nodes are joined by, as by a wire, a radio or a network between.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A segment. A packet that is sent there once comes to one of the others, or, to a group, to all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentModel {
    /// The ends and nodes that it joins, two or more. The first one has the addresses that end with 1 there.
    pub joins: Vec<String>,
    /// The links that all packets go through, in this order.
    #[serde(default)]
    pub via: Vec<String>,
    /// The links that what one of them sends goes through before that.
    #[serde(default)]
    pub from: BTreeMap<String, Vec<String>>,
    /// The links that what comes to one of them goes through behind that.
    #[serde(default)]
    pub to: BTreeMap<String, Vec<String>>,
}
