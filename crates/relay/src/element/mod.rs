//! The elements that the core brings along, a file each. Each is one line in the
//! [`CATALOGUE`](crate::graph::CATALOGUE).

pub mod convert;
pub mod crop;
pub mod gray;
pub mod images;
pub mod pass;
pub mod shrink;
pub mod to_ts;
pub mod view;
