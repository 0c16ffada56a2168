//! A connection that a stream goes to, as its worker drives it.

use std::net::SocketAddr;
use std::time::Duration;

use outflow_engine::message::{Outlet, Peer, PeerEvent, PeerWake};
use outflow_engine::{PacketHead, Packets, Recent};
use outflow_media::{Importance, Time};
use outflow_packet::DropReason;
use outflow_petri::service::Class;
use outflow_poc::connection as transport;
use outflow_poc::connection::{Event, SendError, Wake};
use outflow_poc::endpoint::deliver;
use outflow_poc::packet::Mark;
use outflow_poc_socket::Detached;
use outflow_poc_socket::media::{Form, Packet};
use outflow_relay::Report;

use super::ledger::Ledger;
use super::pace::{Pace, Turn};
use crate::codes::ENDED;
use crate::limits::POC_CATCH_UP;
use crate::saved::SavedPeer;

/// Bytes that a packet takes on the way beside its own and those of UDP: heads of the datagram and of the unit, the
/// channel, and what the seal adds.
pub(super) const OVERHEAD: usize = 40;

/// The state machine of a receiver.
#[derive(Debug)]
pub(super) struct PocPeer {
    detached: Detached,
    form: Form,
    latency: Duration,
    pace: Pace,
    ledger: Ledger,
    /// Whether a packet that is not urgent has found no room.
    waits: bool,
    /// To be used again.
    datagram: Vec<u8>,
}

impl PocPeer {
    /// Sends packets in this form, each of which is of use for so long.
    pub(super) fn new(detached: Detached, form: Form, latency: Duration) -> Self {
        let (pace, ledger) = (Pace::new(latency), Ledger::default());
        PocPeer { detached, form, latency, pace, ledger, waits: false, datagram: Vec::new() }
    }

    /// One that goes on with what another process has saved, but for the connection, which is this one.
    pub(super) fn restore(detached: Detached, saved: &SavedPeer) -> Self {
        let latency = Duration::from_nanos(saved.latency);
        let form = if saved.is_rtp { Form::Rtp } else { Form::Ts };
        let (pace, ledger) = (Pace::restore(latency, saved.pace), Ledger::restore(&saved.ledger));
        PocPeer { detached, form, latency, pace, ledger, waits: saved.waits, datagram: Vec::new() }
    }

    /// Gives a packet to the transport. If there is not room for all, that leaves out what is worth least.
    /// [`SendError::Full`] if it has to be offered again.
    fn give(
        &mut self,
        now: Time,
        (packets, index): (&mut Packets<'_>, usize),
        head: &PacketHead,
    ) -> Result<(), Undelivered> {
        let is_key = head.worth.is_key();
        let useful_for = match self.pace.turn(head.worth.age(now), is_key) {
            Turn::Now(time) => Some(time),
            Turn::CatchUp => {
                if self.detached.connection().room_within(POC_CATCH_UP) == 0 {
                    self.waits = true;
                    return Err(Undelivered::Later);
                }
                None
            }
            Turn::Late => return Err(Undelivered::Dropped(DropReason::Late)),
        };
        let channel = [Packet::channel(head.track, false)];
        let unit = packets.joined(index, if self.form == Form::Rtp { &channel } else { &[] });
        let class = (!is_key).then_some(Class::Partial);
        let worth = transport::Worth { useful_for, class, rank: head.worth.rank };
        let (own, connection) = self.detached.at(now);
        let number = connection.next_unit();
        match connection.send(own, number, unit, worth) {
            // What is no packet of the stream is not missed there.
            Ok(()) => self.ledger.sent(number, if head.is_preamble { 0 } else { head.bytes }),
            Err(SendError::Full) => return Err(Undelivered::Later),
            // No packet is longer than a receiver keeps; after the end, that is told, too.
            Err(SendError::TooLong { .. }) => return Err(Undelivered::Dropped(DropReason::Oversized)),
            Err(_) => return Err(Undelivered::Dropped(DropReason::ReceiverLeft)),
        }
        Ok(())
    }

    /// What an event of the connection means, if it is to be told.
    fn told(&mut self, event: Event) -> Option<PeerEvent> {
        match event {
            Event::Delivered { data, .. } if self.form == Form::Rtp => {
                let packet = Packet::read(data).filter(|packet| packet.is_rtcp)?;
                Some(PeerEvent::Rtcp(packet.bytes))
            }
            Event::GivenUp { unit, why } => {
                self.ledger.given_up(unit, why);
                None
            }
            Event::Lost { unit } => self.ledger.lost(unit).map(PeerEvent::Report),
            Event::Writable => Some(PeerEvent::Report(Report::Writable)),
            Event::Closed(closed) => Some(PeerEvent::Closed(closed.text)),
            Event::Delivered { .. } | Event::Missed { .. } => None,
        }
    }
}

/// What a wait of the transport is to the worker.
fn meaning(why: Wake) -> PeerWake {
    match why {
        Wake::Silence | Wake::Over => PeerWake::Gone,
        Wake::Recovery | Wake::Congestion | Wake::Copy => PeerWake::Repair,
        Wake::TooLate | Wake::Missed => PeerWake::Late,
        Wake::Acknowledgement | Wake::Progress | Wake::Path | Wake::Size | Wake::KeepAlive => PeerWake::Tell,
        Wake::Pace => PeerWake::Pace,
    }
}

/// Why a packet did not go.
enum Undelivered {
    /// There is no room now.
    Later,
    Dropped(DropReason),
}

impl Peer for PocPeer {
    fn write(
        &mut self,
        now: Time,
        packets: &mut Packets<'_>,
        _: Option<&mut dyn Outlet>,
        tell: &mut dyn FnMut(Report),
    ) -> usize {
        for (index, head) in packets.heads().enumerate() {
            match self.give(now, (packets, index), &head) {
                Ok(()) => {}
                Err(Undelivered::Later) => return index,
                Err(Undelivered::Dropped(reason)) if head.is_preamble => {
                    tell(Report::Lost { reason, packets: 1 });
                }
                Err(Undelivered::Dropped(reason)) => {
                    tell(Report::GivenUp { reason, bytes: head.bytes as u64 });
                }
            }
        }
        packets.heads().len()
    }

    fn write_rtcp(&mut self, now: Time, track: u8, packet: &[u8]) {
        let useful_for = Some(self.latency);
        let worth = transport::Worth { useful_for, class: None, rank: Importance::MOST.rank() };
        let (own, connection) = self.detached.at(now);
        let number = connection.next_unit();
        if connection.send(own, number, Packet::rtcp(track, packet), worth).is_ok() {
            self.ledger.sent(number, 0);
        }
    }

    fn handle_datagram(
        &mut self,
        now: Time,
        (from, mark): (SocketAddr, Mark),
        datagram: &mut [u8],
        _: &Recent,
    ) {
        let (own, connection) = self.detached.at(now);
        deliver(connection, own, from, mark, datagram);
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(SocketAddr, Mark)> {
        let (own, connection) = self.detached.at(now);
        let transmit = connection.poll_transmit(own, &mut self.datagram)?;
        out.extend_from_slice(&self.datagram);
        Some((transmit.to, transmit.mark))
    }

    fn next_timeout(&self) -> Option<(Time, PeerWake)> {
        self.detached.next_timeout().map(|(at, why)| (at, meaning(why)))
    }

    fn handle_timeout(&mut self, now: Time, _: &Recent) {
        let (own, connection) = self.detached.at(now);
        connection.handle_timeout(own);
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        while let Some(event) = self.detached.poll() {
            if let Some(told) = self.told(event) {
                return Some(told);
            }
        }
        let has_room = self.waits && self.detached.connection().room_within(POC_CATCH_UP) > 0;
        has_room.then(|| {
            self.waits = false;
            PeerEvent::Report(Report::Writable)
        })
    }

    fn close(&mut self, now: Time, why: &str) {
        let (own, connection) = self.detached.at(now);
        connection.close(own, ENDED, why);
    }

    fn save(&self) -> Option<Vec<u8>> {
        // Flows that both ends have agreed on can be written.
        let connection = self.detached.connection().save().ok()?;
        let settled = connection.outgoing.as_ref().map_or(0, |outgoing| outgoing.base);
        let told = connection.events.iter().filter_map(|event| event.unit);
        let saved = SavedPeer {
            ledger: self.ledger.save(told.fold(settled, u64::min)),
            connection,
            is_rtp: self.form == Form::Rtp,
            latency: self.latency.as_nanos() as u64,
            pace: self.pace.save(),
            waits: self.waits,
        };
        minicbor::to_vec(saved).ok()
    }
}
