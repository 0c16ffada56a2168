//! Links: which worker has which.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_config::LinkConfig;
use outflow_engine::message::{Command, ControlError};
use outflow_relay::LinkId;

use crate::control::Control;
use crate::registry::Owner;

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
}

impl Control {
    /// There is such a link from now on, or it is another one.
    pub(crate) fn put_link(&self, name: &str, config: &LinkConfig) {
        let LinkPlace { id, worker } = self.links().place(name, self.workers().len());
        let (name, config) = (name.to_owned(), Box::new(config.clone()));
        self.tell(&Owner { worker, stream: 0 }, Command::PutLink { link: id, name, config });
    }

    /// A link is no more: receivers behind it are served directly.
    pub(crate) fn remove_link(&self, name: &str) {
        let removed = self.links().book().places.remove(name);
        if let Some(LinkPlace { id, worker }) = removed {
            self.tell(&Owner { worker, stream: 0 }, Command::RemoveLink { link: id });
        }
    }

    /// Where a link is.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn link(&self, name: &str) -> Result<LinkPlace, ControlError> {
        let place = self.links().book().places.get(name).copied();
        place.ok_or_else(|| ControlError::UnknownLink(name.to_owned()))
    }

    /// Whether there is a link of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn knows_link(&self, name: &str) -> Result<(), ControlError> {
        self.link(name).map(drop)
    }

    /// The link that receivers of a stream are behind, if they do not say otherwise.
    pub fn stream_link(&self, stream: &str) -> Option<String> {
        let config = self.config();
        config.streams.get(stream)?.link.as_ref().map(|link| link.0.clone())
    }

    /// Where that is.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn stream_link_place(&self, stream: &str) -> Result<Option<LinkPlace>, ControlError> {
        self.stream_link(stream).map(|link| self.link(&link)).transpose()
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
