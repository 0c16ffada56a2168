//! The event loop of a stream, over its driver's own clock and its own means to send.

use outflow_media::Time;

use crate::Stream;
use crate::control::{Event, Handed, Output, ReportTo, Stages};
use crate::feedback::Feedback;
use crate::schedule::{Priority, Room};
use crate::send::Order;

/// What drives a stream: it has a clock, and carries out what the stream asks. The engine does so with sockets and
/// threads, the simulator in virtual time; [`drive`] is the loop of both.
///
/// A driver that has no replicas, no services in other threads, no publisher to tell, or no use for RTCP leaves the
/// methods out that are for these.
pub trait Driver {
    /// The time now.
    fn now(&self) -> Time;

    /// The stream, if it is still there.
    fn stream(&mut self) -> Option<&mut Stream>;

    /// How many sinks an order may be for.
    fn room(&self) -> Room {
        Room::UNLIMITED
    }

    /// Whether something else is to have its turn, although the stream may ask more.
    fn is_over(&self, _now: Time) -> bool {
        false
    }

    /// Packets are to be sent; what does not go is reported ([`Stream::handle_report`]).
    fn send(&mut self, now: Time, order: &Order);

    /// Something happened.
    fn event(&mut self, event: Event);

    /// RTCP sender reports are to be sent ([`State::sender_report`](crate::control::State::sender_report)).
    fn sender_reports(&mut self, _to: ReportTo) {}

    /// The publisher is to be told what receivers say.
    fn feedback(&mut self, _feedback: Feedback) {}

    /// Replicas are to be given this.
    fn hand_over(&mut self, _handed: Vec<Handed>) {}

    /// The stages of services that run elsewhere are to be seen to.
    fn stages(&mut self, _now: Time, _what: Stages) {}
}

/// How it stands when [`drive`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driven {
    /// The stream asks nothing more before that time, unless something comes in.
    Until(Option<Time>),
    /// Something else is to have its turn: the stream may ask more.
    Over,
    /// The stream is no longer there.
    Gone,
}

/// Does what a stream asks, in one class or in all, until it asks nothing more.
pub fn drive(driver: &mut impl Driver, class: Option<Priority>) -> Driven {
    loop {
        let now = driver.now();
        if driver.is_over(now) {
            return Driven::Over;
        }
        let room = driver.room();
        let Some(stream) = driver.stream() else { return Driven::Gone };
        let output = match class {
            Some(class) => stream.poll_class(now, class, room),
            None => stream.poll(now),
        };
        match output {
            Output::Order(order) => driver.send(now, &order),
            Output::SenderReports(to) => driver.sender_reports(to),
            Output::Feedback(feedback) => driver.feedback(feedback),
            Output::HandOver(handed) => driver.hand_over(handed),
            Output::Stages(what) => driver.stages(now, what),
            Output::Event(event) => driver.event(event),
            Output::GoOn => {}
            Output::Wait { until } => return Driven::Until(until.map(|(at, _)| at)),
        }
    }
}
