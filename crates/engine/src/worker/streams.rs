//! The streams of a worker, by their places and by their numbers.

use core::ops::{Index, IndexMut};
use std::collections::BTreeMap;

use outflow_media::Time;
use outflow_relay::{Priority, Report, SinkKey, StreamOptions};
use slab::Slab;

use super::agenda::Agenda;
use super::share::{OwnerEnd, ReplicaEnd};
use super::stream::LiveStream;
use super::tasks::Tasks;
use crate::clock::Clock;
use crate::message::{ControlError, Demanders, ReceiverId, StreamId};

/// The streams of a worker.
pub(super) struct Streams {
    all: Slab<LiveStream>,
    places: BTreeMap<StreamId, usize>,
    agenda: Agenda,
    /// What receivers want, to the task that fetches streams.
    told: Demanders,
}

impl Streams {
    /// None yet; `told` hears what receivers want.
    pub(super) fn new(told: Demanders) -> Self {
        Streams { all: Slab::new(), places: BTreeMap::new(), agenda: Agenda::default(), told }
    }

    /// One more, which is to have of the worker's time what its options say.
    pub(super) fn add(
        &mut self,
        (id, owner): (StreamId, StreamId),
        (name, url): (String, String),
        (options, tasks): (StreamOptions, &mut Tasks),
        replica_ends: Vec<ReplicaEnd>,
    ) {
        let stream = LiveStream::new((id, owner), name, url, options, replica_ends, self.told.clone());
        let index = self.all.insert(stream);
        tasks.claim(index, &options);
        self.places.insert(id, index);
        self.agenda.change(index);
    }

    /// Begins to serve a stream of another worker, or does so again.
    pub(super) fn replicate(
        &mut self,
        (id, owner): (StreamId, StreamId),
        name: String,
        (options, tasks): (StreamOptions, &mut Tasks),
        replica_ends: Vec<ReplicaEnd>,
    ) {
        match self.find(id) {
            Ok(index) => self[index].queues.set_replica_ends(replica_ends),
            Err(_) => self.add((id, owner), (name, String::new()), (options, tasks), replica_ends),
        }
    }

    /// A stream is otherwise from now on.
    pub(super) fn set_options(&mut self, id: StreamId, options: StreamOptions, tasks: &mut Tasks) {
        if let Ok(index) = self.find(id) {
            tasks.claim(index, &options);
        }
        self.with(id, |stream| stream.core.set_options(options));
    }

    /// Hands a stream over to one more worker from now on. `knows`: that has all that has been before.
    pub(super) fn share(&mut self, id: StreamId, owner_end: OwnerEnd, knows: bool) {
        self.with(id, |stream| stream.share(owner_end, knows));
    }

    /// A replica has no receivers: its packets go.
    pub(super) fn rest(&mut self, now: Time, id: StreamId) {
        if let Ok(index) = self.find(id) {
            self[index].queues.set_replica_ends(Vec::new());
            self[index].core.handle_rest(now);
        }
    }

    /// Lets one go.
    pub(super) fn remove(&mut self, index: usize) {
        self.places.remove(&self.all.remove(index).id);
        self.agenda.change(index);
    }

    pub(super) fn get(&self, index: usize) -> Option<&LiveStream> {
        self.all.get(index)
    }

    /// One that may be changed: it is looked at afterwards.
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut LiveStream> {
        let stream = self.all.get_mut(index)?;
        self.agenda.change(index);
        Some(stream)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &LiveStream> {
        self.all.iter().map(|(_, stream)| stream)
    }

    /// The first place from this one on at which there is a stream.
    pub(super) fn next_from(&self, index: usize) -> Option<usize> {
        (index..self.all.capacity()).find(|index| self.all.contains(*index))
    }

    /// The place of one.
    pub(super) fn find(&self, id: StreamId) -> Result<usize, ControlError> {
        self.places.get(&id).copied().ok_or(ControlError::StreamGone)
    }

    /// The place of a stream, and its sink that is this receiver.
    pub(super) fn find_sink(&self, id: StreamId, receiver: ReceiverId) -> Option<(usize, SinkKey)> {
        let index = self.find(id).ok()?;
        Some((index, *self.all[index].receivers.get(&receiver)?))
    }

    /// Changes a stream, if it is here.
    pub(super) fn with(&mut self, id: StreamId, change: impl FnOnce(&mut LiveStream)) {
        if let Ok(index) = self.find(id) {
            let stream = &mut self[index];
            change(stream);
            stream.touched = true;
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
            let stream = &mut self[index];
            change(stream, key);
            stream.touched = true;
        }
    }

    /// Tells a stream's core what became of packets.
    pub(super) fn report(&mut self, index: usize, key: SinkKey, report: Report) {
        if let Some(stream) = self.get_mut(index) {
            stream.core.handle_report(key, report);
        }
    }

    /// Takes what was put down for streams that were called to: by their publishers, other workers, other contexts.
    /// Those stay called to for which there may be more; returns whether there are any.
    pub(super) fn take_put_down(&mut self, clock: &Clock, called: &mut Vec<StreamId>) -> bool {
        called.sort_unstable();
        called.dedup();
        called.retain(|id| self.find(*id).is_ok_and(|index| self[index].take_put_down(clock)));
        !called.is_empty()
    }

    /// When the first of them has something to do, if any has.
    pub(super) fn due(&mut self) -> Option<Time> {
        let Streams { all, agenda, .. } = self;
        let any = agenda.look(|index| all.get(index).map(LiveStream::seen));
        if any { Some(Time::ZERO) } else { agenda.due() }
    }

    /// The highest class of any of them.
    pub(super) fn highest(&self) -> Priority {
        self.agenda.highest()
    }

    /// Goes through those that may have something to do.
    pub(super) fn plan(&mut self, now: Time, mut each: impl FnMut(usize, &mut LiveStream)) {
        self.agenda.wake(now);
        for &index in self.agenda.changed() {
            if let Some(stream) = self.all.get_mut(index) {
                each(index, stream);
            }
        }
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
        self.agenda.change(index);
        &mut self.all[index]
    }
}
