//! HTTP: streams in and out as MPEG-TS, and the connections by which the API is reached.
//!
//! A connection's first request is read here (`connection`). A plain `GET /NAME.ts` leaves HTTP at
//! once: the response head goes out, and the socket itself goes to the worker that owns the stream
//! (`play`). Everything else is hyper's and axum's: publishers (`ingest`), and the pages of
//! [`outflow_api`].

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod connection;
mod ingest;
pub mod limits;
mod names;
mod play;

use std::sync::Arc;

use axum::middleware::from_fn;
use axum::routing::{get, put};
use outflow_api::guard::own_pages_only;
use outflow_api::{Http, Page, Pages};
use outflow_config::{Contract, Listener, Protocol, StreamAddress};
use outflow_control::{Control, Front, Started, Task};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

pub use connection::{FirstRequest, first_request, serve};
use names::{ENCRYPTED, PLAIN};

/// HTTP: `[listen] http` and `https`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(HttpTs)
}

#[derive(Debug)]
struct HttpTs;

const LISTENERS: &[Listener] = &[
    Listener {
        key: PLAIN,
        port: Some(8080),
        needs_tls: false,
        is_tcp: true,
        players: ("HTTP players", Contract::Ts),
        address: Some(StreamAddress {
            label: "HTTP",
            usual_port: Some(80),
            suffix: ".ts",
            publish: Some("ffmpeg -re -i FILE -c copy -f mpegts -method PUT URL"),
        }),
    },
    Listener {
        key: ENCRYPTED,
        port: Some(8443),
        needs_tls: true,
        is_tcp: true,
        players: ("HTTP players", Contract::Ts),
        address: Some(StreamAddress { label: "HTTPS", usual_port: Some(443), suffix: ".ts", publish: None }),
    },
];

impl Front for HttpTs {
    fn protocol(&self) -> Protocol {
        Protocol { listeners: LISTENERS, ..Protocol::default() }
    }

    fn attach(&self, control: &Control) {
        control.shared::<Pages>().add(Page { open: streams(), ..Page::default() });
    }

    fn listen(&self, control: Control) -> Started {
        Box::pin(async move {
            let config = control.config();
            let listeners =
                control.listeners("HTTP", config.listen.at(PLAIN), config.listen.at(ENCRYPTED))?;
            let router = outflow_api::router(control.clone());
            let serve =
                |(listener, tls)| Box::pin(serve(listener, tls, control.clone(), router.clone())) as Task<()>;
            Ok(listeners.into_iter().map(serve).collect())
        })
    }
}

#[derive(OpenApi)]
#[openapi(
    paths(play::through_http, ingest::publish),
    tags((name = "media", description = "Streams themselves, in and out"))
)]
struct Description;

/// Streams, which no other path is in front of.
fn streams() -> OpenApiRouter<Http> {
    // A form on a page of another site can post, but must not publish.
    let publish = put(ingest::publish).post(ingest::publish).route_layer(from_fn(own_pages_only));
    let streams = get(play::through_http).merge(publish);
    OpenApiRouter::with_openapi(Description::openapi()).route("/{*stream}", streams)
}
