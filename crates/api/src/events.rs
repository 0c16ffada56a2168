//! The relay's state as it changes, by server-sent events.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use outflow_control::Control;
use tokio::sync::Semaphore;

use crate::limits::{EVENT_STREAMS_MAX, EVENTS_EVERY};
use crate::view::Overview;
use crate::{ErrorBody, HttpError};

/// What all pages that are kept up to date have in common.
#[derive(Debug)]
pub(crate) struct Events {
    places: Arc<Semaphore>,
    /// The newest overview as JSON, made once for all, with the moment it shows.
    newest: Mutex<(u64, Arc<str>)>,
}

impl Events {
    pub(super) fn new() -> Self {
        Events {
            places: Arc::new(Semaphore::new(EVENT_STREAMS_MAX)),
            newest: Mutex::new((0, Arc::from("{}"))),
        }
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

/// The whole relay, again and again as it changes: each event is an `Overview`
#[utoipa::path(get, path = "/api/v1/events", tag = "relay", responses(
    (status = OK, body = String, content_type = "text/event-stream"),
    (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "Too many pages are open")
))]
pub(super) async fn events(
    State(control): State<Control>,
    State(all): State<Arc<Events>>,
) -> Result<impl IntoResponse, HttpError> {
    let place = all.places.clone().try_acquire_owned().map_err(|_| {
        let what = format!("{EVENT_STREAMS_MAX} pages are open already: close one");
        HttpError::new(StatusCode::SERVICE_UNAVAILABLE, what)
    })?;
    let mut states = control.watch();
    states.mark_changed();
    // A peer that does not read is not written for: nothing piles up.
    let events = futures_util::stream::unfold(
        (control, all, states, place, false),
        |(control, all, mut states, place, again)| async move {
            if again {
                tokio::time::sleep(EVENTS_EVERY).await;
            }
            states.changed().await.ok()?;
            states.mark_unchanged();
            let event = Event::default().data(all.overview(&control));
            Some((Ok::<_, Infallible>(event), (control, all, states, place, true)))
        },
    );
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}
