//! What the relay cannot do without: heartbeats of threads and tasks, and the first of them that ends unasked.

mod beat;
mod ends;

pub use beat::Beat;
pub use ends::{Fatal, Vital, why_panicked};
