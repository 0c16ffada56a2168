//! Parts of connections, as their tasks hand them in when the relay stands still.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Part;

/// How long tasks have to hand in their parts. Those that are later end with this process.
const WITHIN: Duration = Duration::from_millis(50);

/// How often it is looked whether all have.
const LOOK: Duration = Duration::from_millis(1);

/// Where the relay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// It runs.
    #[default]
    Runs,
    /// It stands still.
    Stands,
    /// It is another process's.
    Gone,
}

/// What tasks hand in.
#[derive(Debug)]
pub(super) struct Parts {
    phase: watch::Sender<Phase>,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    members: usize,
    /// Whether parts are taken.
    is_open: bool,
    /// How many members have answered.
    answered: usize,
    parts: Vec<(&'static str, Part)>,
}

impl Default for Parts {
    fn default() -> Self {
        Parts { phase: watch::Sender::new(Phase::Runs), book: Mutex::default() }
    }
}

impl Parts {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member more, and what tells it where the relay stands.
    pub(super) fn join(&self) -> watch::Receiver<Phase> {
        self.book().members += 1;
        self.phase.subscribe()
    }

    /// A member less.
    pub(super) fn leave(&self) {
        self.book().members -= 1;
    }

    /// A member hands in its part, or says that it has none.
    pub(super) fn put(&self, front: &'static str, part: Option<Part>) {
        let mut book = self.book();
        if book.is_open {
            book.answered += 1;
            book.parts.extend(part.map(|part| (front, part)));
        }
    }

    /// Asks all members for their parts, and waits for them a while. Answers the parts, and how many members have not
    /// answered.
    pub(super) async fn collect(&self) -> (Vec<(&'static str, Part)>, usize) {
        self.book().is_open = true;
        self.phase.send_replace(Phase::Stands);
        let until = Instant::now() + WITHIN;
        loop {
            let is_late = Instant::now() >= until;
            {
                let mut book = self.book();
                let missing = book.members.saturating_sub(book.answered);
                if missing == 0 || is_late {
                    let Book { members, parts, .. } = std::mem::take(&mut *book);
                    book.members = members;
                    return (parts, missing);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The relay goes on, or is another process's.
    pub(super) fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::upgrade::Member;

    fn part(value: &[u8]) -> Option<Part> {
        Some(Part { value: value.to_vec(), ..Part::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn all_members_are_asked_and_go_on_or_end_as_it_comes() {
        let parts = Arc::<Parts>::default();
        let task = |value: Option<&'static [u8]>| {
            let mut member = Member::new("front", &parts);
            tokio::spawn(async move {
                member.asked().await;
                member.give(value.and_then(part)).await
            })
        };
        let (first, second) = (task(Some(b"a")), task(None));
        tokio::task::yield_now().await;
        let (given, missing) = parts.collect().await;
        let given: Vec<_> = given.iter().map(|(front, part)| (*front, &part.value[..])).collect();
        assert_eq!((given, missing), (vec![("front", &b"a"[..])], 0));
        parts.set(Phase::Runs);
        assert_eq!((first.await.ok(), second.await.ok()), (Some(false), Some(false)));

        let (third, idle) = (task(Some(b"b")), Member::new("front", &parts));
        let (given, missing) = parts.collect().await;
        assert_eq!((given.len(), missing), (1, 1), "one is late");
        parts.set(Phase::Gone);
        assert_eq!(third.await.ok(), Some(true));
        drop(idle);
        assert_eq!(parts.book().members, 0);
    }
}
