//! A connection, from the moment both ends know of it: packets in, packets out, units in, units out.
//!
//! | part | knows |
//! |---|---|
//! | `outgoing` | units that wait or are under way, which are sent again and which are given up, and why |
//! | `incoming` | units that came, what the net makes of them, and what the sender is to know of that |
//! | [`recovery`](crate::recovery), [`congestion`](outflow_congestion) | packets, and how fast |
//! | `path`, `mtu` | where the peer is, and how large datagrams may be |
//!
//! A connection is driven like all of the core: it is told what comes ([`Connection::handle_datagram`]) and
//! that time has passed ([`Connection::handle_timeout`]), and asked for datagrams
//! ([`Connection::poll_transmit`]), events ([`Connection::poll`]) and when to come back
//! ([`Connection::next_timeout`]). Whatever comes, it keeps no more than was agreed on: the bytes of units in
//! buffers, and some bytes for each unit of the window.
//!
//! # Which end knows what of a unit
//!
//! A sender gives up a unit by [`Frame::GivenUp`](crate::packet::Frame): the receiver does not wait for it
//! any more, and if it did not have it then, never delivers it. The receiver says by
//! [`Frame::Progress`](crate::packet::Frame) with which units it is done, and which of them it did not
//! deliver. That is repeated until it is known to have come, and it is what counts: of each unit both
//! applications learn the same ([`Event::Missed`], [`Event::Lost`]).

mod contents;
mod feedback;
mod incoming;
mod mtu;
mod outgoing;
mod path;
mod questions;
mod ranges;
mod receive;
mod save;
mod spanset;
mod transmit;
mod types;
mod wake;

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use outflow_congestion::Controller;
use outflow_media::Time;
use outflow_petri::service::Flow;

use self::contents::Contents;
use self::feedback::Feedback;
use self::incoming::Incoming;
pub use self::incoming::IncomingCounts;
use self::mtu::Mtu;
pub use self::outgoing::OutgoingCounts;
use self::outgoing::{Outgoing, PathView};
use self::path::Path;
pub use self::types::{
    By, Closed, DatagramCounts, Event, NotSent, SendError, Settings, Transmit, Violation, Worth,
};
pub use self::wake::Wake;
use crate::limits::EVENTS_MAX;
use crate::packet::{Code, ConnectionId, Span};
use crate::protection::Protection;
use crate::recovery::{Outcome, Received, Rtt, Sent};
use crate::secret::Secret;

/// What both ends know when a connection begins.
#[derive(Debug)]
pub struct Begin {
    /// How this end calls it: what the peer puts in front.
    pub local: ConnectionId,
    /// How the peer does.
    pub remote: ConnectionId,
    /// Where the peer is.
    pub address: SocketAddr,
    /// What this end sends.
    pub outgoing: Option<Flow>,
    /// What it receives.
    pub incoming: Option<Flow>,
}

/// Whether it is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It is to be closed when all that was sent is over.
    Finishing,
    /// This end has closed it, and says so to a peer that still sends.
    Closing {
        until: Time,
    },
    /// Nothing is sent any more.
    Draining {
        until: Time,
    },
}

/// One end of a connection.
pub struct Connection {
    settings: Settings,
    local: ConnectionId,
    remote: ConnectionId,
    protection: Box<dyn Protection>,
    secret: Secret,
    state: State,
    now: Time,
    path: Path,
    mtu: Mtu,
    received: Received,
    sent: Sent<Contents>,
    controller: Controller,
    feedback: Feedback,
    outgoing: Option<Outgoing>,
    incoming: Option<Incoming>,
    /// Whether an application was told that it has to wait.
    is_blocked: bool,
    events: VecDeque<Event>,
    closed: Option<Closed>,
    is_closed_told: bool,
    /// When something was last heard and sent, and what was heard of a reset since.
    heard: Time,
    spoke: Time,
    reset_at: Option<Time>,
    /// Whether a close is to be said (again).
    says_close: bool,
    /// Whether units had to wait since the last one was sent.
    is_held: bool,
    /// Whether something is to be sent that has to be acknowledged, and in how many packets whatever
    /// congestion control says.
    pings: bool,
    probes: u32,
    /// When progress is to be told at the latest.
    progress_at: Option<Time>,
    /// The next number that is left out.
    skip_at: u64,
    counts: DatagramCounts,
    // To be used again.
    outcome: Outcome<Contents>,
    spare: Vec<Contents>,
    spans: Vec<Span>,
}

impl Connection {
    /// A connection that both ends agreed on. `secret` is for this one alone.
    pub fn new(
        now: Time,
        begin: Begin,
        protection: Box<dyn Protection>,
        settings: Settings,
        secret: Secret,
    ) -> Self {
        let mut connection = Connection {
            local: begin.local,
            remote: begin.remote,
            protection,
            secret,
            state: State::Open,
            now,
            path: Path::new(begin.address),
            mtu: Mtu::new(now, settings.datagram_bytes_max),
            received: Received::new(settings.received, now),
            sent: Sent::new(settings.sent),
            controller: Controller::new(settings.congestion),
            feedback: Feedback::new(settings.marks),
            outgoing: begin.outgoing.map(|flow| Outgoing::new(now, flow, settings.repairs)),
            incoming: begin.incoming.map(|flow| Incoming::new(now, flow)),
            is_blocked: false,
            events: VecDeque::new(),
            closed: None,
            is_closed_told: false,
            heard: now,
            spoke: now,
            reset_at: None,
            says_close: false,
            is_held: false,
            pings: true,
            probes: 0,
            progress_at: None,
            skip_at: 0,
            counts: DatagramCounts::default(),
            outcome: Outcome::new(),
            spare: Vec::new(),
            spans: Vec::new(),
            settings,
        };
        connection.choose_skip();
        connection
    }

    /// Sends a unit as soon as it may go, if it can be of use. Units that are left out do not exist, even if
    /// there is no room for this one yet. See [`next_unit`](Self::next_unit).
    pub fn send(&mut self, now: Time, unit: u64, data: Bytes, worth: Worth) -> Result<(), SendError> {
        self.now = self.now.max(now);
        if self.state != State::Open {
            return Err(SendError::Closed);
        }
        let outgoing = self.outgoing.as_mut().ok_or(SendError::NoFlow)?;
        let path = PathView { one_way: one_way(self.sent.rtt()), controller: &self.controller };
        let sent = outgoing.send(self.now, unit, data, worth, path, &mut self.events);
        self.is_blocked |= sent == Err(SendError::Full);
        sent
    }

    /// The unit behind the last one that was sent: what a sender without a numbering of its own gives.
    pub fn next_unit(&self) -> u64 {
        self.outgoing.as_ref().map_or(0, Outgoing::next)
    }

    /// Bytes of units that can be given to it now and sent within a time, beside those that wait.
    pub fn room_within(&self, time: Duration) -> u64 {
        let waiting = self.outgoing.as_ref().map_or(0, Outgoing::waiting_bytes);
        self.controller.affordable(self.now, time).saturating_sub(waiting)
    }

    /// Units below this one that were not sent do not exist: the receiver need not wait for them. Of more than
    /// [`UNITS_OUTSTANDING_MAX`](crate::limits::UNITS_OUTSTANDING_MAX) it has to be said again when there is
    /// room.
    pub fn skip_to(&mut self, now: Time, unit: u64) -> Result<(), SendError> {
        self.now = self.now.max(now);
        if self.state != State::Open {
            return Err(SendError::Closed);
        }
        let outgoing = self.outgoing.as_mut().ok_or(SendError::NoFlow)?;
        let skipped = outgoing.skip(self.now, unit, &mut self.events);
        self.is_blocked |= skipped == Err(SendError::Full);
        skipped
    }

    /// Closes it as soon as the peer is done with all that was sent. Where units may wait for others
    /// behind them, the rest of the last round does not exist. To be followed by what is done to be
    /// told of it ([`poll_transmit`](Self::poll_transmit) and so on).
    pub fn finish(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.state == State::Open {
            self.state = State::Finishing;
            if let Some(outgoing) = &mut self.outgoing {
                outgoing.finish(self.now, &mut self.events);
            }
            self.settle();
        }
    }

    /// Closes it now. What is under way is lost.
    pub fn close(&mut self, now: Time, code: Code, text: &str) {
        self.now = self.now.max(now);
        self.end(By::Us, code, text);
    }

    /// What happened. What was delivered is read by this, which makes room for more: to be followed by
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn poll(&mut self) -> Option<Event> {
        let event = self.events.pop_front().or_else(|| self.incoming.as_mut()?.poll());
        if event.is_some() {
            self.note_progress();
            return event;
        }
        if self.is_closed_told {
            return None;
        }
        let closed = self.closed.clone()?;
        self.is_closed_told = true;
        Some(Event::Closed(closed))
    }

    /// Whether there is something to read.
    pub fn has_events(&self) -> bool {
        let is_closed = self.closed.is_some() && !self.is_closed_told;
        is_closed || !self.events.is_empty() || self.incoming.as_ref().is_some_and(Incoming::has_unread)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.state != State::Open && self.state != State::Finishing {
            return;
        }
        if self.now >= self.heard + self.settings.idle {
            return self.end(By::Here, Code::IDLE, "nothing was heard for too long");
        }
        if self.reset_at.is_some_and(|at| at <= self.now) {
            return self.end(By::Peer, Code::RESET, "the peer does not know the connection any more");
        }
        if self.now >= self.spoke + self.settings.keep_alive {
            self.pings = true;
            self.spoke = self.now;
        }
        let mut outcome = core::mem::take(&mut self.outcome);
        self.sent.handle_timeout(self.now, &mut outcome);
        self.follow(&mut outcome, None);
        if outcome.probe {
            self.probe();
        }
        self.outcome = outcome;
        self.controller.handle_timeout(self.now);
        self.path.handle_timeout(self.now);
        if let Some(incoming) = &mut self.incoming {
            incoming.handle_timeout(self.now);
        }
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.handle_timeout(self.now, one_way(self.sent.rtt()), &mut self.events);
        }
        self.settle();
    }

    /// Whether nothing is to be done for it any more; events may be left.
    pub fn is_over(&self) -> bool {
        match self.state {
            State::Closing { until } | State::Draining { until } => until <= self.now,
            State::Open | State::Finishing => false,
        }
    }

    /// Whether the last unit found no room, and there is none yet.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Whether it is closed, or being closed by a call of [`close`](Self::close) or the peer.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    fn end(&mut self, by: By, code: Code, text: &str) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(Closed { by, code, text: text.to_owned() });
        let until = self.now + 3 * self.sent.rtt().probe_after(Duration::ZERO);
        // A peer that closed it, or does not answer, is not told.
        let is_silent = by == By::Peer || code == Code::IDLE;
        self.says_close = !is_silent;
        self.state = if is_silent { State::Draining { until } } else { State::Closing { until } };
    }

    /// What follows from a change: whether all is over, whether there is room again, what the peer is to know.
    fn settle(&mut self) {
        self.note_progress();
        // An application that only sends may never ask what became of it.
        let too_many = self.events.len().saturating_sub(EVENTS_MAX);
        self.events.drain(..too_many);
        self.counts.unread += too_many as u64;
        let is_done = self.outgoing.as_ref().is_none_or(Outgoing::is_done);
        if self.state == State::Finishing && is_done {
            self.end(By::Us, Code::DONE, "");
        }
        self.note_room();
    }

    fn note_room(&mut self) {
        let room = self.outgoing.as_ref().is_some_and(Outgoing::has_room);
        if self.is_blocked && room {
            self.is_blocked = false;
            self.events.push_back(Event::Writable);
        }
    }

    fn note_progress(&mut self) {
        if self.progress_at.is_none() && self.incoming.as_ref().is_some_and(Incoming::has_news) {
            self.progress_at = Some(self.now + self.settings.received.ack_delay_max);
        }
    }

    /// What is in flight for the longest is sent again, whatever congestion control says.
    fn probe(&mut self) {
        (self.pings, self.probes) = (true, 1);
        let (Some((_, contents)), Some(outgoing)) = (self.sent.oldest(), &mut self.outgoing) else { return };
        for item in contents.items.iter().rev() {
            if let contents::Item::Fragment(piece) = item {
                outgoing.probe(piece);
            }
        }
    }

    /// One of some hundred numbers is left out.
    fn choose_skip(&mut self) {
        let random = u16::from_le_bytes([self.secret.fresh()[0], self.secret.fresh()[0]]);
        self.skip_at = self.sent.next_number() + 300 + u64::from(random % 1024);
    }
}

/// How long a datagram takes. Before anything is known of the path nothing is given up for it.
fn one_way(rtt: &Rtt) -> Duration {
    if rtt.is_measured() { rtt.smoothed() / 2 } else { Duration::ZERO }
}

impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut debug = f.debug_struct("Connection");
        debug.field("local", &self.local).field("state", &self.state).field("path", &self.path);
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod bottleneck;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod inspect;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
