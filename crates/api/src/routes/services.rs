//! Services of a stream.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use outflow_config::{Branches, Config, Elements, Protocols};
use outflow_control::{Changed, Control, RuleLog};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Body, ErrorBody, HttpError};

/// Services as in the tables of the configuration.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServicesRequest {
    /// As in `[streams.NAME.elements.NAME]`, by name.
    #[serde(default)]
    #[schema(value_type = Object)]
    elements: serde_json::Map<String, serde_json::Value>,
    /// As in `[streams.NAME.branches.NAME]`, by name.
    #[serde(default)]
    #[schema(value_type = Object)]
    branches: serde_json::Map<String, serde_json::Value>,
}

/// What was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServicesChanged {
    /// A line for each change; none if there was nothing to change.
    changes: Vec<String>,
    /// Microseconds that packets waited while the new services were put in place; null if none were.
    waited_us: Option<f64>,
}

/// How an element works.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ElementRequest {
    /// Let everything pass as it is.
    bypass: bool,
}

/// Puts other services in place of those of a stream, until the configuration file is loaded again
///
/// Packets flow on: nothing is lost, repeated or reordered, elements that keep their name keep their
/// state, and receivers of branches that keep theirs stay.
#[utoipa::path(
    put, path = "/api/v1/streams/{name}/services", tag = "services",
    params(("name" = String, Path, description = "Name of the stream")),
    request_body = ServicesRequest,
    responses(
        (status = OK, body = ServicesChanged),
        (status = NOT_FOUND, body = ErrorBody),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "Not possible; nothing changed")
    )
)]
pub(super) async fn replace(
    State(control): State<Control>,
    Path(name): Path<String>,
    Body(wish): Body<ServicesRequest>,
) -> Result<Json<ServicesChanged>, HttpError> {
    let (elements, branches) = read(wish)?;
    let Changed { lines, waited, .. } = control.set_services(&name, elements, branches).await?;
    let waited_us = waited.map(|waited| waited.as_nanos() as f64 / 1e3);
    Ok(Json(ServicesChanged { changes: lines, waited_us }))
}

/// Lets an element pass everything as it is, or no longer, until it is replaced
#[utoipa::path(
    patch, path = "/api/v1/streams/{name}/elements/{element}", tag = "services",
    params(
        ("name" = String, Path, description = "Name of the stream"),
        ("element" = String, Path, description = "Name of the element")
    ),
    request_body = ElementRequest,
    responses((status = NO_CONTENT), (status = NOT_FOUND, body = ErrorBody))
)]
pub(super) async fn change(
    State(control): State<Control>,
    Path((name, element)): Path<(String, String)>,
    Body(wish): Body<ElementRequest>,
) -> Result<axum::http::StatusCode, HttpError> {
    control.set_bypass(&name, &element, wish.bypass).await?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}

/// Which rules are in force, and what they have decided lately
#[utoipa::path(get, path = "/api/v1/rules", tag = "services", responses((status = OK, body = RuleLog)))]
pub(super) async fn rules(State(control): State<Control>) -> Json<RuleLog> {
    Json(control.decisions().log())
}

/// Reads services by way of a configuration that has nothing else: the same keys, the same checks.
fn read(wish: ServicesRequest) -> Result<(Elements, Branches), HttpError> {
    let ServicesRequest { elements, branches } = wish;
    let stream = serde_json::json!({ "elements": elements, "branches": branches });
    let text = toml::to_string(&serde_json::json!({ "streams": { "s": stream } }));
    let text = text.map_err(|e| impossible(format!("this has no form in TOML: {e}")))?;
    let config = Config::parse(&text, "services", &Protocols::default()).map_err(|errors| {
        let each = errors.errors().iter().map(|error| format!("{}: {}", error.what, error.help));
        impossible(each.collect::<Vec<_>>().join("; "))
    })?;
    let stream = config.streams.get("s").cloned().map(Arc::unwrap_or_clone).unwrap_or_default();
    if stream.plan().elements.values().any(|element| element.kind == "external") {
        let what = "programs are run from the configuration file only: write it there, and reload";
        return Err(impossible(what.to_owned()));
    }
    Ok((stream.elements, stream.branches))
}

fn impossible(what: String) -> HttpError {
    HttpError::new(axum::http::StatusCode::UNPROCESSABLE_ENTITY, what)
}
