//! Which streams there are, who owns them, and who receives them: control's own book, never
//! touched on a packet's way.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ControlError;
use super::{ReceiverId, SourceId, StreamId};

/// Which worker a stream is with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) worker: usize,
    pub(crate) stream: StreamId,
}

/// What control knows of a stream.
#[derive(Debug, Clone)]
pub(crate) struct StreamEntry {
    pub(crate) owner: Owner,
    /// `None` if it takes publishers, else what its source is, in words.
    pub(crate) source: Option<String>,
    pub(crate) receivers_max: usize,
    pub(crate) receivers: usize,
    pub(crate) publisher: Option<(SourceId, String)>,
}

#[derive(Debug, Default)]
struct Book {
    streams: BTreeMap<String, StreamEntry>,
    receivers: BTreeMap<ReceiverId, (String, Owner)>,
}

/// The book, behind a lock that is held only to look something up or write it down.
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

    pub(crate) fn insert(&self, stream: String, entry: StreamEntry) {
        self.book().streams.insert(stream, entry);
    }

    pub(crate) fn remove(&self, stream: &str) -> Option<StreamEntry> {
        let mut book = self.book();
        book.receivers.retain(|_, (name, _)| name != stream);
        book.streams.remove(stream)
    }

    /// Changes what is known of a stream, if it is known.
    pub(crate) fn update(&self, stream: &str, change: impl FnOnce(&mut StreamEntry)) {
        if let Some(entry) = self.book().streams.get_mut(stream) {
            change(entry);
        }
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

    /// Writes a receiver down, if the stream and the relay still take one.
    pub(crate) fn admit(
        &self,
        stream: &str,
        receiver: ReceiverId,
        relay_max: usize,
    ) -> Result<Owner, ControlError> {
        let mut book = self.book();
        let total = book.receivers.len();
        let entry =
            book.streams.get_mut(stream).ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))?;
        if entry.receivers >= entry.receivers_max {
            let (what, key) = ("the receivers of this stream", "max_receivers");
            return Err(ControlError::Limit { what, limit: entry.receivers_max, key });
        }
        if total >= relay_max {
            let (what, key) = ("the receivers of this relay", "limits.receivers");
            return Err(ControlError::Limit { what, limit: relay_max, key });
        }
        entry.receivers += 1;
        let owner = entry.owner;
        book.receivers.insert(receiver, (stream.to_owned(), owner));
        Ok(owner)
    }

    pub(crate) fn receiver(&self, receiver: ReceiverId) -> Option<Owner> {
        self.book().receivers.get(&receiver).map(|(_, owner)| *owner)
    }

    /// Strikes a receiver out. Harmless if that was done before.
    pub(crate) fn discharge(&self, receiver: ReceiverId) {
        let mut book = self.book();
        if let Some((stream, _)) = book.receivers.remove(&receiver)
            && let Some(entry) = book.streams.get_mut(&stream)
        {
            entry.receivers = entry.receivers.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(receivers_max: usize) -> StreamEntry {
        let owner = Owner { worker: 0, stream: 1 };
        StreamEntry { owner, source: None, receivers_max, receivers: 0, publisher: None }
    }

    #[test]
    fn one_publisher_at_a_time() {
        let registry = Registry::default();
        registry.insert("a".into(), entry(1));
        registry.claim("a", 1, "first").expect("free");
        assert!(
            matches!(registry.claim("a", 2, "second"), Err(ControlError::Busy(_, who)) if who == "first")
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
        registry.admit("a", 1, 10).expect("room");
        registry.admit("a", 2, 10).expect("room");
        assert!(matches!(registry.admit("a", 3, 10), Err(ControlError::Limit { limit: 2, .. })));
        registry.discharge(1);
        registry.discharge(1);
        registry.admit("a", 3, 10).expect("room again");
        assert!(registry.receiver(1).is_none() && registry.receiver(3).is_some());
        assert!(matches!(registry.admit("a", 4, 2), Err(ControlError::Limit { .. })));
    }
}
