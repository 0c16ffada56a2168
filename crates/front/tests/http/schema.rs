//! The OpenAPI document: it describes everything that there is, and the answers are as it says.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};

use super::{Answer, Bench};

/// Asked one after the other: method, path of the document, path that is asked, body, status.
const SCRIPT: &[(&str, &str, &str, &str, u16)] = &[
    ("get", "/healthz", "/healthz", "", 200),
    ("get", "/readyz", "/readyz", "", 200),
    ("get", "/api/v1/relay", "/api/v1/relay", "", 200),
    ("get", "/api/v1/streams", "/api/v1/streams", "", 200),
    ("get", "/api/v1/streams/{name}", "/api/v1/streams/clip%2Fone", "", 200),
    ("get", "/api/v1/streams/{name}", "/api/v1/streams/other", "", 404),
    (
        "patch",
        "/api/v1/streams/{name}",
        "/api/v1/streams/clip%2Fone",
        r#"{"ring":"1 MB","max_receivers":9}"#,
        200,
    ),
    ("patch", "/api/v1/streams/{name}", "/api/v1/streams/clip%2Fone", r#"{"ring":"1 kB"}"#, 422),
    ("patch", "/api/v1/streams/{name}", "/api/v1/streams/other", r#"{}"#, 404),
    ("post", "/api/v1/streams/{name}/sinks", "/api/v1/streams/clip%2Fone/sinks", SINK, 201),
    ("post", "/api/v1/streams/{name}/sinks", "/api/v1/streams/clip%2Fone/sinks", SINK, 409),
    (
        "post",
        "/api/v1/streams/{name}/sinks",
        "/api/v1/streams/other/sinks",
        r#"{"to":"udp://127.0.0.1:9"}"#,
        404,
    ),
    ("post", "/api/v1/streams/{name}/sinks", "/api/v1/streams/clip%2Fone/sinks", r#"{"to":"tcp://a"}"#, 422),
    ("get", "/api/v1/streams/{name}/sdp", "/api/v1/streams/clip%2Fone/sdp", "", 200),
    ("get", "/api/v1/streams/{name}/sdp", "/api/v1/streams/clip%2Fone/sdp?sink=x", "", 404),
    ("get", "/api/v1/streams/{name}/sdp", "/api/v1/streams/silent/sdp", "", 503),
    ("get", "/api/v1/links", "/api/v1/links", "", 200),
    ("get", "/api/v1/tokens", "/api/v1/tokens", "", 200),
    ("get", "/api/v1/tree", "/api/v1/tree", "", 200),
    ("get", "/api/v1/multicast", "/api/v1/multicast", "", 200),
    ("put", LEVELS, LEVELS, r#"{"group":"239.1.1.1","level":3}"#, 404),
    ("put", LEVELS, LEVELS, r#"{"group":"239.1.1.1","level":0}"#, 422),
    ("put", LEVELS, LEVELS, r#"{"group":"239.1.1.1","level":3,"host":"10.0.0.9"}"#, 404),
    (
        "post",
        "/api/v1/streams/{name}/sinks",
        "/api/v1/streams/clip%2Fone/sinks",
        r#"{"to":"udp://127.0.0.1:7","link":"none"}"#,
        422,
    ),
    ("get", "/api/v1/receivers", "/api/v1/receivers?stream=clip/one", "", 200),
    ("get", "/api/v1/receivers/{id}", "/api/v1/receivers/ID", "", 200),
    ("get", "/api/v1/receivers/{id}", "/api/v1/receivers/999999", "", 404),
    ("patch", "/api/v1/receivers/{id}", "/api/v1/receivers/ID", r#"{"priority":"high"}"#, 204),
    ("patch", "/api/v1/receivers/{id}", "/api/v1/receivers/999999", r#"{"priority":"high"}"#, 404),
    ("delete", "/api/v1/receivers/{id}", "/api/v1/receivers/999999", "", 404),
    ("delete", "/api/v1/streams/{name}/sinks/{sink}", "/api/v1/streams/clip%2Fone/sinks/wall", "", 204),
    ("delete", "/api/v1/streams/{name}/sinks/{sink}", "/api/v1/streams/clip%2Fone/sinks/wall", "", 404),
    ("delete", "/api/v1/receivers/{id}", "/api/v1/receivers/SECOND", "", 204),
    ("put", SERVICES, "/api/v1/streams/clip%2Fone/services", PASS, 200),
    ("put", SERVICES, "/api/v1/streams/clip%2Fone/services", r#"{"branches":{"b":{"services":["x"]}}}"#, 422),
    ("put", SERVICES, "/api/v1/streams/clip%2Fone/services", PROGRAM, 422),
    ("put", SERVICES, "/api/v1/streams/other/services", PASS, 404),
    ("patch", ELEMENT, "/api/v1/streams/clip%2Fone/elements/e", r#"{"bypass":true}"#, 204),
    ("patch", ELEMENT, "/api/v1/streams/clip%2Fone/elements/f", r#"{"bypass":true}"#, 404),
    ("get", "/api/v1/rules", "/api/v1/rules", "", 200),
    ("get", SESSION, "/api/v1/sessions/00000000000000000000000000000000", "", 404),
    ("patch", SESSION, "/api/v1/sessions/1", r#"{"level":2}"#, 404),
    ("patch", SESSION, "/api/v1/sessions/1", r#"{"level":"best"}"#, 422),
    // What they answer to browsers is tested with their front.
    ("post", "/play/{stream}", "/play/clip/one", "", 503),
    ("post", "/publish/{stream}", "/publish/clip/one", "", 503),
    ("patch", "/api/v1/webrtc/{session}", "/api/v1/webrtc/1", "", 415),
    ("delete", "/api/v1/webrtc/{session}", "/api/v1/webrtc/1", "", 404),
    ("post", "/api/v1/reload", "/api/v1/reload", "", 422),
    // A relay of a test has no starter.
    ("post", "/api/v1/upgrade", "/api/v1/upgrade", "", 409),
    ("post", "/api/v1/stop", "/api/v1/stop", r#"{"drain":"soon"}"#, 422),
    ("post", "/api/v1/stop", "/api/v1/stop", r#"{"drain":"1 h"}"#, 202),
];

/// What it answers to a client that has one is tested with the sessions.
const SESSION: &str = "/api/v1/sessions/{token}";

/// What it answers to a member is tested end to end.
const LEVELS: &str = "/api/v1/multicast/levels";

const SERVICES: &str = "/api/v1/streams/{name}/services";
const ELEMENT: &str = "/api/v1/streams/{name}/elements/{element}";
const PASS: &str = r#"{"elements":{"e":{"element":"pass"}},"branches":{"b":{"input":"e"}}}"#;
/// No client runs programs through the API.
const PROGRAM: &str = r#"{"elements":{"e":{"element":"external","command":["true"]}}}"#;

const SINK: &str = r#"{"to":"udp://127.0.0.1:9","name":"wall","priority":"low"}"#;

/// Described, and tested elsewhere because they have no end.
const ENDLESS: [(&str, &str); 3] =
    [("get", "/api/v1/events"), ("get", "/{stream}.ts"), ("put", "/{stream}.ts")];

pub(super) fn check(document: &Value, method: &str, path: &str, answer: &Answer) {
    let status = answer.status.as_str();
    let response = &document["paths"][path][method]["responses"][status];
    assert!(response.is_object(), "{method} {path} does not say that it answers {status}: {}", answer.text());
    let Some(content) = response["content"].as_object() else {
        assert!(answer.body.is_empty(), "{method} {path} answers a body that is not described");
        return;
    };
    let kind = answer.headers["content-type"].to_str().expect("a media type");
    let described = content.get(kind.split(';').next().unwrap_or(kind));
    let described = described.unwrap_or_else(|| panic!("{method} {path} {status} answers {kind}"));
    if kind == "application/json" {
        let schema = json!({ "allOf": [described["schema"]], "components": document["components"] });
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<_> = validator.iter_errors(&answer.json()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{method} {path} {status}: {errors:?}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_answer_is_as_the_document_says_and_every_route_is_described() {
    let bench = Bench::start(
        "[streams.\"clip/one\"]\nsource = \"demo://\"\n[streams.silent]\n[link.up]\nrate = \"1 Mbit/s\"\n",
    )
    .await;
    let document = bench.get("/api/v1/openapi.json").await.json();
    bench.wait("/api/v1/streams/clip%2Fone", |stream| stream["source"]["up"] == true).await;
    let mut covered: BTreeSet<_> = ENDLESS.map(|(method, path)| (method.to_owned(), path.to_owned())).into();
    let (mut id, mut second) = (0, 0);
    for (method, path, uri, body, status) in SCRIPT {
        if path.ends_with("receivers/{id}") && second == 0 {
            let added = bench
                .ask(Method::POST, "/api/v1/streams/silent/sinks", r#"{"to":"udp://127.0.0.1:99"}"#)
                .await;
            second = added.json()["id"].as_u64().expect("a number");
            let both = |list: &Value| list.as_array().is_some_and(|list| list.len() == 2);
            bench.wait("/api/v1/receivers", both).await;
        }
        let uri = uri.replace("ID", &id.to_string()).replace("SECOND", &second.to_string());
        let verb = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
        let answer = bench.ask(verb, &uri, body).await;
        assert_eq!(answer.status.as_u16(), *status, "{method} {uri} {body}: {}", answer.text());
        check(&document, method, path, &answer);
        if answer.status.as_u16() == 201 {
            id = answer.json()["id"].as_u64().expect("a number");
        }
        covered.insert(((*method).to_owned(), (*path).to_owned()));
    }
    let paths = document["paths"].as_object().expect("paths").iter();
    let described: BTreeSet<_> = paths
        .flat_map(|(path, item)| item.as_object().expect("methods").keys().map(|m| (m.clone(), path.clone())))
        .collect();
    assert_eq!(described, covered, "what is described, and what is tested here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_document_explains_itself() {
    let bench = Bench::start("").await;
    let document = bench.get("/api/v1/openapi.json").await.json();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            assert!(
                operation["summary"].as_str().is_some_and(|s| s.len() > 5),
                "{method} {path} has no summary"
            );
            assert!(operation["tags"][0].is_string(), "{method} {path} has no tag");
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
        for property in parts.iter().filter_map(|part| part["properties"].as_object()).flatten() {
            let (key, property) = property;
            let variant = &property["oneOf"][0];
            let explained = [&property["description"], &property["$ref"], &variant["description"]];
            let explained = explained.iter().any(|text| text.is_string());
            assert!(explained, "{name}.{key} is not explained: {property}");
        }
    }
}
