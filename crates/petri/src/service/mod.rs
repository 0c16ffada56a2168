//! What two ends agree on when a connection begins: what is sent in each direction, by which net, how
//! reliably, and how much of it the receiver keeps.
//!
//! Each direction is a [`Flow`]. A client asks ([`Request`]): it describes what it wants to send, and says
//! what it wants to be sent, which is whatever the server has, within bounds, or a flow of its own. The
//! server answers with a [`Service`], which is the same or less, or refuses.

mod latency;
mod negotiate;
pub mod presets;
mod text;
mod units;
mod wire;

use core::time::Duration;
use std::sync::Arc;

pub use negotiate::{Beyond, Change, Differences, Direction, Refusal, Terms};
pub use presets::{Preset, PresetError};
pub use text::FlowTextError;

use crate::limits::{CLASSES_MAX, INTERVAL_MAX, WINDOW_ROUNDS_MAX};
use crate::net::Net;

/// What is sent in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Which objects a period has, in which order they may be delivered, and how long each is waited for.
    pub net: Arc<Net>,
    /// How reliable objects are: 1 to [`CLASSES_MAX`].
    pub classes: Vec<ServiceClass>,
    /// For each object of the net, which of the classes it is of.
    pub class_of: Vec<u8>,
    /// Rounds that the receiver keeps units of: 1 to [`WINDOW_ROUNDS_MAX`].
    pub rounds: u32,
    /// Bytes of units that the receiver keeps, at least one. Where units may wait for others that are sent behind
    /// them ([`Net::is_sent_in_order`]), there has to be room for all that may wait: else a flow that waits
    /// without end comes to a halt.
    pub buffer_bytes: u32,
    /// How long a period lasts if the source is live, in whole microseconds: it goes on whether or not the
    /// receiver keeps up.
    pub period: Option<Duration>,
    /// Whether objects are of no use without those that come before them in their round, as pictures are; else
    /// the net says in which order they are delivered, and no more. A sender that has to leave out something
    /// goes by it.
    pub is_dependent: bool,
}

/// How reliable an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Sent again while it is of use, however often.
    Reliable,
    /// Sent again while it is of use, but not too often.
    Partial,
    /// Sent once.
    Unreliable,
}

/// How reliable objects are, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServiceClass {
    /// Whether what was lost is sent again.
    pub repair: Class,
    /// How long it is sent again, counted from when it comes if nothing is lost, in whole microseconds; `None`
    /// for ever. The net may need it for less.
    pub validity: Option<Duration>,
}

/// What a client wants to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Whatever the server has, within these bounds.
    Theirs(Bounds),
    /// This.
    This(Flow),
}

/// What a receiver can take of a flow that it does not know yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most rounds that it keeps units of: 1 to [`WINDOW_ROUNDS_MAX`].
    pub rounds: u32,
    /// Most bytes of units that it keeps, at least one.
    pub buffer_bytes: u32,
    /// Longest validity of a class, in whole microseconds; `None` if all are welcome.
    pub validity: Option<Duration>,
}

/// What a client asks for; a hello carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is to be sent or received, as in `/live/cam1`; at most
    /// [`RESOURCE_BYTES_MAX`](crate::limits::RESOURCE_BYTES_MAX).
    pub resource: String,
    /// What the client is going to send.
    pub to_server: Option<Flow>,
    /// What it wants to be sent.
    pub to_client: Option<Want>,
}

/// What the server agrees to; an accept carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// What the client sends.
    pub to_server: Option<Flow>,
    /// What the server sends.
    pub to_client: Option<Flow>,
}

/// Why a flow is none; its author is to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// None, or too many.
    #[error("the flow has {0} classes; it takes 1 to {CLASSES_MAX}")]
    Classes(usize),
    /// The list of classes is not one of the net's objects.
    #[error("{classes} objects have a class, and the net has {objects}: give each of them one")]
    ClassOf {
        /// How many have a class.
        classes: usize,
        /// How many there are.
        objects: usize,
    },
    /// A class that there is not.
    #[error("object {object} is of class {class}, and there are {classes}, counted from 0")]
    NoClass {
        /// Which object.
        object: usize,
        /// Which class.
        class: u8,
        /// How many there are.
        classes: usize,
    },
    /// None, or too many.
    #[error("the receiver is to keep {0} rounds; it can keep 1 to {WINDOW_ROUNDS_MAX}")]
    Rounds(u32),
    /// Nothing could ever be kept.
    #[error("the receiver is to keep 0 bytes: give it room for some units")]
    NoBuffer,
    /// A time that cannot be.
    #[error("the {what} {problem}")]
    Time {
        /// Which one.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl FlowError {
    /// The same without figures, as errors of wire formats are.
    pub const fn reason(&self) -> &'static str {
        match self {
            FlowError::Classes(_) => "no class, or too many",
            FlowError::ClassOf { .. } => "classes of more or fewer objects than there are",
            FlowError::NoClass { .. } => "no class of this number",
            FlowError::Rounds(_) => "no rounds, or too many",
            FlowError::NoBuffer => "no room for units",
            FlowError::Time { .. } => "a time that is zero, too long, or not in microseconds",
        }
    }
}

impl Flow {
    /// Whether it is a flow: all objects have a class that there is, and nothing is beyond its limit. What
    /// came over the network was checked when it was read.
    pub fn check(&self) -> Result<(), FlowError> {
        let (classes, objects) = (self.classes.len(), self.net.objects());
        if classes == 0 || classes > CLASSES_MAX {
            return Err(FlowError::Classes(classes));
        }
        if self.class_of.len() != objects {
            return Err(FlowError::ClassOf { classes: self.class_of.len(), objects });
        }
        let unknown = self.class_of.iter().enumerate().find(|(_, class)| usize::from(**class) >= classes);
        if let Some((object, class)) = unknown {
            return Err(FlowError::NoClass { object, class: *class, classes });
        }
        self.classes.iter().try_for_each(|class| check_time("validity of a class", class.validity))?;
        check_time("period", self.period)?;
        if self.period == Some(Duration::ZERO) {
            let problem = "is zero: say how long it lasts, or nothing if the source is not live";
            return Err(FlowError::Time { what: "period", problem });
        }
        check_room(self.rounds, self.buffer_bytes)
    }

    /// How reliable an object is, by its index: lower than [`Net::objects`].
    ///
    /// # Panics
    ///
    /// If the index is not, or the flow would not pass [`check`](Self::check).
    pub fn class(&self, object: usize) -> ServiceClass {
        self.classes[usize::from(self.class_of[object])]
    }
}

impl Bounds {
    /// Whether any flow can be within them.
    pub fn check(&self) -> Result<(), FlowError> {
        check_time("longest validity", self.validity)?;
        check_room(self.rounds, self.buffer_bytes)
    }
}

fn check_room(rounds: u32, buffer_bytes: u32) -> Result<(), FlowError> {
    match (rounds, buffer_bytes) {
        (0, _) => Err(FlowError::Rounds(rounds)),
        _ if rounds as usize > WINDOW_ROUNDS_MAX => Err(FlowError::Rounds(rounds)),
        (_, 0) => Err(FlowError::NoBuffer),
        _ => Ok(()),
    }
}

/// Times are in whole microseconds, because that is what goes on the wire.
fn check_time(what: &'static str, time: Option<Duration>) -> Result<(), FlowError> {
    let problem = match time {
        Some(time) if time > INTERVAL_MAX => "is longer than a day: leave it out for what has no end",
        Some(time) if time.subsec_nanos() % 1000 != 0 => "is not in whole microseconds",
        _ => return Ok(()),
    };
    Err(FlowError::Time { what, problem })
}

#[cfg(test)]
mod tests;
