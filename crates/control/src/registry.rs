//! Which streams there are, which worker owns them, and which receivers they have: control's own book, never
//! touched on a packet's way.

mod save;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use outflow_door::Grant;
use outflow_engine::message::{CloseReason, Command, ControlError, ReceiverId, SourceId, StreamId};
use outflow_media::Time;
use outflow_relay::{LevelBounds, StreamOptions};

use crate::placing::{Admitted, Idle, Load, Placing, Ready, Replication, StreamEntry, Terms, has_lingered};
use crate::reserves::Reserves;
use crate::session::SessionToken;
use crate::turn::{EndedTurns, Turn};
use crate::workers::{Owner, Workers};

pub(crate) use save::{Entered, Written};

/// A receiver that was written down.
#[derive(Debug)]
struct Receiver {
    stream: String,
    owner: Owner,
    session: Option<SessionToken>,
    /// What it was let in for, if it is a peer.
    grant: Option<Grant>,
    /// That holds no longer, and the receiver was told.
    is_revoked: bool,
}

/// A stream that was written down, and its receivers.
#[derive(Debug)]
struct Listed {
    entry: StreamEntry,
    receivers: BTreeSet<ReceiverId>,
}

/// What has ended because its grant holds no longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Revoked {
    /// Receivers and publishers that were told now.
    pub(crate) sessions: u64,
    /// Receivers that are still there, and have to be told again: they may be on their way to a worker.
    pub(crate) lingering: bool,
}

#[derive(Debug, Default)]
struct Book {
    streams: BTreeMap<String, Listed>,
    /// How many of them each worker owns.
    owned: BTreeMap<usize, usize>,
    /// Their names by their numbers with all workers.
    names: HashMap<StreamId, String>,
    receivers: BTreeMap<ReceiverId, Receiver>,
    /// By what cannot be guessed, and hashed with what is secret: how long a look-up takes tells nothing.
    sessions: HashMap<SessionToken, ReceiverId>,
    load: Load,
    idle: Idle,
    ended: EndedTurns,
}

impl Book {
    /// The stream is no more, or another one: its places at workers are struck out.
    fn strike(&mut self, entry: &StreamEntry) {
        entry.owners().for_each(|owner| _ = self.names.remove(&owner.stream));
        entry.idle().for_each(|idle| _ = self.idle.remove(&idle));
        if let Some(owned) = self.owned.get_mut(&entry.owner.worker) {
            *owned = owned.saturating_sub(1);
        }
    }

    /// What is reserved, where a stream may have to find room; nothing, if it reserves nothing.
    fn reserves_beside(&self, entry: &StreamEntry) -> Reserves {
        let all = || Reserves::of(self.streams.values().map(|listed| &listed.entry));
        if entry.options.reserve > 0 { all() } else { Reserves::default() }
    }

    fn forget_receiver(&mut self, receiver: ReceiverId) -> Option<Receiver> {
        let admission = self.receivers.remove(&receiver)?;
        if let Some(listed) = self.streams.get_mut(&admission.stream) {
            listed.receivers.remove(&receiver);
        }
        if let Some(load) = self.load.get_mut(&admission.owner.worker) {
            *load = load.saturating_sub(1);
        }
        if let Some(session) = &admission.session {
            self.sessions.remove(session);
        }
        Some(admission)
    }
}

/// Changes a stream at one worker. The order of replicas without receivers follows.
fn change_at<T>(
    idle: &mut Idle,
    (entry, worker): (&mut StreamEntry, usize),
    change: impl FnOnce(&mut StreamEntry) -> T,
) -> T {
    if let Some(before) = entry.idle_at(worker) {
        idle.remove(&before);
    }
    let changed = change(entry);
    idle.extend(entry.idle_at(worker));
    changed
}

/// The book, behind a lock that is held only to look something up or write it down, and to tell
/// workers of it in the same order.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    book: Mutex<Book>,
}

impl Registry {
    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while the lock is held; if it did, the book itself would still be whole.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, stream: &str) -> Option<StreamEntry> {
        self.book().streams.get(stream).map(|listed| listed.entry.clone())
    }

    /// The stream that has this number with any worker, and its name.
    pub(crate) fn of_number(&self, number: StreamId) -> Option<(String, StreamEntry)> {
        let book = self.book();
        let name = book.names.get(&number)?;
        Some((name.clone(), book.streams.get(name)?.entry.clone()))
    }

    pub(crate) fn insert(&self, stream: String, entry: StreamEntry) {
        let mut book = self.book();
        let before = book.streams.remove(&stream);
        before.iter().for_each(|before| book.strike(&before.entry));
        book.names.extend(entry.owners().map(|owner| (owner.stream, stream.clone())));
        *book.owned.entry(entry.owner.worker).or_default() += 1;
        // Receivers of another one that had this name stay until they are struck out.
        let receivers = before.map(|before| before.receivers).unwrap_or_default();
        book.streams.insert(stream, Listed { entry, receivers });
    }

    pub(crate) fn remove(&self, stream: &str) -> Option<StreamEntry> {
        let mut book = self.book();
        let Listed { entry, receivers } = book.streams.remove(stream)?;
        for id in receivers {
            book.forget_receiver(id);
        }
        book.strike(&entry);
        Some(entry)
    }

    /// Changes what is known of a stream, if it is known.
    pub(crate) fn update(&self, stream: &str, change: impl FnOnce(&mut StreamEntry)) {
        if let Some(listed) = self.book().streams.get_mut(stream) {
            change(&mut listed.entry);
        }
    }

    /// Lets a stream be otherwise, wherever it is served.
    pub(crate) fn change_options(
        &self,
        stream: &str,
        workers: &Workers,
        change: impl FnOnce(StreamOptions) -> StreamOptions,
    ) {
        self.update(stream, |entry| {
            let options = change(entry.options);
            if entry.options == options {
                return;
            }
            // Under the book's lock: a replica either is among these, or begins with the new ones.
            for owner in entry.owners() {
                workers.tell(&owner, Command::SetOptions { stream: owner.stream, options });
            }
            entry.options = options;
        });
    }

    /// Lets receivers of a stream have no more than this, wherever they are served.
    pub(crate) fn set_bounds(&self, stream: &str, workers: &Workers, bounds: LevelBounds) {
        self.update(stream, |entry| {
            if entry.bounds == bounds {
                return;
            }
            // Under the book's lock: a replica either is among these, or begins with the new ones.
            for owner in entry.owners() {
                workers.tell(&owner, Command::SetBounds { stream: owner.stream, bounds: bounds.clone() });
            }
            entry.bounds = bounds;
        });
    }

    /// Streams per worker, for giving a new one to the least loaded.
    pub(crate) fn load(&self, workers: usize) -> Vec<usize> {
        let book = self.book();
        (0..workers).map(|worker| book.owned.get(&worker).copied().unwrap_or(0)).collect()
    }

    /// What streams reserve of workers' time, all but this one.
    pub(crate) fn reserves_but(&self, stream: &str) -> Reserves {
        let book = self.book();
        let others = book.streams.iter().filter(|(name, _)| *name != stream);
        Reserves::of(others.map(|(_, listed)| &listed.entry))
    }

    /// Takes the place of the stream's publisher, if it is free or may be taken over at `now`, and has the stream's
    /// owner told to begin, which is what ends one that was there: in the order in which places are taken.
    pub(crate) fn claim(
        &self,
        stream: &str,
        turn: Turn,
        now: Time,
        begin: impl FnOnce(Owner),
    ) -> Result<Owner, ControlError> {
        let mut book = self.book();
        let unknown = || ControlError::UnknownStream(stream.to_owned());
        let Book { streams, ended, .. } = &mut *book;
        let entry = &mut streams.get_mut(stream).ok_or_else(unknown)?.entry;
        if !entry.is_free(now) {
            return Err(ControlError::Busy(stream.to_owned()));
        }
        let by = turn.peer.clone();
        if let Some(before) = entry.publisher.replace(turn) {
            before.end(CloseReason::TakenOver);
            ended.count(CloseReason::TakenOver);
            tracing::info!(stream, peer = before.peer, by, "a publisher was taken over");
        }
        begin(entry.owner);
        Ok(entry.owner)
    }

    /// When the turn of the stream's publisher is over if no media comes; none if it has no turn. One that is over at
    /// `now` ends.
    pub(crate) fn look_for_media(&self, stream: &str, source: SourceId, now: Time) -> Option<Time> {
        let mut book = self.book();
        let Book { streams, ended, .. } = &mut *book;
        let entry = &mut streams.get_mut(stream)?.entry;
        let turn = entry.publisher.as_ref().filter(|turn| turn.source == source)?;
        let until = turn.until(entry.turns);
        if now < until {
            return Some(until);
        }
        turn.end(CloseReason::NoMedia);
        ended.count(CloseReason::NoMedia);
        tracing::info!(stream, peer = turn.peer, "a publisher was let go: it sends no media");
        entry.publisher = None;
        None
    }

    /// A publisher that has no turn yet was sent away.
    pub(crate) fn count_ended(&self, why: CloseReason) {
        self.book().ended.count(why);
    }

    /// How many turns the relay has ended.
    pub(crate) fn ended_turns(&self) -> EndedTurns {
        self.book().ended
    }

    /// Gives the place of the stream's publisher back, if `source` still has it.
    pub(crate) fn release(&self, stream: &str, source: SourceId) {
        self.update(stream, |entry| {
            if entry.publisher.as_ref().is_some_and(|turn| turn.source == source) {
                entry.publisher = None;
            }
        });
    }

    /// The stream's publisher, if it is still this one, is another peer now.
    pub(crate) fn rename(&self, stream: &str, source: SourceId, peer: &str) {
        self.update(stream, |entry| {
            if let Some(turn) = entry.publisher.as_mut().filter(|turn| turn.source == source) {
                peer.clone_into(&mut turn.peer);
            }
        });
    }

    /// The worker that would serve the stream's next receiver.
    pub(crate) fn place(&self, stream: &str, placing: Placing) -> Result<usize, ControlError> {
        let book = self.book();
        let listed =
            book.streams.get(stream).ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))?;
        Ok(listed.entry.place((&book.load, &book.reserves_beside(&listed.entry)), placing))
    }

    /// Writes a receiver down, if the stream and the relay still take one.
    ///
    /// `replicate` is called where the stream has to be served by another worker from now on. What it
    /// sends to workers is sent before another caller learns of the replica; `number` is for a new one.
    pub(crate) fn admit(
        &self,
        stream: &str,
        receiver: ReceiverId,
        terms: Terms,
        number: impl FnOnce() -> StreamId,
        replicate: impl FnOnce(Replication) -> Ready,
    ) -> Result<Admitted, ControlError> {
        let mut book = self.book();
        let unknown = || ControlError::UnknownStream(stream.to_owned());
        let reserves = book.streams.get(stream).map(|listed| book.reserves_beside(&listed.entry));
        let reserves = reserves.unwrap_or_default();
        let Book { streams, names, receivers, load, idle, .. } = &mut *book;
        let Listed { entry, receivers: of_stream } = streams.get_mut(stream).ok_or_else(unknown)?;
        if entry.receivers >= entry.receivers_max {
            let (what, key) = ("the receivers of this stream", "max_receivers");
            return Err(ControlError::Limit { what, limit: entry.receivers_max, key });
        }
        if receivers.len() >= terms.relay_max {
            let (what, key) = ("the receivers of this relay", "limits.receivers");
            return Err(ControlError::Limit { what, limit: terms.relay_max, key });
        }
        let worker = terms.worker.unwrap_or_else(|| entry.place((load, &reserves), terms.placing));
        if !entry.has_room(&reserves, worker) {
            reserves.demand(stream, worker, entry.options.reserve)?;
        }
        *load.entry(worker).or_default() += 1;
        let admitted = change_at(idle, (entry, worker), |entry| entry.take_in(worker, number, replicate));
        of_stream.insert(receiver);
        let stream = stream.to_owned();
        names.entry(admitted.owner.stream).or_insert_with(|| stream.clone());
        let owner = admitted.owner;
        receivers.insert(receiver, Receiver { stream, owner, session: None, grant: None, is_revoked: false });
        Ok(admitted)
    }

    /// Keeps what a receiver was let in for.
    pub(crate) fn keep(&self, receiver: ReceiverId, grant: Option<Grant>) {
        if let Some(admission) = self.book().receivers.get_mut(&receiver) {
            admission.grant = grant;
        }
    }

    /// Whether the hook has let a receiver in for this address and token.
    pub(crate) fn was_asked_for(&self, receiver: ReceiverId, peer: IpAddr, token: Option<&str>) -> bool {
        let book = self.book();
        let grant = book.receivers.get(&receiver).and_then(|admission| admission.grant.as_ref());
        grant.is_some_and(|grant| grant.was_asked_for(peer, token))
    }

    /// How many receivers and publishers each token with a name has let in.
    pub(crate) fn sessions_of_tokens(&self) -> BTreeMap<String, u64> {
        let book = self.book();
        let turns = book.streams.values().filter_map(|listed| listed.entry.publisher.as_ref());
        let grants = turns.map(|turn| &turn.grant).chain(book.receivers.values().map(|one| &one.grant));
        let mut sessions = BTreeMap::new();
        for name in grants.flatten().filter_map(Grant::token) {
            *sessions.entry(name.to_owned()).or_default() += 1;
        }
        sessions
    }

    /// Ends receivers and publishers whose grants hold no longer, by what `tell` tells workers.
    pub(crate) fn revoke(
        &self,
        holds: impl Fn(&Grant) -> bool,
        mut tell: impl FnMut(Owner, Command),
    ) -> Revoked {
        let mut revoked = Revoked::default();
        let reason = CloseReason::Revoked;
        let mut book = self.book();
        for (&receiver, admission) in &mut book.receivers {
            let Some(grant) = admission.grant.as_ref().filter(|grant| !holds(grant)) else { continue };
            if !std::mem::replace(&mut admission.is_revoked, true) {
                tracing::info!(stream = admission.stream, receiver, token = grant.name(), "{reason}");
                revoked.sessions += 1;
            }
            revoked.lingering = true;
            let owner = admission.owner;
            tell(owner, Command::Leave { stream: owner.stream, receiver, reason });
        }
        for (stream, Listed { entry, .. }) in &mut book.streams {
            let grant = entry.publisher.as_ref().and_then(|turn| turn.grant.as_ref());
            if grant.is_none_or(&holds) {
                continue;
            }
            let Some(turn) = entry.publisher.take() else { continue };
            tracing::info!(stream, peer = turn.peer, "a publisher was let go: {reason}");
            turn.end(reason);
            revoked.sessions += 1;
            let owner = entry.owner;
            tell(owner, Command::CloseSource { stream: owner.stream, source: turn.source });
        }
        revoked
    }

    pub(crate) fn receiver(&self, receiver: ReceiverId) -> Option<Owner> {
        self.book().receivers.get(&receiver).map(|admission| admission.owner)
    }

    /// The name of a receiver's stream.
    pub(crate) fn stream_of(&self, receiver: ReceiverId) -> Option<String> {
        self.book().receivers.get(&receiver).map(|admission| admission.stream.clone())
    }

    /// From now on the session of a receiver that is there has this name.
    pub(crate) fn open_session(&self, receiver: ReceiverId, token: SessionToken) {
        let mut book = self.book();
        if let Some(admission) = book.receivers.get_mut(&receiver) {
            let before = admission.session.replace(token);
            before.and_then(|before| book.sessions.remove(&before));
            book.sessions.insert(token, receiver);
        }
    }

    /// The receiver whose session has this name.
    pub(crate) fn session(&self, token: SessionToken) -> Option<ReceiverId> {
        self.book().sessions.get(&token).copied()
    }

    /// Strikes a receiver out. Harmless if that was done before.
    pub(crate) fn discharge(&self, receiver: ReceiverId) {
        let mut book = self.book();
        let Some(Receiver { stream, owner, .. }) = book.forget_receiver(receiver) else { return };
        let Book { streams, idle, .. } = &mut *book;
        if let Some(listed) = streams.get_mut(&stream) {
            change_at(idle, (&mut listed.entry, owner.worker), |entry| entry.let_go(owner));
        }
    }

    /// Lets replicas rest that have not had a receiver for a while at `now`; each of them is told to
    /// before another receiver can be admitted to it again.
    pub(crate) fn rest_idle(&self, now: Instant, mut rest: impl FnMut(Owner)) {
        let mut book = self.book();
        let Book { streams, names, idle, .. } = &mut *book;
        while let Some(&(since, number)) = idle.first().filter(|(since, _)| has_lingered(*since, now)) {
            idle.remove(&(since, number));
            let listed = names.get(&number).and_then(|name| streams.get_mut(name));
            listed.and_then(|listed| listed.entry.rest(number)).into_iter().for_each(&mut rest);
        }
    }
}
