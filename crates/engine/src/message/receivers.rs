//! The receivers of a stream in a snapshot.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{ReceiverId, ReceiverState};

/// Receivers by id: what each worker that serves the stream has noted, put together without
/// copying it. Clones are the same receivers.
#[derive(Debug, Clone, Default)]
pub struct Receivers {
    parts: Vec<Arc<Vec<ReceiverState>>>,
}

impl Receivers {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.is_empty())
    }

    /// All of them, by id.
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: self.parts.iter().map(|part| &part[..]).collect() }
    }

    /// The one with this number.
    pub fn get(&self, id: ReceiverId) -> Option<&ReceiverState> {
        self.parts.iter().find_map(|part| {
            let at = part.binary_search_by_key(&id, |receiver| receiver.id).ok()?;
            part.get(at)
        })
    }

    /// Adds those of another part of the same stream.
    pub(super) fn add(&mut self, others: &Receivers) {
        self.parts.extend(others.parts.iter().filter(|part| !part.is_empty()).cloned());
    }
}

/// Of one worker; by id.
impl From<Vec<ReceiverState>> for Receivers {
    fn from(receivers: Vec<ReceiverState>) -> Self {
        Receivers { parts: vec![Arc::new(receivers)] }
    }
}

impl<'a> IntoIterator for &'a Receivers {
    type Item = &'a ReceiverState;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Serialize for Receivers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

/// Goes through [`Receivers`] by id.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    /// What is left of each part: there are few of them.
    rest: Vec<&'a [ReceiverState]>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a ReceiverState;

    fn next(&mut self) -> Option<&'a ReceiverState> {
        let parts = self.rest.iter_mut().filter(|part| !part.is_empty());
        let part = parts.min_by_key(|part| part.first().map(|receiver| receiver.id))?;
        let (first, rest) = part.split_first()?;
        *part = rest;
        Some(first)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rest.iter().map(|part| part.len()).sum();
        (left, Some(left))
    }
}
