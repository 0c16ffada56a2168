//! The elements that the core brings along, a file each. Each is one line in the
//! [`CATALOGUE`](crate::graph::CATALOGUE).

pub mod decrypt;
pub mod duplicate;
pub mod encrypt;
pub mod filter;
pub mod merge;
pub mod pass;
pub mod prioritise;
pub mod rate_limit;
pub mod redirect;
pub mod remark;
pub mod sample;
pub mod to_ts;

mod bucket;
mod by_frame;
mod copies;
mod select;
mod srtp;
#[cfg(test)]
mod testing;
mod verdict;
