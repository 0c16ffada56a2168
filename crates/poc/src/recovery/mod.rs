//! What was received, what was sent and what became of it, and what is sent again.
//!
//! | type | knows | answers |
//! |---|---|---|
//! | [`Received`] | packets that came, and when | whether one is a duplicate, when an acknowledgement is due and what is in it |
//! | [`Sent`] | packets in flight, and what was in them | what was acknowledged and what was lost, when to probe |
//! | [`Rtt`] | times of round trips | what to wait for |
//! | [`Repairs`] | what is left of a budget | whether what was lost is sent again, and how often |
//!
//! Packet numbers are never used twice: what is sent again is in a new packet. Loss is detected as in RFC
//! 9002, by packets and by time; both thresholds rise when a packet that was declared lost is acknowledged
//! after all, and fall again later.

mod received;
mod repair;
mod rtt;
mod sent;

pub use received::{Arrived, Received, Settings as ReceivedSettings};
pub use repair::{Counts as RepairCounts, GiveUp, Piece, Repair, Repairs, Settings as RepairSettings};
pub use rtt::Rtt;
pub use sent::{
    AckError, Acked, Cause, Counts as SentCounts, Full, Lost, Outcome, Sent, Settings as SentSettings,
    Spurious,
};

#[cfg(test)]
mod properties;
