//! What does not fit: links without room for receivers, workers without room for what streams reserve.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Bench;
use super::door::{connect, read_until};

/// A stream over a link that carries less than anything.
const NARROW: &str = "[link.narrow]\nrate = \"8 kbit/s\"\nadmission = \"refuse\"\n\
    [streams.demo]\nsource = \"demo://\"\nlink = \"narrow\"\n";

fn no_receiver(list: &Value) -> bool {
    list == &json!([])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_link_without_room_is_503_with_what_is_left_and_what_it_takes() {
    let bench = Bench::start(NARROW).await;
    let least = |stream: &Value| stream["levels"].as_array()?.last()?.as_u64();
    bench.wait("/api/v1/streams/demo", |stream| least(stream) > Some(50_000)).await;
    let why = "link 'narrow' has 8 kbit/s left of 8 kbit/s, and this takes ";
    let mut socket = connect(bench.listen().await, "GET /demo.ts HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let answer = read_until(&mut socket, |read| read.ends_with(b"}")).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    assert!(answer.contains(why) && answer.contains("ask for a lower level"), "{answer}");

    let document = bench.get("/api/v1/openapi.json").await.json();
    let sinks = "/api/v1/streams/demo/sinks";
    let add = async |link: &str| {
        let sink = json!({ "to": "udp://127.0.0.1:9", "name": "wall", "link": link });
        bench.ask(Method::POST, sinks, &sink.to_string()).await
    };
    let refused = add("narrow").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text());
    assert!(refused.error().starts_with(why), "{}", refused.text());
    super::schema::check(&document, "post", "/api/v1/streams/{name}/sinks", &refused);
    bench.wait("/api/v1/receivers", no_receiver).await;
    assert_eq!(bench.ask(Method::DELETE, &format!("{sinks}/wall"), "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(add("off").await.status, StatusCode::CREATED, "its name and its address are free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_reserves_of_a_worker_what_there_is_and_nothing_if_that_is_too_little() {
    let bench = Bench::start("[streams.a]\nreserve = \"50 %\"\n[streams.b]\n").await;
    let document = bench.get("/api/v1/openapi.json").await.json();
    let change = async |wish: Value, status: u16| {
        let answer = bench.ask(Method::PATCH, "/api/v1/streams/b", &wish.to_string()).await;
        assert_eq!(answer.status.as_u16(), status, "{wish}: {}", answer.text());
        super::schema::check(&document, "patch", "/api/v1/streams/{name}", &answer);
        answer
    };
    let shares = |answer: &Value| (answer["weight"].clone(), answer["reserve"].clone());
    let refused = change(json!({ "weight": 7, "reserve": "30.5 %" }), 503).await;
    let why = "stream 'b' reserves 30.5 % of a worker, of which 30 % can be reserved";
    assert!(refused.error().starts_with(why), "{}", refused.text());
    assert_eq!(shares(&change(json!({}), 200).await.json()), (json!(1), json!("off")), "it is as it was");
    let changed = change(json!({ "weight": 7, "reserve": "30 %" }), 200).await.json();
    assert_eq!(shares(&changed), (json!(7), json!("30 %")));
    assert_eq!(shares(&change(json!({ "reserve": "off" }), 200).await.json()), (json!(7), json!("off")));
    for (wish, part) in [
        (json!({ "weight": 0 }), "0 is too little: possible: 1 to 1000"),
        (json!({ "reserve": "90 %" }), "reserve: 90 % is too much"),
        (json!({ "reserve": "half" }), "'half' is no share"),
    ] {
        let impossible = change(wish, 422).await;
        assert!(impossible.error().contains(part), "{}", impossible.text());
    }
}

/// A stream that is not on air yet, over a link that lets in as much as it carries.
const QUIET: &str = "[link.up]\nrate = \"10 Mbit/s\"\nadmission = \"refuse\"\n[defaults]\nlink = \"up\"\n\
    [streams.a]\nreserve_rate = \"4 Mbit/s\"\nbranches.b.services = [\"pass\"]\n[streams.other]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_stream_or_a_sink_reserves_of_a_link_counts_before_anything_comes() {
    let bench = Bench::start(QUIET).await;
    let add = async |stream: &str, port: u16, more: Value| {
        let mut sink = json!({ "to": format!("udp://127.0.0.1:{port}"), "name": port.to_string() });
        sink.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
        bench.ask(Method::POST, &format!("/api/v1/streams/{stream}/sinks"), &sink.to_string()).await
    };
    let reserved = |bps: u64| move |links: &Value| links[0]["reserved_bps"] == bps;
    for port in [21, 22] {
        assert_eq!(add("a", port, json!({})).await.status, StatusCode::CREATED, "4 of 10 Mbit/s");
    }
    let full = "link 'up' has 2 Mbit/s left of 10 Mbit/s, and this takes ";
    let refused = add("a", 23, json!({ "level": 3 })).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text());
    assert!(refused.error().starts_with(&format!("{full}4 Mbit/s")), "{}", refused.text());
    let refused = add("other", 24, json!({ "reserve_rate": "2001 kbit/s" })).await;
    assert!(refused.error().starts_with(&format!("{full}2001 kbit/s")), "{}", refused.text());
    for (stream, port, more) in [
        ("a", 23, json!({ "reserve_rate": "500 kbit/s", "weight": 3 })),
        ("a", 24, json!({ "branch": "b" })),
        ("other", 25, json!({ "reserve_rate": "1 Mbit/s" })),
        ("other", 26, json!({})),
    ] {
        let added = add(stream, port, more).await;
        assert_eq!(added.status, StatusCode::CREATED, "{port}: {}", added.text());
    }
    bench.wait("/api/v1/links", reserved(9_500_000)).await;
    let change = async |wish: Value| bench.ask(Method::PATCH, "/api/v1/streams/a", &wish.to_string()).await;
    assert_eq!(change(json!({ "reserve_rate": "3 Mbit/s" })).await.json()["reserve_rate"], "3 Mbit/s");
    bench.wait("/api/v1/links", reserved(7_500_000)).await;
    assert_eq!(change(json!({ "reserve_rate": "off" })).await.json()["reserve_rate"], "off");
    bench.wait("/api/v1/links", reserved(1_500_000)).await;
    for (wish, part) in [
        (json!({ "weight": 1001 }), "1001 is too much"),
        (json!({ "reserve_rate": "2" }), "has no unit"),
        (json!({ "reserve_rate": "1 bit/s" }), "1 bit/s is too little"),
    ] {
        let impossible = add("a", 29, wish).await;
        assert_eq!(impossible.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", impossible.text());
        assert!(impossible.error().contains(part), "{}", impossible.text());
    }
}
