//! What is to be done for those stages of a stream's services that run elsewhere.

use std::sync::Arc;

use outflow_graph::{Item, Message, Target};
use outflow_media::Time;

/// What is to be done for the stages of the services that run elsewhere.
#[derive(Debug, Clone)]
pub enum Stages {
    /// Give them this, in this order.
    Give(Vec<Far>),
    /// The services know what comes in: stages of other contexts can be taken out
    /// ([`Stream::take_stages`](crate::Stream::take_stages)) and sent there. Until that is done, they work here.
    TakeOut,
    /// What comes in is something else, and the services are to be bound to it: call the stages back, and put
    /// them back ([`Stream::put_stages`](crate::Stream::put_stages)).
    Recall,
}

/// What goes to the stages of a graph that run elsewhere, in this order, and from each to the next.
#[derive(Debug, Clone)]
pub enum Far {
    /// A packet, and where it goes.
    Packet(Target, Item),
    /// The packets before this belong together: the stage works on them, at this time.
    End(Time),
    /// What the source tells, and where it goes.
    Message(Time, Target, Message),
    /// Whether what comes out of each element is wanted ([`Graph::wishes`](outflow_graph::Graph::wishes)).
    Wanted(Arc<[bool]>),
    /// An element is to let everything pass as it is, or no longer.
    Bypass(Arc<str>, bool),
}
