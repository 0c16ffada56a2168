//! What control and the workers say to each other: commands one way, answers and snapshots the
//! other. Values only, so that both sides can be read by themselves.

mod command;
mod demand;
mod error;
mod ids;
mod peer;
mod receiver;
mod receivers;
mod rtcp;
mod saved;
mod source;
mod state;
mod upgrade;
mod write_side;

pub use command::{
    Command, Described, JoinSpec, Joined, Reply, Services, ServicesCommand, Swapped, read_level, read_view,
};
pub(crate) use demand::Demander;
pub use demand::{Demand, DemandQueue, Demanders, demands};
pub use error::{CloseReason, ControlError};
pub use ids::{ReceiverId, SourceId, StreamId};
pub use peer::{Outlet, Peer, PeerEvent, PeerPath, PeerWake, WriteDatagram};
pub use receiver::{
    Delivery, Destination, Ends, Framing, LinkChoice, Receiver, TrackAddress, TrackChannel, UdpSite,
};
pub use receivers::{ReceiverReport, ReceiverState, Receivers};
pub(crate) use rtcp::Unread;
pub use rtcp::{RtcpCounts, RtcpGate, WaitingRtcp};
pub use saved::{
    Moved, SavedDestination, SavedFrom, SavedLive, SavedOut, SavedPorts, SavedReceiver, SavedRole,
    SavedSocket, SavedTurn, SavedWorker,
};
pub(crate) use saved::{addresses, saved_addresses};
pub use source::{Feed, Ingest, LastMedia, SocketHeard, SocketRole, SourceSocket, SourceSpec};
pub use state::{
    BranchState, ElementState, LinkApplicationState, LinkState, RelayState, SessionState, SourceState,
    StreamPart, StreamState, WorkerState, named, together,
};
pub use upgrade::{Taken, TakenReceiver, UpgradeCommand};
pub use write_side::WriteSide;
