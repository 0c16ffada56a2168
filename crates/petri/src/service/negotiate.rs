//! What a server agrees to, and whether what it agreed to is what was asked for.

use core::fmt;
use core::time::Duration;

use super::presets::whole;
use super::units::{Bytes, Time, class_word};
use super::{Bounds, Class, Flow, FlowError, Request, Service, ServiceClass, Want};
use crate::limits::{CHECKED_STEPS_MAX, RELIABLE_VALIDITY, TRANSITIONS_MAX, WINDOW_ROUNDS_MAX};
use crate::net::Net;

/// What a server offers at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Rounds that a receiver keeps. A wish for more is lowered to this.
    pub rounds_max: u32,
    /// Bytes that a receiver keeps. A wish for more is lowered to this.
    pub buffer_bytes_max: u32,
    /// How long anything is sent again, `None` for any time. A wish for longer is lowered to this, but of
    /// reliable classes where those may be without end.
    pub validity_max: Option<Duration>,
    /// Whether reliable classes may have no end, or any. If not they are given `validity_max`, or without
    /// one [`RELIABLE_VALIDITY`].
    pub allows_reliable_without_end: bool,
    /// Objects of a net. A larger one is refused.
    pub objects_max: usize,
    /// Transitions of a net: memory and time of an engine grow with them. A larger one is refused.
    pub transitions_max: usize,
}

impl Default for Terms {
    /// All rounds, 64 MiB a flow, 30 s, reliable without end, and nets of 4096 of each.
    fn default() -> Self {
        Terms {
            rounds_max: WINDOW_ROUNDS_MAX as u32,
            buffer_bytes_max: 64 << 20,
            validity_max: Some(RELIABLE_VALIDITY),
            allows_reliable_without_end: true,
            objects_max: 4096,
            transitions_max: TRANSITIONS_MAX,
        }
    }
}

/// Why there is no service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// For people: what to do about it, in no more bytes than a refusal carries.
    pub text: String,
}

impl Refusal {
    fn new(text: String) -> Self {
        Refusal { text }
    }
}

impl Terms {
    /// What is agreed to: what was asked for, or less of it.
    ///
    /// `source` is what the server would send of this resource, if it has anything to send; that there is
    /// no such resource is to be said before. A client may ask for another net than the source's if that has
    /// as many objects: the sender numbers its units by them.
    ///
    /// A flow of a live source is refused if a receiver that gets nothing would fall behind it. One that waits
    /// for something without end is not: its sender says what it gives up, and what is waited for then is over,
    /// so that validity is what ends it.
    pub fn answer(&self, request: &Request, source: Option<&Flow>) -> Result<Service, Refusal> {
        let to_server = match &request.to_server {
            Some(flow) => Some(self.granted(flow)?),
            None => None,
        };
        let to_client = match (&request.to_client, source) {
            (Some(Want::Theirs(bounds)), Some(source)) => Some(self.granted(&bounds.applied(source)?)?),
            (Some(Want::Theirs(_)), None) => {
                let text = "this resource has nothing of its own to send: ask for a flow, or only send one";
                return Err(Refusal::new(text.to_owned()));
            }
            (Some(Want::This(flow)), Some(source)) => Some(self.granted(&of_source(flow, source)?)?),
            (Some(Want::This(flow)), None) => Some(self.granted(flow)?),
            (None, _) => None,
        };
        if to_server.is_none() && to_client.is_none() {
            let text = "nothing is asked for in either direction: say what to send, or what to receive";
            return Err(Refusal::new(text.to_owned()));
        }
        Ok(Service { to_server, to_client })
    }

    /// A flow within the terms, if it can be.
    fn granted(&self, flow: &Flow) -> Result<Flow, Refusal> {
        flow.check().map_err(|error| Refusal::new(format!("this is no flow: {}", error.reason())))?;
        let too_large = |what, count, most| {
            let text = format!("the net has {count} {what}, {most} are taken: describe a shorter period");
            if count > most { Err(Refusal::new(text)) } else { Ok(()) }
        };
        too_large("objects", flow.net.objects(), self.objects_max)?;
        too_large("transitions", flow.net.transitions().len(), self.transitions_max)?;
        keeps_up(flow)?;
        let granted = |class: &ServiceClass| ServiceClass { validity: self.validity(class), ..*class };
        let granted = Flow {
            classes: flow.classes.iter().map(granted).collect(),
            rounds: flow.rounds.min(self.rounds_max.max(1)),
            buffer_bytes: flow.buffer_bytes.min(self.buffer_bytes_max.max(1)),
            ..flow.clone()
        };
        Ok(granted)
    }

    fn validity(&self, class: &ServiceClass) -> Option<Duration> {
        // Whatever the terms say, what goes on the wire is in whole microseconds.
        let most = self.validity_max.map(whole);
        if class.repair != Class::Reliable {
            return shorter(class.validity, most);
        }
        let most = most.unwrap_or(RELIABLE_VALIDITY);
        if self.allows_reliable_without_end { class.validity } else { shorter(class.validity, Some(most)) }
    }
}

impl Bounds {
    /// What of a flow is within them.
    fn applied(&self, flow: &Flow) -> Result<Flow, Refusal> {
        self.check().map_err(|error| Refusal::new(format!("these are no bounds: {}", error.reason())))?;
        let within = |class: &ServiceClass| ServiceClass {
            validity: shorter(class.validity, self.validity),
            ..*class
        };
        Ok(Flow {
            classes: flow.classes.iter().map(within).collect(),
            rounds: flow.rounds.min(self.rounds),
            buffer_bytes: flow.buffer_bytes.min(self.buffer_bytes),
            ..flow.clone()
        })
    }
}

/// A flow that a client describes, as this source can be sent by it.
fn of_source(flow: &Flow, source: &Flow) -> Result<Flow, Refusal> {
    let (objects, theirs) = (flow.net.objects(), source.net.objects());
    if objects != theirs {
        let text = format!("the net has {objects} objects and the source {theirs}: ask for the server's own");
        return Err(Refusal::new(text));
    }
    Ok(Flow { period: source.period, ..flow.clone() })
}

/// A receiver that gets nothing keeps up with the source, if it is live.
fn keeps_up(flow: &Flow) -> Result<(), Refusal> {
    let Some(period) = flow.period else { return Ok(()) };
    let (transitions, places) = (flow.net.transitions().len(), flow.net.places().len());
    if transitions * places > CHECKED_STEPS_MAX {
        let text = format!(
            "a live net of {transitions} transitions and {places} places is too large: describe a shorter period"
        );
        return Err(Refusal::new(text));
    }
    match flow.net.slowest_round() {
        Some(slowest) if slowest > period => {
            let (slowest, period) = (Time(Some(slowest)), Time(Some(period)));
            let text = format!(
                "with losses a round takes {slowest}, the source {period}: shorten the net's intervals"
            );
            Err(Refusal::new(text))
        }
        _ => Ok(()),
    }
}

/// The shorter one; `None` has no end.
fn shorter(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

/// How a service is more than what was asked for, or something else: the peer violates the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Beyond {
    /// There is a flow in a direction that was not asked for, or none where one was.
    #[error("{0}: the server leaves out what was asked for, or adds what was not")]
    Direction(Direction),
    /// It is not a flow.
    #[error("{0}: the server agrees to what is no flow: {1}")]
    NoFlow(Direction, FlowError),
    /// Another net, or another period.
    #[error("{0}: the server agrees to another net than was asked for")]
    OtherNet(Direction),
    /// The receiver is to keep more.
    #[error("{0}: the server agrees to more rounds or a larger buffer than was asked for")]
    Room(Direction),
    /// Something is to be more reliable, or for longer.
    #[error("{0}: object {1} is more reliable, or for longer, than was asked for")]
    Stronger(Direction, usize),
}

impl Beyond {
    /// The same without figures, for the peer.
    pub const fn reason(&self) -> &'static str {
        match self {
            Beyond::Direction(_) => "a flow that was not asked for, or none where one was",
            Beyond::NoFlow(..) => "not a flow",
            Beyond::OtherNet(_) => "another net than was asked for",
            Beyond::Room(_) => "more rounds or a larger buffer than was asked for",
            Beyond::Stronger(..) => "a class stronger than was asked for",
        }
    }
}

/// Which way a flow goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::ToServer => "to the server",
            Direction::ToClient => "to the client",
        })
    }
}

impl Service {
    /// Whether it is what was asked for, or less: the same nets, no more rounds or bytes to keep, no object
    /// more reliable or for longer. What the server sends may be of another period than was asked for: it
    /// knows its source.
    pub fn is_within(&self, request: &Request) -> Result<(), Beyond> {
        use Direction::{ToClient, ToServer};
        match (&self.to_server, &request.to_server) {
            (Some(flow), Some(asked)) if flow.period != asked.period => {
                return Err(Beyond::OtherNet(ToServer));
            }
            (Some(flow), Some(asked)) => within(ToServer, flow, asked)?,
            (None, None) => {}
            _ => return Err(Beyond::Direction(ToServer)),
        }
        match (&self.to_client, &request.to_client) {
            (Some(flow), Some(Want::This(asked))) => within(ToClient, flow, asked),
            (Some(flow), Some(Want::Theirs(bounds))) => {
                flow.check().map_err(|error| Beyond::NoFlow(ToClient, error))?;
                room(ToClient, flow, bounds.rounds, bounds.buffer_bytes)?;
                let is_longer = |object: &usize| is_longer(flow.class(*object).validity, bounds.validity);
                let longer = (0..flow.net.objects()).find(is_longer);
                longer.map_or(Ok(()), |object| Err(Beyond::Stronger(ToClient, object)))
            }
            (None, None) => Ok(()),
            _ => Err(Beyond::Direction(ToClient)),
        }
    }

    /// What is less than was asked for, for people. Of "theirs" nothing is: what the server has was not
    /// known.
    pub fn differences(&self, request: &Request) -> Differences {
        let mut changes = Vec::new();
        let this = match &request.to_client {
            Some(Want::This(flow)) => Some(flow),
            _ => None,
        };
        let pairs = [
            (Direction::ToServer, &self.to_server, request.to_server.as_ref()),
            (Direction::ToClient, &self.to_client, this),
        ];
        for (direction, flow, asked) in pairs {
            if let (Some(flow), Some(asked)) = (flow, asked) {
                changes.extend(changed(flow, asked).into_iter().map(|change| (direction, change)));
            }
        }
        Differences { changes }
    }
}

fn within(direction: Direction, flow: &Flow, asked: &Flow) -> Result<(), Beyond> {
    flow.check().map_err(|error| Beyond::NoFlow(direction, error))?;
    if !is_same(&flow.net, &asked.net) || asked.class_of.len() != flow.class_of.len() {
        return Err(Beyond::OtherNet(direction));
    }
    room(direction, flow, asked.rounds, asked.buffer_bytes)?;
    let is_stronger = |object: &usize| {
        let (class, asked) = (flow.class(*object), asked.class(*object));
        class.repair < asked.repair || is_longer(class.validity, asked.validity)
    };
    let stronger = (0..flow.net.objects()).find(is_stronger);
    stronger.map_or(Ok(()), |object| Err(Beyond::Stronger(direction, object)))
}

fn room(direction: Direction, flow: &Flow, rounds: u32, buffer_bytes: u32) -> Result<(), Beyond> {
    let fits = flow.rounds <= rounds && flow.buffer_bytes <= buffer_bytes;
    if fits { Ok(()) } else { Err(Beyond::Room(direction)) }
}

fn is_longer(validity: Option<Duration>, most: Option<Duration>) -> bool {
    most.is_some_and(|most| validity.is_none_or(|validity| validity > most))
}

/// Whether two nets are the same but for their names, which stay at home.
fn is_same(a: &Net, b: &Net) -> bool {
    let of = |net: &Net, i: usize| (net.transitions()[i].rule, net.transitions()[i].master);
    let (transitions, places) = (a.transitions().len(), a.places().len());
    transitions == b.transitions().len()
        && places == b.places().len()
        && (0..transitions).all(|i| of(a, i) == of(b, i))
        && a.places().iter().zip(b.places()).all(|(a, b)| a.is_alike(b))
}

/// One thing that is less than was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Rounds that the receiver keeps.
    Rounds(u32, u32),
    /// Bytes that it keeps.
    Buffer(u32, u32),
    /// How long objects of this class are sent again.
    Validity(Class, Option<Duration>, Option<Duration>),
    /// How reliable something is.
    Repair(Class, Class),
}

/// All that is less than was asked for; nothing is said of what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differences {
    /// Each in its direction.
    pub changes: Vec<(Direction, Change)>,
}

impl Differences {
    /// Whether everything is as it was asked for.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// What was asked for first.
fn changed(flow: &Flow, asked: &Flow) -> Vec<Change> {
    let mut changes = Vec::new();
    if flow.rounds != asked.rounds {
        changes.push(Change::Rounds(asked.rounds, flow.rounds));
    }
    if flow.buffer_bytes != asked.buffer_bytes {
        changes.push(Change::Buffer(asked.buffer_bytes, flow.buffer_bytes));
    }
    let objects = asked.class_of.len().min(flow.class_of.len());
    for (asked, got) in (0..objects).map(|object| (asked.class(object), flow.class(object))) {
        let repair = Change::Repair(asked.repair, got.repair);
        let validity = Change::Validity(asked.repair, asked.validity, got.validity);
        for (change, is_new) in
            [(repair, asked.repair != got.repair), (validity, asked.validity != got.validity)]
        {
            if is_new && !changes.contains(&change) {
                changes.push(change);
            }
        }
    }
    changes
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Change::Rounds(asked, got) => write!(f, "rounds {asked} → {got}"),
            Change::Buffer(asked, got) => write!(f, "buffer {} → {}", Bytes(asked), Bytes(got)),
            Change::Validity(class, asked, got) => {
                write!(f, "{} for {} → {}", class_word(class), Time(asked), Time(got))
            }
            Change::Repair(asked, got) => write!(f, "{} → {}", class_word(asked), class_word(got)),
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for (direction, change) in &self.changes {
            match before {
                Some(same) if same == *direction => write!(f, ", {change}")?,
                Some(_) => write!(f, "; {direction}: {change}")?,
                None => write!(f, "{direction}: {change}")?,
            }
            before = Some(*direction);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
