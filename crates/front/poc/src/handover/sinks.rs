//! Receivers that are connected to: their connections go on, from the same sockets.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outflow_control::{Control, Part, Playing, PushOptions, Upgrade};
use outflow_engine::message::ControlError;
use outflow_poc_socket::Security;
use outflow_poc_socket::save::Returning;

use super::start;
use crate::options::options_with;
use crate::saved::{SavedPeer, SavedSink};
use crate::send::Sink;
use crate::settings::Poc;

/// What their parts are called.
pub(crate) const PARTS: &str = "poc-sinks";

/// Those of the process before, by name, until they are asked for. They are sent to meanwhile.
#[derive(Default)]
pub(crate) struct Taken(Mutex<BTreeMap<String, TakenSink>>);

struct TakenSink {
    stream: String,
    to: String,
    sink: Sink,
}

impl Taken {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, TakenSink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The receiver of this name, if it gets the same stream at the same address. If not, it ends.
    pub(crate) fn of(&self, push: &PushOptions) -> Option<Sink> {
        let TakenSink { stream, to, sink } = self.all().remove(push.name())?;
        (stream == push.stream && to == push.receiver.address).then_some(sink)
    }

    /// Those that nothing has asked for end, and their peers are told.
    pub(crate) fn end(&self) {
        let rest = std::mem::take(&mut *self.all());
        for name in rest.into_keys() {
            tracing::info!(name, "a receiver does not go on: it is not configured any more");
        }
    }
}

/// Goes on with them.
pub(crate) fn take(control: &Control, parts: Vec<Part>) {
    let taken = control.shared::<Taken>();
    for part in parts {
        match go_on(control, part) {
            Ok((name, sink)) => drop(taken.all().insert(name, sink)),
            Err(error) => tracing::warn!(%error, "a receiver has to be connected to again"),
        }
    }
}

fn go_on(control: &Control, part: Part) -> Result<(String, TakenSink), ControlError> {
    let wrong = |error| ControlError::system("going on with a connection of another process", &error);
    let missing = |what: &str| wrong(io::Error::other(format!("{what} is missing")));
    let unread = |error: minicbor::decode::Error| wrong(io::Error::other(error));
    let SavedSink { name, stream, to, end } = minicbor::decode(&part.value).map_err(unread)?;
    let driven = end.driven.first().ok_or_else(|| missing("its connection"))?;
    let upgrade = control.shared::<Upgrade>();
    let playing: Playing = upgrade.playing(driven.number).ok_or_else(|| missing("its place"))?;
    let peer = upgrade.peer(driven.number).ok_or_else(|| missing("its state"))?;
    let saved: SavedPeer = minicbor::decode(&peer).map_err(unread)?;
    let socket = part.descriptors.into_iter().next().ok_or_else(|| missing("its socket"))?;
    // The connection has its own keys.
    let options = options_with(&control.config().section::<Poc>(), Security::Plain);
    let connection = (&saved.connection, playing.inbox());
    let returned = Returning::detached_client(options, (&end, socket), control.epoch(), connection);
    let (detached, way) = returned.map_err(|error| wrong(io::Error::other(error)))?;
    let end = detached.end();
    start(&playing, (detached, way), &saved);
    Ok((name, TakenSink { stream, to, sink: Sink { playing, end } }))
}

#[cfg(test)]
mod tests;
