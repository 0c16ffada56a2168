//! A connection is handed over, and goes on elsewhere: its peer sees no other one.

use core::time::Duration;
use std::collections::VecDeque;

use outflow_congestion::{Controller, Handover, Known};
use outflow_media::Time;
use outflow_petri::leb128::TooLong;
use outflow_petri::service::Service;

use super::contents::{Contents, Item};
use super::feedback::Feedback;
use super::mtu::Mtu;
use super::path::Path;
use super::{
    By, Closed, Connection, DatagramCounts, Event, Incoming, NotSent, Outcome, Outgoing, Settings, State,
};
use crate::limits::EVENTS_MAX;
use crate::packet::Code;
use crate::protection::Protection;
use crate::recovery::{GiveUp, Received, Sent};
use crate::save::{
    NUMBER_MOST, SavedBytes, SavedClosed, SavedConnection, SavedDelay, SavedEvent, SavedPath, SavedState,
    Services, Unfit, check, nanos, time,
};

const WHAT: &str = "connection";

/// As they are numbered.
const WHY: [NotSent; 8] = [
    NotSent::TooLate,
    NotSent::Overload,
    NotSent::Dependency,
    NotSent::NotNeeded,
    NotSent::NotRepaired(GiveUp::NotNeeded),
    NotSent::NotRepaired(GiveUp::TooLate),
    NotSent::NotRepaired(GiveUp::Unreliable),
    NotSent::NotRepaired(GiveUp::Attempts),
];
const ENDS: [By; 3] = [By::Us, By::Here, By::Peer];

impl Connection {
    /// What another process needs to go on with it. What there is to send is to be asked for before
    /// ([`poll_transmit`](Self::poll_transmit)); what is saved may be thrown away, and this one goes on.
    ///
    /// An error says that its flows are none that ends could have agreed on.
    pub fn save(&self) -> Result<SavedConnection, TooLong> {
        let (state, until) = match self.state {
            State::Open => (SavedState::Open, None),
            State::Finishing => (SavedState::Finishing, None),
            State::Closing { until } => (SavedState::Closing, Some(until)),
            State::Draining { until } => (SavedState::Draining, Some(until)),
        };
        Ok(SavedConnection {
            local: self.local.into(),
            remote: self.remote.into(),
            address: self.path.address().into(),
            moves: self.path.changes(),
            service: self.save_service()?,
            keys: self.protection.save(),
            secret: self.secret.save(),
            state,
            until: nanos(until),
            closed: self.closed.as_ref().map(|closed| self.save_closed(closed)),
            now: self.now.as_nanos(),
            path: self.save_path(),
            received: self.received.save(),
            sent: self.sent.save(Contents::save),
            outgoing: self.outgoing.as_ref().map(Outgoing::save),
            incoming: self.incoming.as_ref().map(Incoming::save),
            is_blocked: self.is_blocked,
            events: self.events.iter().filter_map(save_event).collect(),
            heard: self.heard.as_nanos(),
            spoke: self.spoke.as_nanos(),
            reset_at: nanos(self.reset_at),
            pings: self.pings,
            probes: self.probes,
            progress_at: nanos(self.progress_at),
            skip_at: self.skip_at,
            counts: self.counts.into(),
        })
    }

    fn save_service(&self) -> Result<SavedBytes, TooLong> {
        let flow = |flow: Option<&_>| flow.cloned();
        let service = Service { to_server: flow(self.outgoing()), to_client: flow(self.incoming()) };
        let mut bytes = Vec::new();
        service.emit(&mut bytes)?;
        Ok(SavedBytes(bytes.into()))
    }

    fn save_closed(&self, closed: &Closed) -> SavedClosed {
        SavedClosed {
            by: ENDS.iter().position(|by| *by == closed.by).unwrap_or_default() as u8,
            code: closed.code.0,
            text: closed.text.clone(),
            is_told: self.is_closed_told,
            is_said: self.says_close,
        }
    }

    fn save_path(&self) -> SavedPath {
        let handover = self.controller.hand_over();
        let (is_marking, marks, told) = self.feedback.save();
        SavedPath {
            window_bytes: handover.window_bytes,
            is_start: handover.is_start,
            delay: handover.known.map(|known| SavedDelay {
                smoothed: of_duration(known.smoothed),
                in_flight: of_duration(known.in_flight),
                least: of_duration(known.least),
                least_one_way: known.least_one_way,
            }),
            paid_until: handover.paid_until.as_nanos(),
            sent: handover.sent.as_nanos(),
            is_marking,
            marks: marks.into(),
            told_received: told.map(|(received, _)| of_duration(received)),
            told_sent: told.map_or(0, |(_, sent)| sent.as_nanos()),
            mtu: self.mtu.save(),
        }
    }

    /// One that goes on with this protection, which was made of [`SavedConnection::keys`]. To be followed by
    /// [`poll_transmit`](Self::poll_transmit), [`poll`](Self::poll) and [`next_timeout`](Self::next_timeout).
    pub fn restore(
        saved: &SavedConnection,
        protection: Box<dyn Protection>,
        settings: Settings,
        services: &mut Services,
    ) -> Result<Self, Unfit> {
        let now = Time::from_nanos(saved.now);
        let (outgoing, incoming) = restore_flows(saved, &settings, services)?;
        let sent = restore_sent(saved, &settings, outgoing.as_ref())?;
        check(saved.events.len() <= EVENTS_MAX, WHAT, "too many events")?;
        let events = saved.events.iter().map(restore_event);
        let closed = saved.closed.as_ref().map(restore_closed).transpose()?;
        let (counted, next) = (in_flight(saved), sent.next_number());
        let path = handover(&saved.path);
        let mut connection = Connection {
            local: saved.local.into(),
            remote: saved.remote.into(),
            protection,
            secret: saved.secret.checked()?,
            state: restore_state(saved)?,
            now,
            path: Path::restore(saved.address.checked()?, saved.moves.min(NUMBER_MOST)),
            mtu: restore_mtu(saved, &settings),
            received: Received::restore(settings.received, &saved.received)?,
            controller: Controller::go_on(now, settings.congestion, &path, counted, next),
            sent,
            feedback: restore_feedback(&saved.path, &settings),
            outgoing,
            incoming,
            is_blocked: saved.is_blocked,
            events: events.collect::<Result<VecDeque<_>, _>>()?,
            is_closed_told: saved.closed.as_ref().is_some_and(|closed| closed.is_told),
            says_close: saved.closed.as_ref().is_some_and(|closed| closed.is_said),
            closed,
            heard: Time::from_nanos(saved.heard),
            spoke: Time::from_nanos(saved.spoke),
            reset_at: time(saved.reset_at),
            is_held: false,
            pings: saved.pings,
            probes: saved.probes,
            progress_at: time(saved.progress_at),
            skip_at: saved.skip_at,
            counts: DatagramCounts::from(saved.counts),
            outcome: Outcome::new(),
            spare: Vec::new(),
            spans: Vec::new(),
            settings,
        };
        connection.controller.handle_datagram_bytes(connection.mtu.bytes() as u64);
        if connection.skip_at < connection.sent.next_number() {
            connection.choose_skip();
        }
        Ok(connection)
    }
}

/// What it sends, and what it receives.
fn restore_flows(
    saved: &SavedConnection,
    settings: &Settings,
    services: &mut Services,
) -> Result<(Option<Outgoing>, Option<Incoming>), Unfit> {
    let (to_send, to_receive) = services.flows(&saved.service)?;
    let is_right = saved.outgoing.is_some() == to_send.is_some();
    check(is_right && saved.incoming.is_some() == to_receive.is_some(), WHAT, "other flows than it has")?;
    let both = to_send.zip(saved.outgoing.as_ref());
    let outgoing = both.map(|(flow, saved)| Outgoing::restore(flow, settings.repairs, saved));
    let both = to_receive.zip(saved.incoming.as_ref());
    let incoming = both.map(|(flow, saved)| Incoming::restore(flow, saved));
    Ok((outgoing.transpose()?, incoming.transpose()?))
}

/// Packets that are under way.
fn restore_sent(
    saved: &SavedConnection,
    settings: &Settings,
    outgoing: Option<&Outgoing>,
) -> Result<Sent<Contents>, Unfit> {
    Sent::restore(settings.sent, Time::from_nanos(saved.now), &saved.sent, |saved| {
        let contents = Contents::restore(saved)?;
        check(is_known(&contents, outgoing), WHAT, "what was not given is in flight")?;
        Ok(contents)
    })
}

/// What the peer received last, and when that was sent, with its counts of marks.
fn restore_feedback(path: &SavedPath, settings: &Settings) -> Feedback {
    let told = path.told_received.map(Duration::from_nanos).zip(Some(Time::from_nanos(path.told_sent)));
    Feedback::restore((path.is_marking && settings.marks, path.marks.into(), told))
}

/// How large datagrams may be.
fn restore_mtu(saved: &SavedConnection, settings: &Settings) -> Mtu {
    let packets = saved.sent.packets.iter();
    let probes = packets.filter_map(|packet| Some((packet.number, packet.content.probed?)));
    Mtu::restore(settings.datagram_bytes_max, &saved.path.mtu, probes)
}

fn of_duration(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn save_event(event: &Event) -> Option<SavedEvent> {
    Some(match event {
        Event::GivenUp { unit, why } => {
            let why = WHY.iter().position(|other| other == why).map(|why| why as u8);
            SavedEvent { unit: Some(*unit), why }
        }
        Event::Lost { unit } => SavedEvent { unit: Some(*unit), why: None },
        Event::Writable => SavedEvent { unit: None, why: None },
        // They do not wait there.
        Event::Delivered { .. } | Event::Missed { .. } | Event::Closed(_) => return None,
    })
}

fn restore_event(saved: &SavedEvent) -> Result<Event, Unfit> {
    let Some(unit) = saved.unit else { return Ok(Event::Writable) };
    let Some(why) = saved.why else { return Ok(Event::Lost { unit }) };
    let why = WHY.get(usize::from(why)).copied();
    let why = why.ok_or(Unfit { what: WHAT, why: "a reason that is not known" })?;
    Ok(Event::GivenUp { unit, why })
}

fn restore_closed(saved: &SavedClosed) -> Result<Closed, Unfit> {
    let by = ENDS.get(usize::from(saved.by)).copied();
    let by = by.ok_or(Unfit { what: WHAT, why: "an end that is not known" })?;
    Ok(Closed { by, code: Code(saved.code), text: saved.text.clone() })
}

fn restore_state(saved: &SavedConnection) -> Result<State, Unfit> {
    let is_over = matches!(saved.state, SavedState::Closing | SavedState::Draining);
    check(is_over == saved.closed.is_some(), WHAT, "it is over for no reason, or goes on in spite of one")?;
    let until = time(saved.until).ok_or(Unfit { what: WHAT, why: "it is over, and has no end" });
    Ok(match saved.state {
        SavedState::Open => State::Open,
        SavedState::Finishing => State::Finishing,
        SavedState::Closing => State::Closing { until: until? },
        SavedState::Draining => State::Draining { until: until? },
    })
}

/// Whether what is in a packet was given by the application.
fn is_known(contents: &Contents, outgoing: Option<&Outgoing>) -> bool {
    contents.items.iter().all(|item| match item {
        Item::Fragment(piece) => outgoing.is_some_and(|outgoing| outgoing.knows(piece)),
        Item::GivenUp(span) => outgoing.is_some_and(|outgoing| span.last < outgoing.next()),
        Item::Progress(settled) => *settled < NUMBER_MOST,
        Item::Ack(_) => true,
    })
}

/// Bytes in flight that congestion control was told of.
fn in_flight(saved: &SavedConnection) -> u64 {
    let counted = saved.sent.packets.iter().filter(|packet| packet.content.is_counted);
    counted.map(|packet| u64::from(packet.bytes)).sum()
}

fn handover(path: &SavedPath) -> Handover {
    Handover {
        window_bytes: path.window_bytes,
        is_start: path.is_start,
        known: path.delay.map(|delay| Known {
            smoothed: Duration::from_nanos(delay.smoothed),
            in_flight: Duration::from_nanos(delay.in_flight),
            least: Duration::from_nanos(delay.least),
            least_one_way: delay.least_one_way,
        }),
        paid_until: Time::from_nanos(path.paid_until),
        sent: Time::from_nanos(path.sent),
        marks: path.marks.into(),
    }
}

#[cfg(test)]
mod tests;
