//! The relay's state as it changes, and what happens, by server-sent events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _, stream};
use outflow_control::Control;
use outflow_door::{Pass, query_value};
use outflow_engine::message::RelayState;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot, watch};

use crate::limits::{EVENT_STREAMS_MAX, EVENTS_EVERY};
use crate::view::Overview;
use crate::{ErrorBody, HttpError, Peer};

/// An event as a page gets it.
type Sent = Result<Event, Infallible>;

/// What all pages that are kept up to date have in common.
#[derive(Debug)]
pub(crate) struct Events {
    open: Arc<Mutex<Open>>,
    /// The newest overview as JSON, made once for all, with the moment it shows.
    newest: Mutex<(u64, Arc<str>)>,
}

/// The pages that are open, the oldest first.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    pages: BTreeMap<u64, Entry>,
}

/// A page, by its address. It ends when this is dropped.
#[derive(Debug)]
struct Entry {
    address: IpAddr,
    _goes_on: oneshot::Sender<()>,
}

/// A page's place; given back when dropped.
#[derive(Debug)]
struct Place {
    open: Arc<Mutex<Open>>,
    number: u64,
    /// Resolved when the place is another's.
    ended: oneshot::Receiver<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.open).pages.remove(&self.number);
    }
}

/// Pages cannot be left half changed.
fn locked(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
    /// Takes a place for a page of this address, be it that of an older one. One that is not read looks like one
    /// that is for a long time; so the address that has most gives up its oldest.
    fn enter(&mut self, address: IpAddr) -> Option<(u64, oneshot::Receiver<()>)> {
        if self.pages.len() >= EVENT_STREAMS_MAX {
            let mut counts = BTreeMap::<IpAddr, usize>::new();
            self.pages.values().for_each(|page| *counts.entry(page.address).or_default() += 1);
            let (most, count) = counts.iter().max_by_key(|(_, count)| **count)?;
            if *count <= counts.get(&address).copied().unwrap_or(0) + 1 {
                return None;
            }
            let oldest =
                self.pages.iter().find(|(_, page)| page.address == *most).map(|(number, _)| *number)?;
            self.pages.remove(&oldest);
        }
        let (goes_on, ended) = oneshot::channel();
        self.next += 1;
        self.pages.insert(self.next, Entry { address, _goes_on: goes_on });
        Some((self.next, ended))
    }
}

impl Events {
    pub(super) fn new() -> Self {
        Events { open: Arc::default(), newest: Mutex::new((0, Arc::from("{}"))) }
    }

    fn enter(&self, address: IpAddr) -> Option<Place> {
        let (number, ended) = locked(&self.open).enter(outflow_door::subject(address))?;
        Some(Place { open: Arc::clone(&self.open), number, ended })
    }

    /// The overview as JSON.
    fn overview(&self, control: &Control) -> Arc<str> {
        let moment = control.state().uptime_ms;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.0 != moment {
            // An overview is numbers and texts: it can always be written.
            *newest = (moment, serde_json::to_string(&Overview::of(control)).unwrap_or_default().into());
        }
        newest.1.clone()
    }
}

/// The whole relay, again and again as it changes, or what happens
///
/// Without `of`, each event is an `Overview`. With it, each is an `Event` under its name (`event: joined`) with its
/// number as `id`; a page that does not read misses the oldest, and is told by `event: missed` how many.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "relay",
    params((
        "of" = Option<String>, Query,
        description = "Events by name instead of the state: published,gone,joined,left,refused or all"
    )),
    responses(
        (status = OK, body = String, content_type = "text/event-stream"),
        (
            status = SERVICE_UNAVAILABLE, body = ErrorBody,
            description = "Too many pages are open, or the relay has too much to do"
        )
    )
)]
pub(super) async fn events(
    State(control): State<Control>,
    State(all): State<Arc<Events>>,
    Extension(Peer { address: peer, .. }): Extension<Peer>,
    Extension(pass): Extension<Pass>,
    RawQuery(query): RawQuery,
) -> Result<Response, HttpError> {
    control.health().overload().open_page()?;
    let place = all.enter(peer.ip()).ok_or_else(|| {
        let what = format!("{EVENT_STREAMS_MAX} pages are open already: close one");
        HttpError::new(StatusCode::SERVICE_UNAVAILABLE, what)
    })?;
    Ok(match query_value(&query.unwrap_or_default(), "of") {
        Some(names) => sse(happenings(control.events().follow(), names), place, (control, pass)),
        None => sse(overviews(control.clone(), all), place, (control, pass)),
    })
}

/// An answer that goes on for as long as its place is its own, and what lets its page in holds.
fn sse(
    events: impl Stream<Item = Sent> + Send + 'static,
    mut place: Place,
    (control, pass): (Control, Pass),
) -> Response {
    let over = async move {
        tokio::select! {
            _ = &mut place.ended => {}
            () = control.door().revoked(&pass) => {}
        }
    };
    Sse::new(events.take_until(over)).keep_alive(KeepAlive::default()).into_response()
}

/// The state. A peer that does not read is not written for: nothing piles up.
fn overviews(control: Control, all: Arc<Events>) -> impl Stream<Item = Sent> + Send {
    let mut states = control.watch();
    states.mark_changed();
    stream::unfold((control, all, states, false), |(control, all, mut states, again)| async move {
        changed(&mut states, again).await?;
        let event = Event::default().data(all.overview(&control));
        Some((Ok(event), (control, all, states, true)))
    })
}

/// Whether an event of this name is one of those.
fn takes(names: &str, kind: &str) -> bool {
    names.split(',').any(|name| name == kind || name == "all")
}

/// What happens, if its name is one of these.
fn happenings(
    followed: broadcast::Receiver<Arc<outflow_control::Event>>,
    names: String,
) -> impl Stream<Item = Sent> + Send {
    stream::unfold((followed, names), |(mut followed, names)| async move {
        loop {
            let event = match followed.recv().await {
                Ok(event) if !takes(&names, event.what.kind()) => continue,
                Ok(event) => {
                    // It is numbers and texts: it can always be written.
                    let data = serde_json::to_string(&*event).unwrap_or_default();
                    Event::default().event(event.what.kind()).id(event.number.to_string()).data(data)
                }
                Err(RecvError::Lagged(missed)) => Event::default().event("missed").data(missed.to_string()),
                Err(RecvError::Closed) => return None,
            };
            return Some((Ok(event), (followed, names)));
        }
    })
}

/// Waits until there is something new, and for a while if there was just before; `None` if there never is.
async fn changed(states: &mut watch::Receiver<Arc<RelayState>>, again: bool) -> Option<()> {
    if again {
        tokio::time::sleep(EVENTS_EVERY).await;
    }
    states.changed().await.ok()?;
    states.mark_unchanged();
    Some(())
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    #[test]
    fn the_address_that_has_most_pages_gives_its_oldest_to_others() {
        let [a, b] = [1, 2].map(|host| IpAddr::from([10, 0, 0, host]));
        let mut open = Open::default();
        let first: Vec<_> = (0..EVENT_STREAMS_MAX).filter_map(|_| open.enter(a)).collect();
        assert_eq!(first.len(), EVENT_STREAMS_MAX);
        assert!(open.enter(a).is_none(), "not to itself");
        let others = (0..EVENT_STREAMS_MAX).filter(|_| open.enter(b).is_some()).count();
        assert_eq!(others, EVENT_STREAMS_MAX / 2, "until both have as many");
        let is_ended = |ended: &mut oneshot::Receiver<()>| ended.try_recv() == Err(TryRecvError::Closed);
        let ended: Vec<bool> = first.into_iter().map(|(_, mut ended)| is_ended(&mut ended)).collect();
        let half = EVENT_STREAMS_MAX / 2;
        assert!(ended[..half].iter().all(|ended| *ended) && ended[half..].iter().all(|ended| !ended));
    }
}
