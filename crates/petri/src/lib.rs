//! What may be delivered of a stream, in which order, and until when.
//!
//! A service is declared as a Time Stream Petri Net ([`net`]): which objects of a stream belong together,
//! which must come before which, and how long each stays useful. What two ends agree on is a [`service`]: a
//! net for each direction, how reliable its objects are, and how much of them is kept. Both are read and
//! written as text, and as bytes ([`leb128`]).
//!
//! There is no I/O here, no clock, and nothing allocates by a length that the network claims.

pub mod leb128;
pub mod limits;
pub mod net;
pub mod save;
pub mod service;
