//! What a connection makes of datagrams, and of what became of its own.

use core::net::SocketAddr;
use core::time::Duration;

use outflow_media::Time;

use super::contents::{Contents, Item};
use super::{By, Closed, Connection, State, Violation};
use crate::packet::{Ack, Code, Frame, Frames, Head, Mark};
use crate::recovery::{Arrived, Outcome};

impl Connection {
    /// A datagram came that begins with the id of this connection. Returns whether anything follows from it;
    /// if not, the caller need not ask for datagrams, events or times again.
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddr, mark: Mark, datagram: &mut [u8]) -> bool {
        self.now = self.now.max(now);
        let Some(head) = Head::parse(datagram).filter(|head| head.receiver == self.local) else {
            self.counts.malformed += 1;
            return false;
        };
        let Some(end) = self.protection.open(head.number, datagram, head.bytes) else {
            self.counts.forged += 1;
            return false;
        };
        if !matches!(self.state, State::Open | State::Finishing) {
            self.counts.closed += 1;
            self.says_close |= matches!(self.state, State::Closing { .. });
            return self.says_close;
        }
        let frames = Frames::new(&datagram[head.bytes..end]);
        // As a whole or not at all: what cannot be read is not acknowledged.
        let mut elicits = false;
        for frame in frames {
            let Ok(frame) = frame else {
                self.counts.malformed += 1;
                return false;
            };
            elicits |= frame.elicits();
        }
        let is_newest = self.received.largest().is_none_or(|largest| largest < head.number);
        if self.received.handle_received(self.now, head.number, elicits, mark) == Arrived::Duplicate {
            return false;
        }
        self.counts.received += 1;
        self.counts.received_bytes += datagram.len() as u64;
        (self.heard, self.reset_at) = (self.now, None);
        if is_newest {
            let secret = &mut self.secret;
            self.path.handle_from(self.now, from, datagram.len() as u64, || challenge(secret.fresh()));
        }
        for frame in frames.map_while(Result::ok) {
            if let Err(violation) = self.handle_frame(from, &frame) {
                self.end(By::Here, Code::VIOLATION, &violation.to_string());
            }
            if self.closed.is_some() {
                return true;
            }
        }
        self.settle();
        true
    }

    fn handle_frame(&mut self, from: SocketAddr, frame: &Frame<'_>) -> Result<(), Violation> {
        const NOT_SENT_HERE: Violation = Violation("speaks of units in a direction without");
        let now = self.now;
        match frame {
            Frame::Ping => (),
            Frame::Ack(ack) => self.handle_ack(ack)?,
            Frame::Fragment(fragment) => {
                self.incoming.as_mut().ok_or(NOT_SENT_HERE)?.handle_fragment(now, fragment)?;
            }
            Frame::GivenUp(spans) => {
                let incoming = self.incoming.as_mut().ok_or(NOT_SENT_HERE)?;
                spans.iter().try_for_each(|span| incoming.handle_given_up(now, span))?;
            }
            Frame::Progress(progress) => {
                let outgoing = self.outgoing.as_mut().ok_or(NOT_SENT_HERE)?;
                outgoing.handle_progress(now, progress, &mut self.events)?;
            }
            Frame::PathChallenge(bytes) => self.path.handle_challenge(*bytes, from),
            Frame::PathResponse(bytes) => {
                if self.path.handle_response(*bytes) {
                    self.sent.handle_path_change();
                    self.controller.handle_path_changed(now);
                    self.mtu.handle_path_change(now, self.sent.next_number());
                    self.feedback.handle_path_change(self.settings.marks);
                }
            }
            Frame::Close(close) => {
                let text = close.text.to_owned();
                self.closed = Some(Closed { by: By::Peer, code: close.code, text });
                self.state = State::Draining { until: now + 3 * self.sent.rtt().probe_after(Duration::ZERO) };
            }
        }
        Ok(())
    }

    /// The host that was asked does not know the connection. Any host that has heard its id can say that, so
    /// it ends only if the peer does not answer soon.
    pub fn handle_reset(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.reset_at.is_none() {
            self.reset_at =
                Some(self.now + 3 * self.sent.rtt().probe_after(self.settings.sent.ack_delay_max));
            self.pings = true;
        }
    }

    fn handle_ack(&mut self, ack: &Ack<'_>) -> Result<(), Violation> {
        let mut outcome = core::mem::take(&mut self.outcome);
        let handled = self.sent.handle_ack(self.now, ack, &mut outcome);
        if handled.is_ok() {
            self.received.handle_round_trip(self.sent.rtt().smoothed());
            self.follow(&mut outcome, Some(ack));
        }
        self.outcome = outcome;
        handled.map_err(|_| Violation("acknowledges what it was not sent"))
    }

    /// What became of packets.
    pub(super) fn follow(&mut self, outcome: &mut Outcome<Contents>, ack: Option<&Ack<'_>>) {
        let now = self.now;
        let ack_delay_max = self.settings.sent.ack_delay_max;
        self.feedback.tell(now, outcome, ack, ack_delay_max, &mut self.controller);
        for acked in outcome.acked.drain(..) {
            let mut contents = acked.content;
            match contents.probed {
                Some(size) => self.mtu.handle_acked(now, acked.number, size),
                None => _ = self.mtu.handle_packet(now, acked.number, acked.bytes as usize, false),
            }
            contents.items.drain(..).for_each(|item| self.handle_item_acked(item));
            self.recycle(contents);
        }
        for lost in outcome.lost.drain(..) {
            let mut contents = lost.content;
            match contents.probed {
                Some(_) => self.mtu.handle_lost(now, lost.number),
                None => _ = self.mtu.handle_packet(now, lost.number, lost.bytes as usize, true),
            }
            contents.items.drain(..).for_each(|item| self.handle_item_lost(item));
            self.recycle(contents);
        }
        self.controller.handle_datagram_bytes(self.mtu.bytes() as u64);
    }

    fn handle_item_acked(&mut self, item: Item) {
        match (item, &mut self.outgoing, &mut self.incoming) {
            (Item::Fragment(piece), Some(outgoing), _) => outgoing.handle_acked(self.now, &piece),
            (Item::Progress(settled), _, Some(incoming)) => incoming.handle_known(settled),
            (Item::Ack(largest), ..) => self.received.handle_ack_received(largest),
            _ => (),
        }
    }

    fn handle_item_lost(&mut self, item: Item) {
        match (item, &mut self.outgoing, &mut self.incoming) {
            (Item::Fragment(piece), Some(outgoing), _) => {
                outgoing.handle_lost(self.now, self.sent.rtt(), &piece, &mut self.events);
            }
            (Item::GivenUp(span), Some(outgoing), _) => outgoing.handle_news_lost(span),
            (Item::Progress(settled), _, Some(incoming)) => incoming.handle_not_known(settled),
            _ => (),
        }
    }
}

fn challenge(fresh: [u8; 16]) -> [u8; 8] {
    let mut challenge = [0; 8];
    challenge.copy_from_slice(&fresh[..8]);
    challenge
}
