//! What control asks of a worker for an upgrade to another process.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::{
    CloseReason, Ingest, Moved, Reply, RtcpCounts, SavedLive, SavedPorts, SavedWorker, SourceId, StreamId,
};

/// What the worker does for an upgrade. But for the first, all are for one that stands still.
#[derive(Debug)]
pub enum UpgradeCommand {
    /// Stand still: finish what has come, read nothing more, send nothing more. Other commands wait meanwhile.
    Stand {
        /// What is told when it does.
        done: oneshot::Sender<()>,
    },
    /// Say what you have, for another process. Replicas take before what their owners have handed over.
    Save {
        /// Where the answer goes.
        reply: Reply<SavedWorker>,
    },
    /// Serve from these UDP ports.
    TakePorts {
        /// The ports.
        ports: Moved<Vec<SavedPorts>>,
        /// Where the answer goes: the numbers of the worker's own pair.
        reply: Reply<Option<(u16, u16)>>,
    },
    /// Go on with a stream of another process.
    Take {
        /// The number of the stream.
        stream: StreamId,
        /// What it is.
        taken: Box<Taken>,
        /// Where the answer goes.
        reply: Reply<()>,
    },
    /// Go on.
    GoOn,
    /// Another process goes on: end without a word to any peer. Queues of sources that cannot be there are given back.
    Vanish {
        /// Where they go.
        queues: oneshot::Sender<Vec<(SourceId, mpsc::Receiver<Ingest>)>>,
    },
}

/// A stream that goes on, with what its receivers have with control.
#[derive(Debug)]
pub struct Taken {
    /// The stream; its descriptors are those that its receivers name.
    pub live: Moved<SavedLive>,
    /// Of each receiver, in their order.
    pub receivers: Vec<TakenReceiver>,
}

/// What a receiver that goes on has with control.
#[derive(Debug)]
pub struct TakenReceiver {
    /// How it is reached, in a word of the API.
    pub kind: &'static str,
    /// What becomes of its RTCP.
    pub rtcp: Arc<RtcpCounts>,
    /// Told why, when the relay ends it.
    pub closed: oneshot::Sender<CloseReason>,
}
