//! Why something is refused, and how often that was.

use super::packet::Unreadable;

macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a packet, a part of one, or something else is refused. Each is counted ([`Counters`]).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
        pub enum Refusal { $($(#[$doc])* #[error($name)] $variant,)* }

        impl Refusal {
            /// All of them, in order.
            pub const ALL: &[Refusal] = &[$(Refusal::$variant,)*];

            /// It in words, as it is counted.
            pub const fn name(self) -> &'static str {
                match self { $(Refusal::$variant => $name,)* }
            }
        }
    };
}

refusals! {
    /// It is not a message of DVMRP.
    NotDvmrp = "not a message of DVMRP",
    /// A checksum is wrong, that of IP or that of the message (section 3.1).
    Checksum = "a wrong checksum",
    /// It is not as it has to be.
    Malformed = "malformed",
    /// It came from farther away: a TTL other than one to all routers, or than one or 255 to this one.
    Ttl = "a TTL that no neighbour sends",
    /// It is for another router.
    Destination = "for another destination",
    /// It came from an address that cannot be on the link.
    SourceOffLink = "from a source that is not on the link",
    /// It is our own that came back, or from a router with the same address.
    OwnAddress = "from our own address",
    /// The driver names an interface that there is not.
    UnknownInterface = "on an interface that there is not",
    /// [`super::limits::INTERFACES_MAX`].
    InterfacesFull = "too many interfaces",
    /// A router that cannot prune or has no generations (appendix C).
    Version = "of a version without prunes or generations",
    /// A message that is not supported, or not answered, here.
    Code = "a message that is not supported",
    /// From a router of which no probe was heard that names us (sections 3.4.6, 3.5.3 and 3.6.2).
    UnknownNeighbour = "not from a neighbour",
    /// [`super::limits::NEIGHBOURS_MAX`].
    NeighboursFull = "too many neighbours",
    /// [`super::limits::MESSAGES_BURST`].
    TooFast = "too many messages of a neighbour",
    /// A route with a mask, a network or a metric that cannot be (section 3.4.6, B.4).
    IllegalRoute = "an illegal route",
    /// [`super::limits::ROUTES_MAX`].
    RoutesFull = "too many routes",
    /// [`super::limits::ROUTES_OF_NEIGHBOUR_MAX`].
    NeighbourRoutesFull = "too many routes of a neighbour",
    /// No route leads to the source.
    NoRoute = "no route to the source",
    /// Data that did not come from where the route to its source leads (section 3.3.2).
    WrongInterface = "data from an interface that does not lead to its source",
    /// Data to or from an address that is not routed.
    NotRouted = "data that is not routed",
    /// [`super::limits::FLOWS_OF_INTERFACE_MAX`].
    FlowsFull = "too many pairs of source and group",
    /// [`super::limits::GROUPS_OF_INTERFACE_MAX`].
    GroupsFull = "too many groups with members on an interface",
    /// A prune, graft or demand for what no data was seen of (section 3.5.3, 4).
    UnknownFlow = "for a source and group without data",
    /// A prune or demand from a router that does not depend on us for the source (section 3.5.3, 5).
    NotDependent = "from a neighbour that does not depend on us",
    /// A mask that is not that of the route (section 3.5.2).
    Netmask = "a mask that is not that of the route",
    /// A prune that would be over at once.
    Lifetime = "a prune that is over at once",
    /// A demand older than one that came before.
    Older = "older than what came before",
    /// An acknowledgement of what was not sent, or was acknowledged before (section 3.6.5).
    UnexpectedAck = "an acknowledgement of nothing",
    /// [`super::limits::TRANSMITS_MAX`].
    TransmitsFull = "too many messages wait to be sent",
    /// [`super::limits::EVENTS_MAX`].
    EventsFull = "too many events wait to be read",
}

impl From<Unreadable> for Refusal {
    fn from(error: Unreadable) -> Refusal {
        match error {
            Unreadable::NotDvmrp => Refusal::NotDvmrp,
            Unreadable::Checksum => Refusal::Checksum,
            Unreadable::Malformed(_) => Refusal::Malformed,
        }
    }
}

/// What happened since the router began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    refused: [u64; Refusal::ALL.len()],
    /// Messages that came and were read.
    pub received: u64,
    /// Messages that were given to be sent.
    pub sent: u64,
}

impl Counters {
    pub(super) const fn new() -> Self {
        Counters { refused: [0; Refusal::ALL.len()], received: 0, sent: 0 }
    }

    /// How often something was refused for this reason.
    pub const fn refused(&self, why: Refusal) -> u64 {
        self.refused[why as usize]
    }

    /// All reasons with their names, for people and for metrics.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Refusal::ALL.iter().map(|why| (why.name(), self.refused(*why)))
    }

    pub(super) const fn refuse(&mut self, why: Refusal) {
        self.refused[why as usize] += 1;
    }
}
