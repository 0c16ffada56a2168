//! The HTTP side of a real relay: what it answers, and how it takes what it should not get.

#![allow(clippy::disallowed_methods, reason = "a test of sockets and files")]

mod access_hook;
mod api;
mod door;
mod grants;
mod hooks;
mod jwt;
mod left_out;
mod publishers;
mod room;
mod schema;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::{Extension, Router};
use http_body_util::BodyExt;
use outflow_api::Peer;
use outflow_config::Config;
use outflow_control::Relay;
use outflow_door::local::own_user;
use serde_json::Value;
use tower::ServiceExt;

/// How long anything may take that should happen at once, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A relay whose HTTP is asked without connections, or served at a port of its own.
struct Bench {
    relay: Option<Relay>,
    router: Router,
}

/// An answer that was read to its end.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Bench {
    async fn start(streams: &str) -> Self {
        Self::start_from(streams, None).await
    }

    /// `path` is the configuration's file, for reloading.
    async fn start_from(streams: &str, path: Option<PathBuf>) -> Self {
        let text = format!("[listen]\nrtsp = \"off\"\nhttp = \"off\"\n[limits]\nworkers = 1\n{streams}");
        if let Some(path) = &path {
            std::fs::write(path, &text).expect("written");
        }
        let config = Config::parse(&text, "test.toml", &outflow_fronts::protocols())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let relay = Relay::start(config, path, outflow_fronts::all(), None).await.expect("started");
        let router = outflow_api::router(relay.control().clone());
        let bench = Bench { relay: Some(relay), router };
        bench.wait("/readyz", |answer| answer["status"] == "ok").await;
        bench
    }

    fn relay(&self) -> &Relay {
        self.relay.as_ref().expect("it runs until the bench is dropped")
    }

    /// Asks from this machine, without a token.
    async fn ask(&self, method: Method, uri: &str, body: &str) -> Answer {
        self.ask_as(SocketAddr::from(([127, 0, 0, 1], 9)), &[], method, uri, body).await
    }

    async fn get(&self, uri: &str) -> Answer {
        self.ask(Method::GET, uri, "").await
    }

    async fn ask_as(
        &self,
        peer: SocketAddr,
        headers: &[(header::HeaderName, &str)],
        method: Method,
        uri: &str,
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(uri).header(header::HOST, "localhost:8080");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        let router = self.router.clone().layer(Extension(Peer { address: peer, user: Some(own_user()) }));
        let response = router.oneshot(request).await.expect("routers do not fail");
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.expect("a whole body").to_bytes().to_vec();
        Answer { status, headers, body }
    }

    /// Waits until the answer at `uri` satisfies `condition`.
    async fn wait(&self, uri: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.get(uri).await.json();
            if condition(&answer) {
                return answer;
            }
            assert!(tokio::time::Instant::now() < until, "{uri} still answers {answer:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Serves connections; the address.
    async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let control = self.relay().control().clone();
        tokio::spawn(http_ts::serve(listener, None, control, self.router.clone()));
        address
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(relay) = self.relay.take() {
            relay.shut_down();
        }
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The error that the body tells.
    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }
}
