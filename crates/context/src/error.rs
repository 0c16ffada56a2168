//! What can go wrong where a line is made.

use std::io;

use crate::limits::CONTEXTS_MAX;

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// There would be too many contexts.
    #[error("the execution contexts are at their limit of {CONTEXTS_MAX}: name a context in fewer elements")]
    TooMany,
    /// The system refuses a thread.
    #[error("starting the context '{context}': {error}")]
    System {
        /// Of this context.
        context: String,
        /// What it says.
        error: io::Error,
    },
}
