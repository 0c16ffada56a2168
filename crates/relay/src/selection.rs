//! What of a stream a receiver asks for.

use outflow_graph::View;
use outflow_packet::Level;

/// What of a stream a receiver asks for. The default is the stream as it comes in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// One of its branches, by name.
    pub branch: Option<String>,
    /// What is to be seen of its images.
    pub view: View,
    /// The quality.
    pub level: Level,
}

impl Selection {
    /// Whether it is the stream as it comes in.
    pub fn is_all(&self) -> bool {
        *self == Selection::default()
    }
}
