//! Which receivers are sent to without their asking: their names and places, which no two share.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_config::SinkUrl;
use outflow_engine::message::{ControlError, Receiver};
use outflow_packet::Level;
use outflow_relay::Selection;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A receiver to send to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushOptions {
    /// The stream that it gets.
    pub stream: String,
    /// Where it is, and what goes there.
    pub to: SinkUrl,
    /// The address of this machine that a group is sent from; that of the interface, if none is given.
    pub from: Option<Ipv4Addr>,
    /// What it wants.
    pub receiver: Receiver,
}

impl PushOptions {
    /// A receiver of this name, unique among those of the relay, that wants everything else as the stream says.
    pub fn new(stream: &str, to: SinkUrl, name: String, selection: Selection) -> Self {
        let address = to.datagrams().map_or_else(|| to.to_string(), |sink| sink.to.to_string());
        let receiver = Receiver { name: Some(name), ..Receiver::new(to.scheme(), address, selection) };
        PushOptions { stream: stream.to_owned(), to, from: None, receiver }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.receiver.name.as_deref().unwrap_or(&self.receiver.address)
    }
}

/// Such receivers.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    by_name: BTreeMap<String, Push>,
    /// Which stream goes where.
    by_place: BTreeMap<Place, String>,
    /// Receivers that there ever were.
    claims: u64,
}

/// An address; by another interface, the same group is another place.
type Place = (String, Option<String>);

#[derive(Debug)]
struct Push {
    stream: String,
    place: Place,
    /// Its number, which no other has.
    claim: u64,
    /// The quality that it is to get.
    level: watch::Sender<Level>,
    /// What keeps it, once it is open.
    task: Option<AbortHandle>,
}

impl Pushes {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the receiver of this name, if it is one of `stream`.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn remove(&self, stream: &str, name: &str) -> Result<(), ControlError> {
        let mut book = self.book();
        let removed = if book.has(stream, name) { book.remove(name) } else { None };
        let push = removed.ok_or_else(|| ControlError::UnknownSink(name.to_owned(), stream.to_owned()))?;
        push.task.inspect(AbortHandle::abort);
        Ok(())
    }

    /// The receiver of this name is no more: it has ended by itself.
    pub(crate) fn ended(&self, name: &str) {
        self.book().remove(name);
    }

    /// Says which quality the receiver of this name is to have.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn set_level(&self, stream: &str, name: &str, level: Level) -> Result<(), ControlError> {
        let book = self.book();
        let push = book.by_name.get(name).filter(|push| push.stream == stream);
        let push = push.ok_or_else(|| ControlError::UnknownSink(name.to_owned(), stream.to_owned()))?;
        push.level.send_if_modified(|before| std::mem::replace(before, level) != level);
        Ok(())
    }

    /// Whether there is one of that name.
    pub(crate) fn has(&self, stream: &str, name: &str) -> bool {
        self.book().has(stream, name)
    }
}

impl Book {
    fn has(&self, stream: &str, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|push| push.stream == stream)
    }

    fn remove(&mut self, name: &str) -> Option<Push> {
        let push = self.by_name.remove(name)?;
        self.by_place.remove(&push.place);
        Some(push)
    }
}

/// A receiver's name and place while it is being opened; free again if that comes to nothing.
pub(crate) struct Claim<'a> {
    pushes: &'a Pushes,
    name: &'a str,
    number: u64,
}

impl<'a> Claim<'a> {
    pub(crate) fn new(pushes: &'a Pushes, options: &'a PushOptions) -> Result<Self, ControlError> {
        let (stream, to, name) = (&options.stream, &options.to, options.name());
        let mut book = pushes.book();
        if book.by_name.contains_key(name) {
            return Err(ControlError::NameTaken(name.to_owned()));
        }
        let interface = to.datagrams().and_then(|sink| sink.interface.clone());
        let place = (to.place(), interface);
        if let Some(other) = book.by_place.get(&place) {
            return Err(ControlError::AddressTaken(other.clone(), to.place()));
        }
        book.claims += 1;
        let number = book.claims;
        book.by_place.insert(place.clone(), stream.clone());
        let level = watch::Sender::new(options.receiver.selection.level);
        let push = Push { stream: stream.clone(), place, claim: number, level, task: None };
        book.by_name.insert(name.to_owned(), push);
        Ok(Claim { pushes, name, number })
    }

    /// The quality that it is to get, as it is changed.
    pub(crate) fn levels(&self) -> Option<watch::Receiver<Level>> {
        let book = self.pushes.book();
        let push = book.by_name.get(self.name).filter(|push| push.claim == self.number);
        push.map(|push| push.level.subscribe())
    }

    /// It is open, and `task` keeps it, unless it was removed meanwhile.
    pub(crate) fn keep(self, task: AbortHandle) {
        match self.pushes.book().by_name.get_mut(self.name) {
            Some(push) if push.claim == self.number => push.task = Some(task),
            _ => task.abort(),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut book = self.pushes.book();
        let ours = |push: &Push| push.claim == self.number && push.task.is_none();
        if book.by_name.get(self.name).is_some_and(ours) {
            book.remove(self.name);
        }
    }
}
