//! What is handed over of connections to the process that goes on with them: what the peer must see go on, and
//! what its application has not read. Keys, packet numbers, what was received, what is not acknowledged, units with
//! their deadlines, flow control, what is known of the path.
//!
//! | left out | what follows |
//! |---|---|
//! | handshakes that are under way | the client asks again |
//! | what congestion control watches others by | the window and the least delay go over, and it finds out again |
//! | packets that were declared lost | a late acknowledgement of one is not noticed as such |
//! | how late packets may come before they count as lost | it begins as at the start, and is learnt again |
//! | a question where the peer is, and an answer to one | it is asked again with the next packet |
//!
//! Numbers of fields are never given to something else: a reader passes over those that it does not know. Times are
//! nanoseconds since the zero that both processes share. Everything that is read is checked ([`Unfit`]).

mod connection;
mod converted;
mod counts;
mod endpoint;
mod flows;
mod packets;
mod values;

pub use self::connection::{SavedClosed, SavedConnection, SavedEvent, SavedMtu, SavedPath, SavedState};
pub use self::counts::{
    SavedDatagramCounts, SavedEndpointCounts, SavedIncomingCounts, SavedOutgoingCounts, SavedRepairCounts,
    SavedSentCounts,
};
pub use self::endpoint::{SavedEndpoint, SavedPlace};
pub use self::flows::{
    SavedAssembly, SavedCopy, SavedGroup, SavedIncoming, SavedOrphans, SavedOutgoing, SavedUnit, SavedWhole,
};
pub use self::packets::{
    SavedArrival, SavedContent, SavedDelay, SavedItem, SavedPacket, SavedPiece, SavedReceived, SavedRtt,
    SavedSent,
};
pub use self::values::{SavedAddress, SavedBytes, SavedId, SavedMarks, SavedSecret, SavedSpan, Services};
pub use outflow_petri::save::Unfit;

use outflow_media::Time;
use outflow_petri::limits::NUMBER_MAX;

/// Numbers of packets and units are below: sums of some of them fit.
pub(crate) const NUMBER_MOST: u64 = NUMBER_MAX / 4;

/// Fails if it is not right.
pub(crate) fn check(is_right: bool, what: &'static str, why: &'static str) -> Result<(), Unfit> {
    if is_right { Ok(()) } else { Err(Unfit { what, why }) }
}

/// A time that there may be.
pub(crate) fn time(nanos: Option<u64>) -> Option<Time> {
    nanos.map(Time::from_nanos)
}

/// The same to be saved.
pub(crate) fn nanos(time: Option<Time>) -> Option<u64> {
    time.map(Time::as_nanos)
}
