//! The elements that the core brings along, a file each. Each is one line in the
//! [`CATALOGUE`](crate::graph::CATALOGUE).

pub mod pass;
pub mod wasm;
