//! What a connection sends.

use core::net::SocketAddr;

use outflow_media::Time;

use super::contents::{Contents, Item};
use super::outgoing::{Draft, PathView};
use super::{By, Connection, Outgoing, State, Transmit, one_way};
use crate::limits::DATAGRAM_BYTES_MAX;
use crate::packet::{Close, Code, Frame, Head, Mark, Progress, Spans, Writer};

/// Bytes of a packet that carries a path challenge or its response, at most.
const QUESTION_BYTES: usize = 64;

impl Connection {
    /// The next datagram, written to `out`, which is cleared; nothing if none is to be sent now. May give up
    /// units, and make room: to be followed by [`poll`](Self::poll).
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = self.now.max(now);
        if !matches!(self.state, State::Open | State::Finishing) {
            return self.write_close(out);
        }
        if self.protection.is_spent() {
            self.end(By::Here, Code::SPENT, "the keys have seen as many packets as they may");
            return self.write_close(out);
        }
        if self.sent.is_full() {
            return None;
        }
        if self.sent.next_number() == self.skip_at {
            self.sent.skip().ok()?;
            self.choose_skip();
        }
        let questions = self.write_question(out).or_else(|| self.write_size(out));
        let transmit = questions.or_else(|| self.write_packet(out));
        self.note_room();
        transmit
    }

    fn write_close(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        if !core::mem::take(&mut self.says_close) {
            return None;
        }
        let closed = self.closed.as_ref()?;
        let frame = Frame::Close(Close { code: closed.code, text: &closed.text });
        let to = self.path.address();
        let overhead = self.protection.overhead();
        let number = self.sent.next_number();
        let mut writer = Writer::new(out, self.remote, number, self.mtu.bytes() - overhead);
        writer.push(&frame);
        self.seal_silent(out, to)
    }

    /// Asks where the peer is, or answers that.
    fn write_question(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        // Kind, challenge, and what is around them.
        let bytes = Head::bytes(self.sent.next_number()) + 1 + 8 + self.protection.overhead();
        let question = self.path.take_question(self.now, bytes as u64);
        let (frame, to) = match question {
            Some((challenge, to)) => (Frame::PathChallenge(challenge), to),
            None => {
                let (answer, to) = self.path.take_response()?;
                (Frame::PathResponse(answer), to)
            }
        };
        let mut writer = Writer::new(out, self.remote, self.sent.next_number(), QUESTION_BYTES);
        writer.push(&frame);
        self.seal_silent(out, to)
    }

    /// Sends what is not missed if it is lost.
    fn seal_silent(&mut self, out: &mut Vec<u8>, to: SocketAddr) -> Option<Transmit> {
        let number = self.sent.handle_sent_silent(self.now).ok()?;
        self.seal(number, out)?;
        Some(Transmit { to, mark: Mark::None })
    }

    fn seal(&mut self, number: u64, out: &mut Vec<u8>) -> Option<()> {
        self.protection.seal(number, out, Head::bytes(number)).ok()?;
        self.spoke = self.now;
        self.counts.sent += 1;
        self.counts.sent_bytes += out.len() as u64;
        Some(())
    }

    /// The next size of datagrams to be tried, and when; not before the peer has answered anything.
    pub(super) fn size_to_try(&self) -> Option<(Time, u16)> {
        self.mtu.probe().filter(|_| self.counts.received > 0)
    }

    /// Tries whether a larger datagram gets through.
    fn write_size(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let (_, size) = self.size_to_try().filter(|(at, _)| *at <= self.now)?;
        let bytes = usize::from(size) - self.protection.overhead();
        let mut writer = Writer::new(out, self.remote, self.sent.next_number(), bytes);
        writer.push(&Frame::Ping);
        writer.pad();
        let contents = Contents { probed: Some(size), ..self.spare() };
        let number = self.sent.handle_sent(self.now, u32::from(size), contents).ok()?;
        self.mtu.handle_sent(number);
        self.seal(number, out)?;
        Some(Transmit { to: self.path.address(), mark: Mark::None })
    }

    /// Whether a packet of full size with units may go now.
    fn may_send_data(&mut self) -> bool {
        let has_data = self.outgoing.as_ref().is_some_and(Outgoing::has_data);
        let is_free =
            || self.controller.next_send(self.now, self.mtu.bytes() as u64).is_some_and(|at| at <= self.now);
        let may = has_data && (self.probes > 0 || is_free());
        self.is_held |= has_data && !may;
        may
    }

    fn write_packet(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        let ack_is_due = is_due(self.received.next_timeout());
        let says = ack_is_due || is_due(self.progress_at) || self.pings;
        let may_send_data = self.may_send_data();
        if !(says || may_send_data || self.outgoing.as_ref().is_some_and(Outgoing::has_news)) {
            return None;
        }
        let mut contents = self.spare();
        // While the peer is silent, the path may not carry larger datagrams any more.
        let datagram = if self.probes > 0 { DATAGRAM_BYTES_MAX } else { self.mtu.bytes() };
        let bytes_max = datagram - self.protection.overhead();
        let mut writer = Writer::new(out, self.remote, self.sent.next_number(), bytes_max);
        // One that is due soon goes with what is sent anyway.
        let soon = self.now + self.settings.received.ack_delay_max / 2;
        if self.received.next_timeout().is_some_and(|due| due <= soon)
            && let Some(ack) = self.received.ack(self.now)
        {
            let largest = ack.largest();
            if writer.ack(&ack) {
                contents.items.push(Item::Ack(largest));
            }
        }
        self.progress_at = None;
        if let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.has_news()) {
            let (settled_below, window_end) = incoming.progress(&mut self.spans);
            let progress = Progress { settled_below, window_end, lost: Spans::new(&self.spans) };
            if writer.push(&Frame::Progress(progress)) {
                incoming.handle_told(&progress);
                contents.items.push(Item::Progress(settled_below));
            }
        }
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.write_news(&mut writer, &mut contents.items);
            if may_send_data {
                let before = contents.items.len();
                let path = PathView { one_way: one_way(self.sent.rtt()), controller: &self.controller };
                let (writer, items, events) = (&mut writer, &mut contents.items, &mut self.events);
                outgoing.write_data(Draft { now: self.now, path, writer, items, events });
                contents.is_counted = contents.items.len() > before;
            }
        }
        if core::mem::take(&mut self.pings) && !writer.elicits() {
            writer.push(&Frame::Ping);
        }
        let (is_empty, elicits) = (writer.is_empty(), writer.elicits());
        self.probes = 0;
        if is_empty {
            self.recycle(contents);
            return None;
        }
        self.send_packet(out, contents, elicits)
    }

    fn send_packet(&mut self, out: &mut Vec<u8>, mut contents: Contents, elicits: bool) -> Option<Transmit> {
        let bytes = out.len() + self.protection.overhead();
        let is_counted = contents.is_counted;
        let mark = if self.feedback.marks() && is_counted { Mark::Ect0 } else { Mark::None };
        contents.is_marked = mark != Mark::None;
        let number = if elicits {
            self.sent.handle_sent(self.now, bytes as u32, contents).ok()?
        } else {
            self.recycle(contents);
            self.sent.handle_sent_silent(self.now).ok()?
        };
        if is_counted {
            let is_waiting = self.outgoing.as_ref().is_some_and(Outgoing::has_data);
            let is_waiting = core::mem::take(&mut self.is_held) || is_waiting;
            self.controller.handle_sent(self.now, number, bytes as u64, is_waiting);
        }
        self.seal(number, out)?;
        Some(Transmit { to: self.path.address(), mark })
    }

    fn spare(&mut self) -> Contents {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn recycle(&mut self, mut contents: Contents) {
        contents.items.clear();
        self.spare.push(Contents { items: contents.items, ..Contents::default() });
    }
}
