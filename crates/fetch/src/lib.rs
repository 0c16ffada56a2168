//! What asks HTTP servers that are no streams: hooks, keys of signed tokens, and the API of other relays. It blocks, so it is for threads that
//! may wait.

#![allow(clippy::disallowed_methods, reason = "it owns the sockets that it asks by")]

mod signed;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use signed::post;
use tokio_rustls::rustls::crypto::ring::default_provider;
use ureq::Body;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
pub use ureq::{Agent, Error, RequestBuilder};

/// One that waits no longer than this for an answer. It follows no redirects: what it sends is for the address alone that
/// it was given.
pub fn agent(patience: Duration) -> Agent {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(default_provider()))
        .root_certs(trusted())
        .build();
    let config = Agent::config_builder().timeout_global(Some(patience)).tls_config(tls).max_redirects(0);
    config.build().into()
}

/// The body of the answer to GET, of no more than `bytes_max`.
///
/// # Errors
/// There is no such answer.
pub fn document(agent: &Agent, url: &str, bytes_max: u64) -> Result<Vec<u8>, Error> {
    body(agent.get(url).call()?, bytes_max)
}

/// The body of an answer of status 200, of no more than `bytes_max`.
///
/// # Errors
/// It is another answer, a longer one, or it does not come to its end.
pub fn body(mut answer: Response<Body>, bytes_max: u64) -> Result<Vec<u8>, Error> {
    if answer.status() != StatusCode::OK {
        return Err(Error::StatusCode(answer.status().as_u16()));
    }
    answer.body_mut().with_config().limit(bytes_max).read_to_vec()
}

/// The certificates that the system trusts, read once. Without any, no server by TLS is trusted.
fn trusted() -> RootCerts {
    static TRUSTED: OnceLock<RootCerts> = OnceLock::new();
    let read = || {
        let found = rustls_native_certs::load_native_certs().certs;
        RootCerts::new_with_certs(
            &found.iter().map(|one| Certificate::from_der(one).to_owned()).collect::<Vec<_>>(),
        )
    };
    TRUSTED.get_or_init(read).clone()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// The address of a server that gives one answer.
    fn server(answer: &'static str) -> (String, std::thread::JoinHandle<()>) {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", server.local_addr().expect("bound"));
        let serving = std::thread::spawn(move || {
            let (mut socket, _) = server.accept().expect("asked");
            let _ = socket.read(&mut [0; 1000]).expect("a request");
            socket.write_all(answer.as_bytes()).expect("answered");
        });
        (url, serving)
    }

    #[test]
    fn a_document_is_whole_and_no_longer_than_it_may_be() {
        let answered = |answer| {
            let (url, serving) = server(answer);
            let read = document(&agent(Duration::from_secs(20)), &url, 8);
            serving.join().expect("served");
            read.map_err(|error| error.to_string())
        };
        assert_eq!(answered("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkeys"), Ok(b"keys".to_vec()));
        for refused in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nkeys",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789",
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nkeys",
        ] {
            assert!(answered(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_redirect_is_an_answer_and_is_not_followed() {
        let answer = "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
        let (url, serving) = server(answer);
        let answer = agent(Duration::from_secs(20)).get(&url).call().expect("an answer");
        assert_eq!(answer.status().as_u16(), 307);
        serving.join().expect("served");
    }
}
