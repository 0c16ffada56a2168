//! The stream as it comes from a parent: asked for as every receiver does, and handed on from where the parent before
//! has come to.

use core::net::Ipv4Addr;

use bytes::Bytes;
use outflow_media::{Format, Time};

use super::limits::{LEFT, TRIES, TRY_AGAIN, TURNS};
use super::splice::{Splice, Way};

/// A parent in one of its turns: its address, and the port here to which it sends.
pub(super) type Turn = (Ipv4Addr, u16);

/// Asks a parent to begin, until it says that it has.
#[derive(Debug)]
struct Beginning {
    again_at: Time,
    left: u32,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The parent is to be asked to begin.
    Ask(Turn),
    /// It does not.
    Failed(Ipv4Addr),
}

/// The stream as it comes.
#[derive(Debug)]
pub(super) struct Feed {
    format: Format,
    splice: Splice,
    port: u16,
    parent: Option<(Turn, Way)>,
    /// The parent before, and until when what it still sends is handed on.
    before: Option<(Turn, Way, Time)>,
    beginning: Option<Beginning>,
}

impl Feed {
    pub(super) fn new(format: Format) -> Self {
        let port = *TURNS.end();
        Feed { format, splice: Splice::default(), port, parent: None, before: None, beginning: None }
    }

    /// The stream is taken from this relay from now on.
    pub(super) fn take(&mut self, now: Time, parent: Ipv4Addr) {
        self.lose(now);
        self.port = if self.port == *TURNS.end() { *TURNS.start() } else { self.port + 1 };
        self.parent = Some(((parent, self.port), Way::new(&self.format)));
        self.beginning = Some(Beginning { again_at: now, left: TRIES });
        self.splice.change();
    }

    /// There is no parent any more. What the one before still sends goes on.
    pub(super) fn lose(&mut self, now: Time) {
        self.beginning = None;
        let Some((turn, way)) = self.parent.take() else { return };
        // A parent that never came to what was handed on goes on with nothing.
        if !self.splice.is_open() {
            self.before = Some((turn, way, now + LEFT));
        }
    }

    /// There is a source here.
    pub(super) fn end(&mut self) {
        (self.parent, self.before, self.beginning) = (None, None, None);
    }

    /// The parent has begun to send.
    pub(super) fn handle_begun(&mut self, turn: Turn) {
        if self.parent.as_ref().is_some_and(|(of, _)| *of == turn) {
            self.beginning = None;
        }
    }

    /// Whether it is the parent.
    pub(super) fn is_parent(&self, address: Ipv4Addr) -> bool {
        self.parent.as_ref().is_some_and(|((of, _), _)| *of == address)
    }

    /// A packet of RTP has come; what is to be handed on.
    pub(super) fn handle_media(&mut self, now: Time, turn: Turn, packet: Bytes, out: &mut Vec<Bytes>) {
        if let Some((_, way)) = self.parent.as_mut().filter(|(of, _)| *of == turn) {
            self.beginning = None;
            way.put(now, packet);
            while let Some(packet) = way.next(now) {
                out.extend(self.splice.take(now, way, packet));
            }
            if !self.splice.is_open() {
                self.before = None;
            }
        } else if let Some((_, way, _)) =
            self.before.as_mut().filter(|(of, _, until)| *of == turn && now < *until)
        {
            way.put(now, packet);
            while let Some(packet) = way.next(now) {
                out.extend(self.splice.go_on(way, packet));
            }
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.beginning.as_ref().map(|beginning| beginning.again_at)
    }

    /// What is to be done now.
    pub(super) fn handle_timeout(&mut self, now: Time) -> Option<Step> {
        let (turn, _) = self.parent.as_ref()?;
        let beginning = self.beginning.as_mut().filter(|beginning| beginning.again_at <= now)?;
        if beginning.left == 0 {
            self.beginning = None;
            return Some(Step::Failed(turn.0));
        }
        beginning.left -= 1;
        beginning.again_at = now + TRY_AGAIN;
        Some(Step::Ask(*turn))
    }
}
