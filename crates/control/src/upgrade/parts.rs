//! Parts of connections, as their tasks hand them in: those that bring no media while the relay still serves.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Part;

/// How long tasks have to hand in their parts. Those that are later end with this process.
const WITHIN: Duration = Duration::from_millis(50);

/// How often it is looked whether all have.
const LOOK: Duration = Duration::from_millis(1);

/// Where an upgrade stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// There is none: the relay runs.
    #[default]
    Runs,
    /// Connections are handed over; media goes on.
    Connections,
    /// The relay stands still.
    Stands,
    /// It is another process's.
    Gone,
}

impl Phase {
    /// Whether a member is asked then that brings media, or does not.
    pub(super) fn asks(self, brings_media: bool) -> bool {
        match self {
            Phase::Runs => false,
            Phase::Connections => !brings_media,
            Phase::Stands | Phase::Gone => true,
        }
    }
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
    /// Those of them that are asked last.
    bring_media: usize,
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

    /// A member brings media from now on.
    pub(super) fn bring_media(&self) {
        self.book().bring_media += 1;
    }

    /// A member less.
    pub(super) fn leave(&self, brings_media: bool) {
        let mut book = self.book();
        book.members -= 1;
        book.bring_media -= usize::from(brings_media);
    }

    /// A member hands in its part, or says that it has none.
    pub(super) fn put(&self, front: &'static str, part: Option<Part>) {
        let mut book = self.book();
        if book.is_open {
            book.answered += 1;
            book.parts.extend(part.map(|part| (front, part)));
        }
    }

    /// Asks all members for their parts that are asked in this phase, and waits for them a while. Answers the parts
    /// that have not been answered before, and how many members have not answered.
    pub(super) async fn collect(&self, phase: Phase) -> (Vec<(&'static str, Part)>, usize) {
        self.book().is_open = true;
        self.phase.send_replace(phase);
        let until = Instant::now() + WITHIN;
        loop {
            let is_late = Instant::now() >= until;
            {
                let mut book = self.book();
                let later = if phase.asks(true) { 0 } else { book.bring_media };
                let missing = (book.members - later).saturating_sub(book.answered);
                if missing == 0 || is_late {
                    return (std::mem::take(&mut book.parts), missing);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The relay goes on, or is another process's: no more parts are taken.
    pub(super) fn set(&self, phase: Phase) {
        let mut book = self.book();
        let Book { members, bring_media, .. } = *book;
        *book = Book { members, bring_media, ..Book::default() };
        drop(book);
        self.phase.send_replace(phase);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use tokio::task::JoinHandle;

    use super::*;
    use crate::upgrade::Member;

    fn part(value: &[u8]) -> Option<Part> {
        Some(Part { value: value.to_vec(), ..Part::default() })
    }

    /// A task that gives this when it is asked. It ends with what it is told then.
    fn task(parts: &Arc<Parts>, brings_media: bool, value: Option<&'static [u8]>) -> JoinHandle<bool> {
        let mut member = Member::new("front", parts);
        if brings_media {
            member.brings_media();
        }
        tokio::spawn(async move {
            member.asked().await;
            member.give(value.and_then(part)).await
        })
    }

    #[tokio::test(start_paused = true)]
    async fn all_members_are_asked_and_go_on_or_end_as_it_comes() {
        let parts = Arc::<Parts>::default();
        let (first, second) = (task(&parts, false, Some(b"a")), task(&parts, false, None));
        tokio::task::yield_now().await;
        let (given, missing) = parts.collect(Phase::Connections).await;
        let given: Vec<_> = given.iter().map(|(front, part)| (*front, &part.value[..])).collect();
        assert_eq!((given, missing), (vec![("front", &b"a"[..])], 0));
        parts.set(Phase::Runs);
        assert_eq!((first.await.ok(), second.await.ok()), (Some(false), Some(false)));

        let (third, idle) = (task(&parts, false, Some(b"b")), Member::new("front", &parts));
        let (given, missing) = parts.collect(Phase::Stands).await;
        assert_eq!((given.len(), missing), (1, 1), "one is late");
        parts.set(Phase::Gone);
        assert_eq!(third.await.ok(), Some(true));
        drop(idle);
        assert_eq!(parts.book().members, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_bring_media_are_asked_last_and_what_came_late_is_taken_then() {
        let parts = Arc::<Parts>::default();
        let (plays, brings) = (task(&parts, false, Some(b"a")), task(&parts, true, Some(b"b")));
        let mut late = Member::new("front", &parts);
        let (given, missing) = parts.collect(Phase::Connections).await;
        assert_eq!((given.len(), &given[0].1.value[..], missing), (1, &b"a"[..], 1));
        late.asked().await;
        let late = tokio::spawn(async move { late.give(part(b"c")).await });
        tokio::task::yield_now().await;
        let (given, missing) = parts.collect(Phase::Stands).await;
        let given: BTreeSet<_> = given.iter().map(|(_, part)| part.value[0]).collect();
        assert_eq!((given, missing), (BTreeSet::from([b'b', b'c']), 0));
        parts.set(Phase::Gone);
        for task in [plays, brings, late] {
            assert_eq!(task.await.ok(), Some(true));
        }
        let book = parts.book();
        assert_eq!((book.members, book.bring_media), (0, 0));
    }
}
