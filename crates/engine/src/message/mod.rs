//! What control and the workers say to each other: commands one way, answers and snapshots the
//! other. Values only, so that both sides can be read by themselves.

mod command;
mod error;
mod peer;
mod receiver;
mod receivers;
mod state;
mod write_side;

pub use command::{
    Command, Demand, Feed, Ingest, JoinSpec, Joined, Reply, Services, ServicesCommand, SocketRole,
    SourceSocket, SourceSpec, Swapped, read_level, read_view,
};
pub use command::{Described, ReceiverId, SourceId, StreamId};
pub use error::{CloseReason, ControlError};
pub use peer::{Peer, PeerEvent, PeerPath};
pub use receiver::{
    Delivery, Destination, Ends, Framing, LinkChoice, Receiver, TrackAddress, TrackChannel, UdpSite,
};
pub use receivers::Receivers;
pub use state::named;
pub use state::{
    BranchState, ElementState, LinkApplicationState, LinkState, ReceiverReport, ReceiverState, RelayState,
    SessionState, SourceState, StreamState,
};
pub use state::{StreamPart, WorkerState, together};
pub use write_side::WriteSide;
