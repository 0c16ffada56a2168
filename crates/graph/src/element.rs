//! What an element is.

use core::any::Any;
use core::fmt::Debug;

use outflow_media::{Format, Time};
use outflow_packet::{DropReason, Drops};

use super::{Item, Message};

/// One step on a packet's way.
///
/// An element is given batches of packets and leaves in them what goes on, in order; it says why the
/// rest does not. It has no clock, no chance and no I/O of its own: the same packets make the same
/// packets, live and simulated.
pub trait Element: Debug + Send {
    /// Told what will come in, before the first packet and when that changes. Says what will come
    /// out.
    ///
    /// # Errors
    /// It cannot work on that.
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit>;

    /// The tracks that came in and have no place in what comes out, by their names; known once it is bound.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// Works on a batch: what is in it afterwards goes on, by the output that each says.
    ///
    /// What is left out is counted in `tally`, unless it went into something that comes out later.
    fn work(&mut self, now: Time, batch: &mut Vec<Item>, tally: &mut Tally);

    /// Told what the source tells, behind the packets before it, as far as its contract says that it
    /// is ([`Control`](super::Control)). Says what goes on, where the contract says that it changes it.
    fn message(&mut self, now: Time, message: Message) -> Option<Message> {
        let _ = now;
        Some(message)
    }

    /// A moment, and the timestamp that a track has then, of tracks that it has made and that all have one clock. Nothing
    /// where that is not known, or said by messages.
    fn clock(&self, track: u8) -> Option<(Time, u32)> {
        let _ = track;
        None
    }

    /// Takes out what an element of the same name and kind can go on from in another graph.
    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Goes on from what an element before it has left. What is of another type, because the element
    /// itself is another one now, is let go.
    fn resume(&mut self, state: Box<dyn Any + Send>) {
        let _ = state;
    }

    /// What of it goes on in another process, so that receivers see no break: counters and clocks, in a form of its own
    /// that other versions read. Nothing, where it can begin afresh.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Goes on from what another process has saved.
    fn restore(&mut self, saved: &[u8], at: Replay<'_>) {
        let _ = (saved, at);
    }
}

/// Where an element stands that goes on from what another process has saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay<'a> {
    /// The packets that come next are the last ones that the other has worked on: it is to number them as that did. With
    /// it comes what an element that began with the saved numbers says behind them; nothing at the trial that this is
    /// known by.
    Before(Option<&'a [u8]>),
    /// It has worked on those: it stands where the other stood.
    After,
}

/// Why an element cannot work on something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {help}")]
pub struct Unfit {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

impl Unfit {
    /// What is wrong, and what to do about it.
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Unfit { what: what.into(), help: help.into() }
    }
}

/// What an element says of its work.
#[derive(Debug, Default)]
pub struct Tally {
    /// Packets that it left out, by reason. Cumulative.
    pub drops: Drops,
    /// What went wrong last, in words; `None` while all is well.
    pub fault: Option<String>,
    /// How often something went wrong. Cumulative.
    pub faults: u64,
    /// Bytes of memory that it holds, where it knows.
    pub memory_bytes: u64,
}

impl Tally {
    /// Counts a packet that goes no further.
    pub fn drop(&mut self, reason: DropReason) {
        self.drops.add(reason, 1);
    }

    /// Something went wrong.
    pub fn fail(&mut self, what: impl Into<String>) {
        self.fault = Some(what.into());
        self.faults += 1;
    }
}
