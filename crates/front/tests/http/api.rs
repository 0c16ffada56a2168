//! The API's behaviour beyond the shape of its answers.

use std::net::SocketAddr;

use axum::http::{Method, StatusCode, header};
use serde_json::json;

use super::Bench;

const ELSEWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7)), 9);
const GUARDED: [&str; 5] = ["/", "/metrics", "/api/v1/relay", "/api/v1/streams", "/api/v1/events"];

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_a_token_control_is_for_this_machine() {
    let bench = Bench::start("[streams.a]\n").await;
    for path in GUARDED {
        let answer = bench.ask_as(ELSEWHERE, &[], Method::GET, path, "").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
        assert!(answer.error().contains("[access] control"), "{}", answer.text());
    }
    assert_eq!(bench.get("/").await.status, StatusCode::OK);
    for open in ["/healthz", "/readyz", "/api/v1/openapi.json", "/assets/status.js"] {
        assert_eq!(
            bench.ask_as(ELSEWHERE, &[], Method::GET, open, "").await.status,
            StatusCode::OK,
            "{open}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_a_token_control_is_for_clients_that_know_it() {
    let bench = Bench::start("[access]\ncontrol = [\"s3cret\"]\n[streams.a]\n").await;
    let get = |headers: &'static [(header::HeaderName, &'static str)], uri: &'static str| {
        bench.ask_as(ELSEWHERE, headers, Method::GET, uri, "")
    };
    assert_eq!(bench.get("/api/v1/relay").await.status, StatusCode::UNAUTHORIZED, "local or not");
    let refused = get(&[], "/").await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert!(
        refused.headers["www-authenticate"].to_str().is_ok_and(|c| c.starts_with("Basic ")),
        "browsers then ask"
    );
    assert_eq!(get(&[], "/api/v1/relay?token=wrong").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(get(&[], "/api/v1/relay?token=s3cret").await.status, StatusCode::OK);
    assert_eq!(get(&[(header::AUTHORIZATION, "Bearer s3cret")], "/metrics").await.status, StatusCode::OK);
    assert_eq!(get(&[(header::AUTHORIZATION, "Basic eDpzM2NyZXQ=")], "/").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_program_is_run_through_the_api() {
    let program = json!({ "element": "external", "command": ["true"] });
    let file = "[streams.a.elements.e]\nelement = \"external\"\ncommand = [\"true\"]\n";
    let bench = Bench::start(file).await;
    for services in [
        // Not even the one that is there already: what is asked for is all that it will be.
        json!({ "elements": { "e": program } }),
        json!({ "branches": { "b": { "services": [program] } } }),
        json!({ "elements": { "e": program }, "branches": { "b": { "input": "e" } } }),
    ] {
        let uri = "/api/v1/streams/a/services";
        let refused = bench.ask(Method::PUT, uri, &services.to_string()).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{services}");
        assert!(refused.error().contains("from the configuration file only"), "{}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn services_that_cannot_be_made_change_nothing() {
    let bench = Bench::start("[streams.a.branches.b]\nservices = [\"pass\"]\n").await;
    let uri = "/api/v1/streams/a/services";
    let wasm = json!({ "element": "wasm", "file": "/no/such/plug-in.wasm" });
    let refused = bench.ask(Method::PUT, uri, &json!({ "elements": { "e": wasm } }).to_string()).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text());
    assert!(refused.error().contains("cannot be read"), "{}", refused.text());
    // What is there already is no change, so nothing else has become of it.
    let same = json!({ "branches": { "b": { "services": ["pass"] } } });
    let same = bench.ask(Method::PUT, uri, &same.to_string()).await;
    assert_eq!((same.status, same.json()["changes"].clone()), (StatusCode::OK, json!([])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_of_another_site_cannot_control() {
    let bench = Bench::start("[streams.a]\n").await;
    let local = SocketAddr::from(([127, 0, 0, 1], 9));
    let from = |origin| [(header::ORIGIN, origin)];
    let other = bench.ask_as(local, &from("http://evil.example"), Method::POST, "/api/v1/reload", "").await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    let own = bench.ask_as(local, &from("http://localhost:8080"), Method::GET, "/api/v1/relay", "").await;
    assert_eq!(own.status, StatusCode::OK);
    let posted = bench.ask_as(local, &from("http://evil.example"), Method::POST, "/a.ts", "").await;
    assert_eq!(posted.status, StatusCode::FORBIDDEN, "nor publish: {}", posted.text());
    let program = bench.ask_as(local, &[], Method::POST, "/a.ts", "").await;
    assert_eq!(program.status, StatusCode::OK, "{}", program.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_comes_through_a_proxy_is_not_local() {
    let bench = Bench::start("[streams.a]\n").await;
    let local = SocketAddr::from(([127, 0, 0, 1], 9));
    let headers = [(header::HeaderName::from_static("x-forwarded-for"), "203.0.113.9")];
    let refused = bench.ask_as(local, &headers, Method::GET, "/api/v1/relay", "").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.error().contains("[access] control"), "{}", refused.text());
    let bench = Bench::start("[access]\ncontrol = [\"c\"]\n").await;
    let allowed = bench.ask_as(local, &headers, Method::GET, "/api/v1/relay?token=c", "").await;
    assert_eq!(allowed.status, StatusCode::OK, "a token is as good as ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_relay_that_is_told_to_end_says_so_and_takes_no_more_receivers() {
    let bench = Bench::start("[streams.a]\nsource = \"demo://\"\n").await;
    assert_eq!(bench.get("/api/v1/relay").await.json()["drain"], json!(null));
    let wrong = bench.ask(Method::POST, "/api/v1/stop", r#"{"drain":"30"}"#).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", wrong.text());
    assert_eq!(bench.get("/readyz").await.status, StatusCode::OK, "nothing changed");
    let told = bench.ask(Method::POST, "/api/v1/stop", r#"{"drain":"1 h"}"#).await;
    assert_eq!((told.status, told.json()["receivers"].clone()), (StatusCode::ACCEPTED, json!(0)));
    let sooner = bench.ask(Method::POST, "/api/v1/stop", r#"{"drain":"30 s"}"#).await;
    assert!(sooner.json()["left_ms"].as_u64().is_some_and(|ms| ms <= 30_000), "{}", sooner.text());
    assert!(bench.get("/api/v1/relay").await.json()["drain"]["left_ms"].is_u64());
    let ready = bench.get("/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(ready.error().contains("the relay ends"), "{}", ready.text());
    assert_eq!(bench.get("/healthz").await.status, StatusCode::OK, "it is well");
    for (method, what) in [(Method::GET, "play"), (Method::PUT, "publish")] {
        let refused = bench.ask(method, "/a.ts", "").await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{what}");
        assert!(refused.error().contains("ask another one"), "{}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn errors_are_json_that_says_what_to_do() {
    let bench = Bench::start("[streams.a]\n").await;
    let large = format!("{{\"ring\":\"{}\"}}", "x".repeat(100_000));
    for (method, uri, body, status, part) in [
        (Method::GET, "/api/v1/streams/b", "", 404, "add [streams.b]"),
        (Method::GET, "/api/v1/nothing", "", 404, "streams are at /NAME.ts"),
        (Method::GET, "/nothing", "", 404, "streams are at /NAME.ts"),
        (Method::GET, "/nothing.ts", "", 404, "no stream named 'nothing'"),
        (Method::GET, "/..%2f..%2fetc%2fpasswd.ts", "", 404, "there is nothing"),
        (Method::GET, "/api/v1/receivers/x", "", 400, "no number of a receiver"),
        (Method::DELETE, "/api/v1/streams", "", 405, "openapi.json"),
        (Method::DELETE, "/a.ts", "", 405, "openapi.json"),
        (Method::PATCH, "/api/v1/streams/a", "{", 422, "openapi.json"),
        (Method::PATCH, "/api/v1/streams/a", "[[[[[[[[", 422, "openapi.json"),
        (Method::PATCH, "/api/v1/streams/a", r#"{"rign":"8 MB"}"#, 422, "unknown field `rign`"),
        (Method::PATCH, "/api/v1/streams/a", r#"{"ring":"8"}"#, 422, "has no unit"),
        (Method::PATCH, "/api/v1/streams/a", r#"{"ring":"8 B"}"#, 422, "ring: 8 B is too little"),
        (Method::PATCH, "/api/v1/streams/a", &large, 413, "larger than"),
        (
            Method::POST,
            "/api/v1/streams/a/sinks",
            r#"{"to":"udp://224.0.0.1"}"#,
            422,
            "no IP address with a port",
        ),
        (Method::POST, "/api/v1/reload", "", 422, "without a configuration file"),
    ] {
        let answer = bench.ask(method.clone(), uri, body).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {uri}: {}", answer.text());
        assert!(answer.error().contains(part), "{method} {uri}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sinks_do_not_circle_or_collide() {
    let bench = Bench::start("[streams.a]\n[streams.b]\nsource = \"udp://127.0.0.1:21999\"\n").await;
    let add = |stream: &'static str, to: &'static str, name: &'static str| {
        let body = json!({ "to": to, "name": name }).to_string();
        let uri = format!("/api/v1/streams/{stream}/sinks");
        let bench = &bench;
        async move { bench.ask(Method::POST, &uri, &body).await }
    };
    let circle = add("b", "udp://127.0.0.1:21999", "x").await;
    assert_eq!(circle.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", circle.text());
    assert_eq!(add("nobody", "udp://127.0.0.1:9", "x").await.status, StatusCode::NOT_FOUND);
    assert_eq!(add("a", "udp://127.0.0.1:9", "x").await.status, StatusCode::CREATED);
    for (to, name) in [("udp://127.0.0.1:9", "y"), ("rtp://127.0.0.1:9", "y"), ("udp://127.0.0.1:10", "x")] {
        let refused = add("b", to, name).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{to} {name}: {}", refused.text());
    }
    let removed = bench.ask(Method::DELETE, "/api/v1/streams/a/sinks/x", "").await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(add("a", "udp://127.0.0.1:9", "x").await.status, StatusCode::CREATED, "free again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_that_guesses_tokens_has_to_wait() {
    let access = "[access]\ncontrol = [\"s3cret\"]\nplay = [\"p\"]\npublish = [\"q\"]\n[streams.a]\n";
    let bench = Bench::start(access).await;
    let local = SocketAddr::from(([127, 0, 0, 1], 9));
    let ask = |peer: SocketAddr, uri: &'static str| bench.ask_as(peer, &[], Method::GET, uri, "");
    // Whatever is guessed counts: the right to play, to publish, to control.
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(ask(ELSEWHERE, "/a.ts?token=x").await.status.as_u16());
        let put = bench.ask_as(ELSEWHERE, &[], Method::PUT, "/a.ts?token=x", "");
        statuses.push(put.await.status.as_u16());
        statuses.push(ask(ELSEWHERE, "/api/v1/relay?token=x").await.status.as_u16());
    }
    let first = statuses.iter().position(|status| *status == 429).expect("it may guess for ever");
    assert!(statuses[..first].iter().all(|status| *status == 401), "{statuses:?}");
    let refused = ask(ELSEWHERE, "/api/v1/relay?token=s3cret").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "or it could go on");
    assert!(refused.error().contains("too many wrong tokens"), "{}", refused.text());
    assert!(refused.headers["retry-after"].to_str().is_ok_and(|wait| wait.parse::<u64>().is_ok()));
    let counts = ask(local, "/api/v1/relay?token=s3cret").await.json();
    assert_eq!(counts["connections"]["wrong_tokens"], first, "others are not affected");
    assert!(counts["connections"]["too_often"].as_u64() > Some(0));
    let metrics = ask(local, "/metrics?token=s3cret").await.text();
    assert!(
        metrics.contains(&format!("outflow_token_failures_total{{outcome=\"wrong\"}} {first}")),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn limits_hold_until_the_file_is_loaded_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bench = Bench::start_from("[streams.a]\n", Some(folder.path().join("o.toml"))).await;
    let wish = r#"{"ring":"2 MB","hopeless_after":"5 s"}"#;
    let limits = bench.ask(Method::PATCH, "/api/v1/streams/a", wish).await.json();
    assert_eq!(
        limits,
        json!({
            "ring": "2 MB", "hopeless_after": "5 s", "source_timeout": "2 s", "max_receivers": 20000,
            "weight": 1, "reserve": "off", "reserve_rate": "off"
        })
    );
    bench.wait("/api/v1/streams/a", |stream| stream["ring_bytes_max"] == 2_000_000).await;
    let reloaded = bench.ask(Method::POST, "/api/v1/reload", "").await.json();
    assert_eq!(reloaded["changes"], json!(["stream 'a': ring, hopeless_after changed"]));
    bench.wait("/api/v1/streams/a", |stream| stream["ring_bytes_max"] == 8_000_000).await;
    std::fs::write(folder.path().join("o.toml"), "[streams.a]\nrign = 1\n").expect("written");
    let refused = bench.ask(Method::POST, "/api/v1/reload", "").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().contains("did you mean 'ring'?"), "{}", refused.error());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reload_says_what_it_could_not_do_and_what_it_takes_for_half_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("o.toml");
    let bench = Bench::start_from("[streams.a]\n", Some(path.clone())).await;
    let document = bench.get("/api/v1/openapi.json").await.json();
    let rest = "[listen]\nrtsp = \"off\"\nhttp = \"off\"\n[limits]\nworkers = 1\n";
    let reload = async |streams: &str, wish: &str, status: u16| {
        std::fs::write(&path, format!("{rest}{streams}")).expect("written");
        let answer = bench.ask(Method::POST, "/api/v1/reload", wish).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
        super::schema::check(&document, "post", "/api/v1/reload", &answer);
        answer
    };
    for (wish, status) in [("", 422), ("{}", 422), (r#"{"allow_emtpy":true}"#, 422)] {
        let refused = reload("", wish, status).await;
        let says = if wish.contains("emtpy") { "unknown field `allow_emtpy`" } else { "half written" };
        assert!(refused.error().contains(says), "{}", refused.text());
    }
    assert_eq!(bench.get("/api/v1/streams/a").await.status, StatusCode::OK);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    let port = taken.local_addr().expect("bound").port();
    let streams = format!("[streams.a]\n[streams.b]\nsource = \"udp://127.0.0.1:{port}\"\n[streams.c]\n");
    let partly = reload(&streams, "", 409).await.json();
    assert_eq!(partly["changes"], json!(["stream 'c' added"]));
    assert!(
        partly["failed"][0].as_str().is_some_and(|line| line.starts_with("stream 'b' is not as configured"))
    );
    assert_eq!(bench.get("/api/v1/streams/b").await.status, StatusCode::NOT_FOUND);
    let emptied = reload("", r#"{"allow_empty":true}"#, 200).await.json();
    assert!(emptied["changes"].as_array().is_some_and(|changes| changes.len() == 2), "{emptied}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn metrics_show_streams_and_receivers() {
    let bench = Bench::start("[streams.clip]\nsource = \"demo://\"\n").await;
    let sink = r#"{"to":"udp://127.0.0.1:9","name":"the \"wall\""}"#;
    assert_eq!(bench.ask(Method::POST, "/api/v1/streams/clip/sinks", sink).await.status, StatusCode::CREATED);
    bench.wait("/api/v1/receivers", |list| list[0]["packets"].as_u64() > Some(0)).await;
    let answer = bench.get("/metrics").await;
    let text = answer.text();
    assert!(
        answer.headers["content-type"]
            .to_str()
            .is_ok_and(|kind| kind.starts_with("application/openmetrics-text"))
    );
    assert!(text.ends_with("# EOF\n"));
    for line in [
        "outflow_source_up{stream=\"clip\"} 1",
        "outflow_source_received_bytes_total{stream=\"clip\"} ",
        "outflow_stream_joins_total{stream=\"clip\"} 1",
        "outflow_ring_limit_bytes{stream=\"clip\"} 8000000",
        "outflow_connections_total{outcome=\"refused\"} 0",
        "to=\"the \\\"wall\\\"\"} ",
        "# TYPE outflow_receiver_queue_delay_seconds gauge",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    let families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let family = |sample: &str| families.iter().any(|f| sample.starts_with(f.split(' ').next().unwrap_or(f)));
    assert!(
        text.lines().filter(|line| !line.starts_with('#')).all(family),
        "every number is explained\n{text}"
    );
}
