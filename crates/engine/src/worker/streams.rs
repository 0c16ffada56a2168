//! The streams of a worker, by their places and by their numbers.

use core::ops::{Index, IndexMut};

use outflow_media::Time;
use outflow_relay::{Report, SinkKey, StreamOptions};
use slab::Slab;
use tokio::sync::mpsc::UnboundedSender;

use super::share::Inlet;
use super::stream::LiveStream;
use crate::clock::Clock;
use crate::message::{ControlError, Demand, ReceiverId, StreamId};

/// The streams of a worker.
pub(super) struct Streams {
    all: Slab<LiveStream>,
    /// What receivers want, to the task that fetches streams.
    told: UnboundedSender<Demand>,
}

impl Streams {
    /// None yet; `told` hears what receivers want.
    pub(super) fn new(told: UnboundedSender<Demand>) -> Self {
        Streams { all: Slab::new(), told }
    }

    /// One more.
    pub(super) fn add(
        &mut self,
        (id, home): (StreamId, StreamId),
        (name, url): (String, String),
        options: StreamOptions,
        inlets: Vec<Inlet>,
    ) {
        self.all.insert(LiveStream::new((id, home), name, url, options, inlets, self.told.clone()));
    }

    /// Begins to serve a stream of another worker, or does so again.
    pub(super) fn replicate(
        &mut self,
        (id, home): (StreamId, StreamId),
        name: String,
        options: StreamOptions,
        inlets: Vec<Inlet>,
    ) {
        match self.find(id) {
            Ok(index) => self.all[index].queues.set_inlets(inlets),
            Err(_) => self.add((id, home), (name, String::new()), options, inlets),
        }
    }

    /// A replica has no receivers: its packets go.
    pub(super) fn rest(&mut self, now: Time, id: StreamId) {
        if let Ok(index) = self.find(id) {
            self.all[index].queues.set_inlets(Vec::new());
            self.all[index].core.handle_rest(now);
        }
    }

    /// Lets one go.
    pub(super) fn remove(&mut self, index: usize) {
        self.all.remove(index);
    }

    pub(super) fn get(&self, index: usize) -> Option<&LiveStream> {
        self.all.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut LiveStream> {
        self.all.get_mut(index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &LiveStream> {
        self.all.iter().map(|(_, stream)| stream)
    }

    /// All of them, with their places.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut LiveStream)> {
        self.all.iter_mut()
    }

    /// The first place from this one on at which there is a stream.
    pub(super) fn next_from(&self, index: usize) -> Option<usize> {
        (index..self.all.capacity()).find(|index| self.all.contains(*index))
    }

    /// The place of one.
    pub(super) fn find(&self, id: StreamId) -> Result<usize, ControlError> {
        let found = self.all.iter().find(|(_, stream)| stream.id == id);
        found.map(|(index, _)| index).ok_or(ControlError::StreamGone)
    }

    /// The place of a stream, and its sink that is this receiver.
    pub(super) fn find_sink(&self, id: StreamId, receiver: ReceiverId) -> Option<(usize, SinkKey)> {
        let index = self.find(id).ok()?;
        Some((index, *self.all[index].receivers.get(&receiver)?))
    }

    /// Changes a stream, if it is here.
    pub(super) fn with(&mut self, id: StreamId, change: impl FnOnce(&mut LiveStream)) {
        if let Ok(index) = self.find(id) {
            change(&mut self.all[index]);
            self.all[index].touched = true;
        }
    }

    /// Changes what a stream has for a receiver, if that is here.
    pub(super) fn with_sink(
        &mut self,
        id: StreamId,
        receiver: ReceiverId,
        change: impl FnOnce(&mut LiveStream, SinkKey),
    ) {
        if let Some((index, key)) = self.find_sink(id, receiver) {
            change(&mut self.all[index], key);
            self.all[index].touched = true;
        }
    }

    /// Tells a stream's core what became of packets.
    pub(super) fn report(&mut self, index: usize, key: SinkKey, report: Report) {
        if let Some(stream) = self.all.get_mut(index) {
            stream.core.handle_report(key, report);
        }
    }

    /// Takes what publishers have put into their queues. Returns whether something is left for the next round.
    pub(super) fn drain_queues(&mut self, clock: &Clock) -> bool {
        self.all.iter_mut().fold(false, |is_more, (_, stream)| stream.drain_queue(clock) || is_more)
    }

    /// Takes what other workers have handed over. Returns whether something is left for the next round.
    pub(super) fn take_handed(&mut self, now: Time) -> bool {
        self.all.iter_mut().fold(false, |is_more, (_, stream)| stream.take_handed(now) || is_more)
    }

    /// Takes what comes back from other contexts.
    pub(super) fn take_near(&mut self, clock: &Clock) {
        let now = clock.now();
        self.all.iter_mut().for_each(|(_, stream)| stream.take_near(now, clock));
    }
}

impl Index<usize> for Streams {
    type Output = LiveStream;

    fn index(&self, index: usize) -> &LiveStream {
        &self.all[index]
    }
}

impl IndexMut<usize> for Streams {
    fn index_mut(&mut self, index: usize) -> &mut LiveStream {
        &mut self.all[index]
    }
}
