//! What a connection makes of datagrams, and of what became of its own.

use core::net::SocketAddr;
use core::time::Duration;

use outflow_media::Time;

use super::contents::{Contents, Item};
use super::{By, Closed, Connection, State, Violation};
use crate::congestion::{Acked, Lost};
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
                    self.marks = self.settings.marks;
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
        self.tell_controller(outcome, ack);
        let now = self.now;
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

    /// Congestion control goes by packets with units in them.
    fn tell_controller(&mut self, outcome: &Outcome<Contents>, ack: Option<&Ack<'_>>) {
        let now = self.now;
        self.note_marks(outcome, ack);
        for acked in &outcome.acked {
            self.told = acked.received.map(|received| (received, acked.sent)).or(self.told);
            if acked.content.is_counted {
                let received = acked.received.map_or(Time::ZERO, |received| Time::ZERO + received);
                let (number, bytes, sent) = (acked.number, u64::from(acked.bytes), acked.sent);
                self.acked.push(Acked { number, bytes, sent, received });
            }
        }
        // Before anything was told, they wait.
        if let (Some((received, sent)), Some(ack)) = (self.told, ack) {
            for acked in self.acked.iter_mut().filter(|acked| acked.received == Time::ZERO) {
                // What was told of it may have been lost: then it took as long as another one.
                acked.received = Time::ZERO + received + acked.sent.since(sent) - sent.since(acked.sent);
            }
            if let Some(newest) = self.acked.last() {
                let rtt = now.since(newest.sent).saturating_sub(self.held(newest.received, ack));
                self.controller.handle_acked(now, &self.acked, rtt);
                self.acked.clear();
            }
        }
        let of = |number, bytes, sent| Lost { number, bytes: u64::from(bytes), sent };
        self.lost.clear();
        let lost = outcome.lost.iter().filter(|lost| lost.content.is_counted);
        self.lost.extend(lost.map(|lost| of(lost.number, lost.bytes, lost.sent)));
        if !self.lost.is_empty() {
            self.controller.handle_lost(now, &self.lost);
        }
        if !outcome.spurious.is_empty() {
            self.lost.clear();
            self.lost.extend(outcome.spurious.iter().map(|lost| of(lost.number, lost.bytes, lost.sent)));
            self.controller.handle_spurious(now, &self.lost);
        }
    }

    /// How long the peer waited after it received a packet before it sent an acknowledgement.
    fn held(&self, received: Time, ack: &Ack<'_>) -> Duration {
        let largest = ack.arrivals.iter().find(|arrival| arrival.number == ack.largest());
        let largest = largest.or_else(|| ack.arrivals.iter().next());
        let after = largest.map_or(Duration::ZERO, |arrival| (Time::ZERO + arrival.time()).since(received));
        (after + ack.delay).min(self.settings.sent.ack_delay_max)
    }

    /// A path, or a peer, that does not count marks, or counts too few, gets none (RFC 9000 section
    /// 13.4.2.1).
    fn note_marks(&mut self, outcome: &Outcome<Contents>, ack: Option<&Ack<'_>>) {
        let Some(ack) = ack.filter(|_| self.marks) else { return };
        let marked = outcome.acked.iter().filter(|acked| acked.content.is_marked).count() as u64;
        let Some(news) = outcome.ecn else {
            // Of one that was overtaken nothing is said.
            self.marks = marked == 0 || ack.ecn.is_some();
            return;
        };
        if news.ect0 + news.ce < marked {
            self.marks = false;
            return;
        }
        self.ecn.ect0 += news.ect0;
        self.ecn.ect1 += news.ect1;
        self.ecn.ce += news.ce;
        self.controller.handle_ecn(self.now, self.ecn);
    }
}

fn challenge(fresh: [u8; 16]) -> [u8; 8] {
    let mut challenge = [0; 8];
    challenge.copy_from_slice(&fresh[..8]);
    challenge
}
