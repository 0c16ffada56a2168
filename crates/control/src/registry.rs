//! Which streams there are, which worker owns them, and which receivers they have: control's own book, never
//! touched on a packet's way.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use outflow_engine::message::{Command, ControlError, ReceiverId, SourceId, StreamId};
use outflow_relay::{LevelBounds, StreamOptions};

use crate::placing::{Admitted, Load, Placing, Ready, Replication, StreamEntry, Terms};
use crate::session::SessionToken;
use crate::workers::{Owner, Workers};

/// A receiver that was written down.
#[derive(Debug)]
struct Receiver {
    stream: String,
    owner: Owner,
    session: Option<SessionToken>,
}

#[derive(Debug, Default)]
struct Book {
    streams: BTreeMap<String, StreamEntry>,
    /// Their names by their numbers with all workers.
    names: HashMap<StreamId, String>,
    receivers: BTreeMap<ReceiverId, Receiver>,
    /// By what cannot be guessed, and hashed with what is secret: how long a look-up takes tells nothing.
    sessions: HashMap<SessionToken, ReceiverId>,
    load: Load,
}

impl Book {
    fn forget_numbers(&mut self, stream: &str) {
        let Book { streams, names, .. } = self;
        let owners = streams.get(stream).into_iter().flat_map(StreamEntry::owners);
        owners.for_each(|owner| _ = names.remove(&owner.stream));
    }

    fn forget_receiver(&mut self, receiver: ReceiverId) -> Option<Receiver> {
        let admission = self.receivers.remove(&receiver)?;
        if let Some(load) = self.load.get_mut(&admission.owner.worker) {
            *load = load.saturating_sub(1);
        }
        if let Some(session) = &admission.session {
            self.sessions.remove(session);
        }
        Some(admission)
    }
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

    pub(crate) fn names(&self) -> Vec<String> {
        self.book().streams.keys().cloned().collect()
    }

    pub(crate) fn get(&self, stream: &str) -> Option<StreamEntry> {
        self.book().streams.get(stream).cloned()
    }

    /// The stream that has this number with any worker, and its name.
    pub(crate) fn of_number(&self, number: StreamId) -> Option<(String, StreamEntry)> {
        let book = self.book();
        let name = book.names.get(&number)?;
        Some((name.clone(), book.streams.get(name)?.clone()))
    }

    pub(crate) fn insert(&self, stream: String, entry: StreamEntry) {
        let mut book = self.book();
        book.forget_numbers(&stream);
        book.names.extend(entry.owners().map(|owner| (owner.stream, stream.clone())));
        book.streams.insert(stream, entry);
    }

    pub(crate) fn remove(&self, stream: &str) -> Option<StreamEntry> {
        let mut book = self.book();
        let of_stream = book.receivers.iter().filter(|(_, admission)| admission.stream == stream);
        let ids: Vec<ReceiverId> = of_stream.map(|(id, _)| *id).collect();
        for id in ids {
            book.forget_receiver(id);
        }
        book.forget_numbers(stream);
        book.streams.remove(stream)
    }

    /// Changes what is known of a stream, if it is known.
    pub(crate) fn update(&self, stream: &str, change: impl FnOnce(&mut StreamEntry)) {
        if let Some(entry) = self.book().streams.get_mut(stream) {
            change(entry);
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
        let mut load = vec![0; workers];
        for entry in self.book().streams.values() {
            load[entry.owner.worker] += 1;
        }
        load
    }

    /// Takes the place of the stream's publisher.
    pub(crate) fn claim(&self, stream: &str, source: SourceId, peer: &str) -> Result<Owner, ControlError> {
        let mut book = self.book();
        let entry =
            book.streams.get_mut(stream).ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))?;
        if let Some((_, publisher)) = &entry.publisher {
            return Err(ControlError::Busy(stream.to_owned(), publisher.clone()));
        }
        entry.publisher = Some((source, peer.to_owned()));
        Ok(entry.owner)
    }

    /// Gives the place of the stream's publisher back, if `source` still has it.
    pub(crate) fn release(&self, stream: &str, source: SourceId) {
        self.update(stream, |entry| {
            if entry.publisher.as_ref().is_some_and(|(id, _)| *id == source) {
                entry.publisher = None;
            }
        });
    }

    /// The stream's publisher, if it is still this one, is another peer now.
    pub(crate) fn rename(&self, stream: &str, source: SourceId, peer: &str) {
        self.update(stream, |entry| {
            if let Some((_, known)) = entry.publisher.as_mut().filter(|(id, _)| *id == source) {
                peer.clone_into(known);
            }
        });
    }

    /// The worker that would serve the stream's next receiver.
    pub(crate) fn place(&self, stream: &str, placing: Placing) -> Result<usize, ControlError> {
        let book = self.book();
        let entry = book.streams.get(stream).ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))?;
        Ok(entry.place(&book.load, placing))
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
        let Book { streams, names, receivers, load, .. } = &mut *book;
        let entry = streams.get_mut(stream).ok_or_else(unknown)?;
        if entry.receivers >= entry.receivers_max {
            let (what, key) = ("the receivers of this stream", "max_receivers");
            return Err(ControlError::Limit { what, limit: entry.receivers_max, key });
        }
        if receivers.len() >= terms.relay_max {
            let (what, key) = ("the receivers of this relay", "limits.receivers");
            return Err(ControlError::Limit { what, limit: terms.relay_max, key });
        }
        let worker = terms.worker.unwrap_or_else(|| entry.place(load, terms.placing));
        *load.entry(worker).or_default() += 1;
        let admitted = entry.take_in(worker, number, replicate);
        let stream = stream.to_owned();
        names.entry(admitted.owner.stream).or_insert_with(|| stream.clone());
        receivers.insert(receiver, Receiver { stream, owner: admitted.owner, session: None });
        Ok(admitted)
    }

    pub(crate) fn receiver(&self, receiver: ReceiverId) -> Option<Owner> {
        self.book().receivers.get(&receiver).map(|admission| admission.owner)
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
        if let Some(entry) = book.streams.get_mut(&stream) {
            entry.let_go(owner);
        }
    }

    /// Lets replicas rest that have not had a receiver for a while at `now`; each of them is told to
    /// before another receiver can be admitted to it again.
    pub(crate) fn rest_idle(&self, now: Instant, mut rest: impl FnMut(Owner)) {
        for replica in self.book().streams.values_mut().flat_map(|entry| &mut entry.replicas) {
            if replica.is_idle(now) {
                replica.ready = None;
                rest(replica.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REPLICA_LINGER;

    const ALONE: Terms = terms(1, 1);

    const fn terms(workers: usize, split: usize) -> Terms {
        Terms { relay_max: 10, placing: Placing { workers, split }, worker: None }
    }

    fn entry(receivers_max: usize) -> StreamEntry {
        StreamEntry {
            renditions: Vec::new(),
            owner: Owner { worker: 0, stream: 1 },
            options: StreamOptions::default(),
            bounds: LevelBounds::default(),
            source: None,
            receivers_max,
            receivers: 0,
            publisher: None,
            replicas: Vec::new(),
        }
    }

    fn admit(registry: &Registry, stream: &str, receiver: ReceiverId, terms: Terms) -> Admission {
        let mut replicated = false;
        let replicate = |_| {
            replicated = true;
            vec![tokio::sync::watch::channel(true).1]
        };
        let admitted = registry.admit(stream, receiver, terms, || 100 + receiver, replicate);
        admitted.map(|admitted| (admitted.owner.worker, admitted.owner.stream, replicated))
    }

    /// The worker, the stream's number there, and whether it has been told of the stream.
    type Admission = Result<(usize, StreamId, bool), ControlError>;

    #[test]
    fn one_publisher_at_a_time() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(1));
        registry.claim("a", 1, "first").expect("free");
        assert!(
            matches!(registry.claim("a", 2, "second"), Err(ControlError::Busy(_, first)) if first == "first")
        );
        registry.release("a", 2);
        assert!(registry.claim("a", 2, "second").is_err(), "only its holder gives the place back");
        registry.release("a", 1);
        registry.claim("a", 2, "second").expect("free again");
    }

    #[test]
    fn receivers_are_counted_and_limited() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(2));
        admit(&registry, "a", 1, ALONE).expect("room");
        admit(&registry, "a", 2, ALONE).expect("room");
        let limited = admit(&registry, "a", 3, ALONE);
        assert!(matches!(limited, Err(ControlError::Limit { limit: 2, .. })));
        registry.discharge(1);
        registry.discharge(1);
        admit(&registry, "a", 3, ALONE).expect("room again");
        assert!(registry.receiver(1).is_none() && registry.receiver(3).is_some());
        let full = admit(&registry, "a", 4, Terms { relay_max: 2, ..ALONE });
        assert!(matches!(full, Err(ControlError::Limit { .. })));
    }

    #[test]
    fn beyond_the_split_others_help_and_those_that_do_so_are_filled_first() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(20));
        let terms = terms(3, 2);
        let mut places = Vec::new();
        for receiver in 1..=8 {
            places.push(admit(&registry, "a", receiver, terms).expect("room"));
        }
        let (owner, first, second) = ((0, 1, false), (1, 103, true), (2, 105, true));
        let again = |(worker, stream, _)| (worker, stream, false);
        // Two with its owner, two each at the others; then everywhere in turn.
        assert_eq!(places[..6], [owner, owner, first, again(first), second, again(second)]);
        assert_eq!(places[6..], [owner, again(first)]);
        assert_eq!(registry.receiver(3), Some(Owner { worker: 1, stream: 103 }));
        registry.discharge(1);
        registry.discharge(2);
        assert_eq!(admit(&registry, "a", 9, terms), Ok(owner), "there is room at owner again");
    }

    #[test]
    fn a_worker_that_has_much_to_do_does_not_help() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(20));
        let busy = StreamEntry { owner: Owner { worker: 1, stream: 2 }, ..entry(20) };
        registry.insert("busy".into(), busy);
        let (alone, two) = (terms(1, 9), terms(2, 1));
        for receiver in 1..=2 {
            admit(&registry, "busy", receiver, alone).expect("room");
        }
        let mut workers = Vec::new();
        for receiver in 3..=6 {
            workers.push(admit(&registry, "a", receiver, two).expect("room").0);
        }
        assert_eq!(workers, [0, 0, 0, 1]);
        registry.remove("busy");
        assert_eq!(registry.place("a", two.placing), Ok(1), "its receivers are gone");
    }

    #[test]
    fn a_session_goes_with_its_receiver() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(20));
        let token = |digit: char| digit.to_string().repeat(32).parse().expect("a token");
        registry.open_session(1, token('1'));
        assert_eq!(registry.session(token('1')), None, "none is there");
        for receiver in 1..=3 {
            admit(&registry, "a", receiver, ALONE).expect("room");
        }
        registry.open_session(1, token('0'));
        registry.open_session(1, token('1'));
        registry.open_session(2, token('2'));
        assert_eq!(['0', '1', '2'].map(|digit| registry.session(token(digit))), [None, Some(1), Some(2)]);
        registry.discharge(1);
        assert_eq!(['1', '2'].map(|digit| registry.session(token(digit))), [None, Some(2)]);
        registry.remove("a");
        assert_eq!(registry.session(token('2')), None);
    }

    #[test]
    fn a_stream_is_known_by_its_number_with_any_worker() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(20));
        registry.insert("b".into(), StreamEntry { owner: Owner { worker: 0, stream: 2 }, ..entry(20) });
        let name = |number| registry.of_number(number).map(|(name, _)| name);
        let chosen = Terms { worker: Some(1), ..terms(2, 1) };
        admit(&registry, "a", 1, chosen).expect("room");
        assert_eq!([1, 101, 2, 3].map(name), [Some("a".into()), Some("a".into()), Some("b".into()), None]);
        registry.insert("a".into(), StreamEntry { owner: Owner { worker: 0, stream: 3 }, ..entry(20) });
        assert_eq!([1, 101, 3].map(name), [None, None, Some("a".into())], "another stream of this name");
        registry.remove("a");
        assert_eq!([2, 3].map(name), [Some("b".into()), None]);
    }

    #[test]
    fn a_worker_that_was_chosen_before_serves() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(20));
        let chosen = Terms { worker: Some(1), ..terms(2, 1) };
        assert_eq!(registry.place("a", chosen.placing), Ok(0));
        assert_eq!(admit(&registry, "a", 1, chosen), Ok((1, 101, true)));
    }

    #[test]
    fn a_replica_without_receivers_rests_after_a_while_and_serves_again_when_needed() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(20));
        let terms = terms(2, 1);
        let resting = |wait| {
            let mut resting = Vec::new();
            registry.rest_idle(Instant::now() + wait, |owner| resting.push(owner.stream));
            resting
        };
        admit(&registry, "a", 1, terms).expect("room");
        assert_eq!(admit(&registry, "a", 2, terms), Ok((1, 102, true)));
        assert!(resting(2 * REPLICA_LINGER).is_empty(), "it has a receiver");
        registry.discharge(2);
        assert!(resting(REPLICA_LINGER / 2).is_empty(), "somebody may come");
        assert_eq!(resting(2 * REPLICA_LINGER), [102]);
        assert!(resting(2 * REPLICA_LINGER).is_empty(), "told once");
        assert_eq!(admit(&registry, "a", 3, terms), Ok((1, 102, true)), "under the same number");
    }
}
