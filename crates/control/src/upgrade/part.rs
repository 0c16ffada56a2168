//! What a task of a front gives of a connection that another process goes on with.

use std::fmt;
use std::os::fd::OwnedFd;

use outflow_engine::message::SourceId;

/// A connection as its front takes it up again.
#[derive(Default)]
pub struct Part {
    /// What its front has to know.
    pub value: Vec<u8>,
    /// Copies of its descriptors.
    pub descriptors: Vec<OwnedFd>,
    /// The source's turn that goes on with it, if it publishes.
    pub turn: Option<SourceId>,
}

/// Values hold secrets of sessions, and stay out of logs.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { value, descriptors, turn } = self;
        write!(f, "Part {{ {} bytes, {} descriptors, turn {turn:?} }}", value.len(), descriptors.len())
    }
}
