//! Streams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use outflow_config::{StreamConfig, Text, Weight, Written, parse_duration, text_or_none};
use outflow_control::{Control, StreamLimits};
use outflow_door::query_value;
use outflow_engine::message::{ControlError, Described, StreamState};
use outflow_relay::Encapsulation;
use outflow_rtp::sdp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::view::StreamView;
use crate::{Body, ErrorBody, HttpError};

/// All streams, without their receivers
#[utoipa::path(get, path = "/api/v1/streams", tag = "streams", responses((status = OK, body = [StreamView])))]
pub(super) async fn list(State(control): State<Control>) -> Json<Vec<StreamView>> {
    Json(control.state().streams.iter().map(|stream| StreamView::new(stream, 0)).collect())
}

/// A stream with all of its receivers
#[utoipa::path(
    get, path = "/api/v1/streams/{name}", tag = "streams",
    params(("name" = String, Path, description = "Name of the stream; '/' in it is written %2F")),
    responses((status = OK, body = StreamState), (status = NOT_FOUND, body = ErrorBody))
)]
pub(super) async fn show(
    State(control): State<Control>,
    Path(name): Path<String>,
) -> Result<Json<StreamState>, HttpError> {
    if let Some(stream) = control.state().stream(&name) {
        return Ok(Json(stream.clone()));
    }
    // One that has only just been added is not in a snapshot yet.
    match control.known(&name).is_some() {
        true => Ok(Json(StreamState { name, ..StreamState::default() })),
        false => Err(ControlError::UnknownStream(name).into()),
    }
}

/// Limits of a stream; what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsRequest {
    /// Bytes kept for receivers that lag.
    #[schema(example = "16 MB")]
    ring: Option<String>,
    /// A receiver that loses packets for that long without ever catching up is disconnected.
    #[schema(example = "10 s")]
    hopeless_after: Option<String>,
    /// A source that is silent for that long is announced as away.
    #[schema(example = "2 s")]
    source_timeout: Option<String>,
    /// How many receivers the stream may have.
    max_receivers: Option<usize>,
    /// What it weighs among streams, 1 to 1000: its share of a link and of a worker.
    #[schema(example = 2)]
    weight: Option<u32>,
    /// The part of a worker's time that is kept for it, or "off".
    #[schema(example = "20 %")]
    reserve: Option<String>,
    /// The rate that each of its receivers reserves of a link that admits, or "off".
    #[schema(example = "4 Mbit/s")]
    reserve_rate: Option<String>,
}

/// Limits of a stream as they hold now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Limits {
    /// Bytes kept for receivers that lag.
    #[schema(example = "16 MB")]
    ring: String,
    /// A receiver that loses packets for that long without ever catching up is disconnected.
    #[schema(example = "10 s")]
    hopeless_after: String,
    /// A source that is silent for that long is announced as away.
    #[schema(example = "2 s")]
    source_timeout: String,
    /// How many receivers the stream may have.
    max_receivers: usize,
    /// What it weighs among streams: its share of a link and of a worker.
    #[schema(example = 2)]
    weight: u32,
    /// The part of a worker's time that is kept for it, or "off".
    #[schema(example = "20 %")]
    reserve: String,
    /// The rate that each of its receivers reserves of a link that admits, or "off".
    #[schema(example = "4 Mbit/s")]
    reserve_rate: String,
}

/// Changes limits of a stream, until the configuration file is loaded again
#[utoipa::path(
    patch, path = "/api/v1/streams/{name}", tag = "streams",
    params(("name" = String, Path, description = "Name of the stream")),
    request_body = LimitsRequest,
    responses(
        (status = OK, body = Limits),
        (status = NOT_FOUND, body = ErrorBody),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "Not possible; nothing changed"),
        (
            status = SERVICE_UNAVAILABLE, body = ErrorBody,
            description = "A worker has no room for what the stream is to reserve; nothing changed"
        )
    )
)]
pub(super) async fn change(
    State(control): State<Control>,
    Path(name): Path<String>,
    Body(wish): Body<LimitsRequest>,
) -> Result<Json<Limits>, HttpError> {
    let limits = StreamLimits {
        ring: wish.ring.map(|text| text.parse()).transpose().map_err(HttpError::impossible)?,
        hopeless_after: duration(wish.hopeless_after)?,
        source_timeout: duration(wish.source_timeout)?,
        max_receivers: wish.max_receivers,
        weight: wish.weight.map(Weight::new).transpose().map_err(HttpError::impossible)?,
        reserve: or_none(wish.reserve)?,
        reserve_rate: or_none(wish.reserve_rate)?,
    };
    let config = control.set_limits(&name, limits).await?;
    Ok(Json(Limits::of(&config)))
}

fn duration(text: Option<String>) -> Result<Option<Duration>, HttpError> {
    text.map(|text| parse_duration(&text)).transpose().map_err(HttpError::impossible)
}

fn or_none<T: Text>(text: Option<String>) -> Result<Option<Option<T>>, HttpError> {
    text.map(|text| text_or_none(&text)).transpose().map_err(HttpError::impossible)
}

impl Limits {
    fn of(config: &StreamConfig) -> Self {
        Limits {
            ring: config.ring.to_string(),
            hopeless_after: Written(config.hopeless_after).to_string(),
            source_timeout: Written(config.source_timeout).to_string(),
            max_receivers: config.max_receivers,
            weight: config.weight.get(),
            reserve: or_off(config.reserve),
            reserve_rate: or_off(config.reserve_rate),
        }
    }
}

fn or_off(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "off".to_owned(), |value| value.to_string())
}

/// A session description: of the stream, or for the receiver of one of its RTP sinks
#[utoipa::path(
    get, path = "/api/v1/streams/{name}/sdp", tag = "streams",
    params(
        ("name" = String, Path, description = "Name of the stream"),
        ("sink" = Option<String>, Query, description = "Name of an rtp:// sink, to give its address"),
        ("branch" = Option<String>, Query, description = "Name of a branch of the stream")
    ),
    responses(
        (status = OK, body = String, content_type = "application/sdp"),
        (status = NOT_FOUND, body = ErrorBody),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "No source has come yet")
    )
)]
pub(super) async fn describe(
    State(control): State<Control>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<impl IntoResponse, HttpError> {
    let wanted = outflow_door::selection(query.as_deref().unwrap_or_default())?;
    let described = control.describe(&name, wanted, Encapsulation::Rtp).await?;
    let sink = query.as_deref().and_then(|query| query_value(query, "sink"));
    let to = sink.map(|sink| rtp_address(&control, &name, &sink)).transpose()?;
    Ok(([(header::CONTENT_TYPE, "application/sdp")], description(&name, &described, to)))
}

fn description(name: &str, described: &Described, to: Option<SocketAddr>) -> String {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let ports: Vec<u16> = match to {
        Some(to) => (0..described.format.tracks()).map(|n| to.port().saturating_add(2 * n as u16)).collect(),
        None => Vec::new(),
    };
    let session = sdp::Session {
        name,
        id: 1,
        version: 1,
        origin: any,
        destination: to.map_or(any, |to| to.ip()),
        ttl: None,
        ports: &ports,
        controls: false,
        levels: described.levels,
    };
    sdp::emit(&described.format, &session)
}

/// Where the RTP of a sink goes.
fn rtp_address(control: &Control, stream: &str, sink: &str) -> Result<SocketAddr, HttpError> {
    let state = control.state();
    let mut receivers = state.stream(stream).into_iter().flat_map(|stream| &stream.receivers);
    let found = receivers.find(|r| r.kind == "rtp" && r.name.as_deref() == Some(sink));
    found.and_then(|receiver| receiver.to.parse().ok()).ok_or_else(|| {
        let what = format!("stream '{stream}' has no rtp:// sink named '{sink}': leave sink out, or add one");
        HttpError::new(StatusCode::NOT_FOUND, what)
    })
}

#[cfg(test)]
mod tests {
    use outflow_media::Format;

    use super::*;

    #[test]
    fn a_description_for_a_sink_has_its_address_and_ports() {
        let described = Described { format: Format::Ts, levels: 0 };
        let plain = description("stage", &described, None);
        assert!(plain.contains("s=stage") && plain.contains("m=video 0 RTP/AVP 33"), "{plain}");
        let sink = description("stage", &described, Some(([239, 1, 1, 1], 7000).into()));
        assert!(sink.contains("m=video 7000 RTP/AVP 33") && sink.contains("239.1.1.1"), "{sink}");
    }
}
