//! What control and the workers say to each other: commands one way, answers and snapshots the
//! other. Values only, so that both sides can be read by themselves.

mod command;
mod error;
mod receivers;
mod state;
mod write_side;

pub(crate) use command::{
    Command, Demand, Feed, Ingest, JoinSpec, Joined, PushRoute, Reply, Route, Services, ServicesCommand,
    SocketRole, SourceSocket, SourceSpec, Swapped, read_level, read_view,
};
pub use command::{Described, ReceiverId, SourceId, StreamId, TrackAddress, TrackChannel, Wanted};
pub use error::{CloseReason, ControlError};
pub use receivers::Receivers;
pub(crate) use state::named;
pub use state::{
    BranchState, ElementState, LinkApplicationState, LinkState, ReceiverReport, ReceiverState, RelayState,
    SessionState, SourceState, StreamState,
};
pub(crate) use state::{StreamPart, WorkerState, together};
pub use write_side::WriteSide;
