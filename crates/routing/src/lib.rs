//! Multicast routing without I/O: who below wants which group or stream, at which level, and what is to be
//! asked for above because of it.
//!
//! There is no I/O here, no clock, and nothing allocates by a length that the network claims.

pub mod membership;
