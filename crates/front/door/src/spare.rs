//! What is kept for when descriptors run out: some of them, and a few connections that are served in a hurry, so that
//! the relay can still be asked how it is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, getrlimit};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::limits::{HURRIED_MAX, HURRY, SCARCE_PERCENT, SPARE_DESCRIPTORS};

/// Descriptors to give up, and connections that are served in a hurry.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    files: Vec<File>,
    next: u64,
    /// The oldest first. One ends when its sender is dropped.
    hurried: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The place of a connection that is served in a hurry; given back when dropped.
#[derive(Debug)]
pub(crate) struct Hurried {
    spare: Arc<Spare>,
    number: u64,
    ended: Option<oneshot::Receiver<()>>,
}

impl Spare {
    /// Whether descriptors are scarce, now that a connection has got this one. What was given up is taken back first,
    /// if it can be had.
    pub(crate) fn are_scarce(&self, got: RawFd) -> bool {
        let is_whole = self.kept().fill(|| File::open("/dev/null"));
        !is_whole || is_near_the_limit(got, getrlimit(Resource::Nofile).current)
    }

    /// Gives up a descriptor for a connection that waits, or else the oldest of those that are served in a hurry, whose
    /// task has to have its turn first. `None`: there is nothing to give up.
    pub(crate) fn give_up(&self) -> Option<Given> {
        self.kept().give_up()
    }

    /// A place for a connection that is served in a hurry, be it that of an older one.
    pub(crate) fn hurry(self: &Arc<Self>) -> Hurried {
        let (goes_on, ended) = oneshot::channel();
        let number = self.kept().enter(goes_on);
        Hurried { spare: self.clone(), number, ended: Some(ended) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing here can be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Descriptor,
    Connection,
}

impl Kept {
    /// Takes descriptors until all are there. Answers whether they are.
    fn fill(&mut self, mut open: impl FnMut() -> io::Result<File>) -> bool {
        while self.files.len() < SPARE_DESCRIPTORS {
            match open() {
                Ok(file) => self.files.push(file),
                Err(_) => return false,
            }
        }
        true
    }

    fn give_up(&mut self) -> Option<Given> {
        if self.files.pop().is_some() {
            return Some(Given::Descriptor);
        }
        self.hurried.pop_first().map(|_| Given::Connection)
    }

    fn enter(&mut self, goes_on: oneshot::Sender<()>) -> u64 {
        if self.hurried.len() >= HURRIED_MAX {
            self.hurried.pop_first();
        }
        self.next += 1;
        self.hurried.insert(self.next, goes_on);
        self.next
    }
}

impl Hurried {
    /// Waits until its time is over, or its place is another's. To be asked for once.
    pub(crate) fn over(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let ended = self.ended.take();
        async move {
            tokio::select! {
                () = sleep(HURRY) => {}
                _ = async { ended?.await.ok() } => {}
            }
        }
    }
}

impl Drop for Hurried {
    fn drop(&mut self) {
        self.spare.kept().hurried.remove(&self.number);
    }
}

/// The system gives the lowest number that is free: of those below it, none is.
fn is_near_the_limit(got: RawFd, limit: Option<u64>) -> bool {
    let got = u64::try_from(got).unwrap_or(0);
    limit.is_some_and(|limit| got.saturating_mul(100) >= limit.saturating_mul(SCARCE_PERCENT))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const AT_ONCE: Duration = Duration::from_secs(5);

    #[test]
    fn descriptors_are_scarce_when_most_are_taken_or_some_were_given_up() {
        assert!(!is_near_the_limit(900, Some(1000)) && is_near_the_limit(950, Some(1000)));
        assert!(!is_near_the_limit(70, Some(74)) && !is_near_the_limit(900, None));
        let spare = Spare::default();
        assert!(!spare.are_scarce(3), "they are taken when the first connection comes");
        let mut kept = spare.kept();
        let none = || Err(io::ErrorKind::Other.into());
        assert!(kept.fill(none));
        assert_eq!(kept.give_up(), Some(Given::Descriptor));
        assert!(!kept.fill(none), "it cannot be had back");
        assert!(kept.fill(|| File::open("/dev/null")));
    }

    #[tokio::test]
    async fn the_oldest_of_those_in_a_hurry_give_their_places_up() {
        let spare = Arc::new(Spare::default());
        let mut all: Vec<_> = (0..HURRIED_MAX + 2).map(|_| spare.hurry()).collect();
        assert_eq!(spare.give_up(), Some(Given::Connection), "there is no descriptor to give up");
        let is_over = |hurried: &mut Hurried| {
            let mut ended = hurried.ended.take().expect("once");
            ended.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        };
        assert_eq!(all.iter_mut().map(is_over).filter(|is_over| *is_over).count(), 3);
        assert!(all[..3].iter().all(|hurried| !spare.kept().hurried.contains_key(&hurried.number)));
        drop(all);
        assert_eq!(spare.give_up(), None, "places are given back");
    }

    #[tokio::test]
    async fn one_in_a_hurry_has_a_moment() {
        let spare = Arc::new(Spare::default());
        let mut hurried = spare.hurry();
        tokio::time::timeout(AT_ONCE, hurried.over()).await.expect("its time is over");
        let mut next = spare.hurry();
        let over = next.over();
        spare.give_up();
        tokio::time::timeout(AT_ONCE, over).await.expect("its place is another's");
    }
}
