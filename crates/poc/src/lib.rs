//! The partial-order transport (POC): what may be delivered to a receiver, in which order, and until when it
//! is worth sending again.
//!
//! A service is declared as a Time Stream Petri Net ([`outflow_petri::net`]): which objects of a stream belong
//! together, which must come before which, and how long each stays useful. Sender and receiver run the same
//! net, so that both know what a loss means: whether the stream waits for the object, or goes on without it.
//!
//! What travels in datagrams is in [`packet`], what became of them and what is sent again in [`recovery`]. How
//! fast to send is decided by [congestion control](outflow_congestion) that keeps queues short. How packets are
//! encrypted is up to a [`protection`].
//!
//! There is no I/O here, no clock, and nothing allocates by a length that the network claims.

pub mod address;
pub mod connection;
pub mod endpoint;
pub mod limits;
pub mod packet;
pub mod protection;
pub mod recovery;
pub mod save;
pub mod secret;
