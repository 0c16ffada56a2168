//! Links: which worker has which.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_config::LinkConfig;
use outflow_engine::message::{Command, ControlError};
use outflow_relay::LinkId;

use crate::workers::{Owner, Workers};

/// Where a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkPlace {
    pub(crate) id: LinkId,
    pub(crate) worker: usize,
}

/// The links that there are, by name.
#[derive(Debug, Default)]
pub(crate) struct LinkBook(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    places: BTreeMap<String, LinkPlace>,
    /// The number of the next.
    next: u32,
}

impl LinkBook {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a link; with the worker that has fewest of them if there is none yet.
    fn place(&self, name: &str, workers: usize) -> LinkPlace {
        let mut book = self.book();
        let Book { places, next } = &mut *book;
        if let Some(place) = places.get(name) {
            return *place;
        }
        let load = |worker: &usize| places.values().filter(|place| place.worker == *worker).count();
        let worker = (0..workers).min_by_key(load).unwrap_or(0);
        let place = LinkPlace { id: LinkId(*next), worker };
        *next += 1;
        places.insert(name.to_owned(), place);
        place
    }

    /// There is such a link from now on, or it is another one.
    pub(crate) fn put(&self, workers: &Workers, name: &str, config: &LinkConfig) {
        let LinkPlace { id, worker } = self.place(name, workers.count());
        let (name, config) = (name.to_owned(), Box::new(config.clone()));
        workers.tell(&Owner { worker, stream: 0 }, Command::PutLink { link: id, name, config });
    }

    /// A link is no more: receivers behind it are served directly.
    pub(crate) fn remove(&self, workers: &Workers, name: &str) {
        let removed = self.book().places.remove(name);
        if let Some(LinkPlace { id, worker }) = removed {
            workers.tell(&Owner { worker, stream: 0 }, Command::RemoveLink { link: id });
        }
    }

    /// Where a link is.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn get(&self, name: &str) -> Result<LinkPlace, ControlError> {
        let place = self.book().places.get(name).copied();
        place.ok_or_else(|| ControlError::UnknownLink(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_spread_over_workers_and_stay_where_they_are() {
        let book = LinkBook::default();
        let places = ["a", "b", "c", "a"].map(|name| book.place(name, 2));
        assert_eq!(places.map(|place| place.worker), [0, 1, 0, 0]);
        assert_eq!(places.map(|place| place.id.0), [0, 1, 2, 0]);
        book.book().places.remove("a");
        let again = book.place("a", 2);
        assert_eq!((again.id, again.worker), (LinkId(3), 0), "another one: numbers are never given twice");
    }
}
