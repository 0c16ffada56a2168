//! Work that one part of the relay makes and another one runs.

use std::pin::Pin;

/// Work that the caller runs: a listener, a source, a receiver that is sent to.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;
