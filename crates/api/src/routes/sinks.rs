//! Receivers that are sent to without asking.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outflow_config::{SinkUrl, Weight};
use outflow_control::{Control, PushOptions};
use outflow_engine::message::{ControlError, LinkChoice, Receiver, read_view};
use outflow_packet::Level;
use outflow_relay::{LinkClaim, Selection, Timing};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::receivers::PriorityName;
use crate::{Body, ErrorBody, HttpError};

/// A receiver to send to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SinkRequest {
    /// Where it is: an address of a scheme that sinks have, with its parameters.
    #[schema(example = "udp://239.2.2.2:6000?ttl=4&interface=eth1")]
    to: String,
    /// What it is called; its address if left out.
    #[schema(example = "wall")]
    name: Option<String>,
    /// The branch of the stream that it gets; the stream as it comes in if left out.
    branch: Option<String>,
    /// What is to be seen of images: a part, a size to fit into, no colour.
    #[schema(example = "part=640x360+16+0&size=320x180&gray=1")]
    view: Option<String>,
    /// The quality, 1 is the best and what is left out.
    #[schema(example = 3)]
    level: Option<u8>,
    /// Its class; that of the stream if left out.
    priority: Option<PriorityName>,
    /// How long a packet may wait for company; as the stream says if left out.
    #[schema(example = "20 ms")]
    latency_budget: Option<String>,
    /// The rate at which bursts are spread out, or "off"; as the stream says if left out.
    #[schema(example = "50 Mbit/s")]
    pace: Option<String>,
    /// The link that it is behind, or "off" for none; that of the stream if left out.
    #[schema(example = "uplink")]
    link: Option<String>,
    /// What it weighs there among the receivers of its stream, 1 to 1000; 1 if left out.
    #[schema(example = 2)]
    weight: Option<u32>,
    /// The rate that it reserves there; as its stream says if left out.
    #[schema(example = "2 Mbit/s")]
    reserve_rate: Option<String>,
}

impl SinkRequest {
    /// When its packets go.
    fn timing(&self, of_stream: Timing) -> Result<Timing, HttpError> {
        let mut timing = of_stream;
        if let Some(budget) = &self.latency_budget {
            timing.latency_budget = outflow_config::latency_budget(budget).map_err(HttpError::impossible)?;
        }
        if let Some(pace) = &self.pace {
            timing.pace_bps = outflow_config::pace(pace).map_err(HttpError::impossible)?.map(|rate| rate.0);
        }
        Ok(timing)
    }

    /// What it has of its link.
    fn claim(&self) -> Result<LinkClaim, HttpError> {
        let weight = self.weight.map(Weight::new).transpose().map_err(HttpError::impossible)?;
        let reserve = self.reserve_rate.as_deref().map(outflow_config::reserve_rate).transpose();
        let reserve = reserve.map_err(HttpError::impossible)?.flatten();
        Ok(LinkClaim {
            weight: weight.unwrap_or_default().get(),
            reserve_bps: reserve.map_or(0, |rate| rate.0),
        })
    }
}

/// A receiver that is sent to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SinkAdded {
    /// Its number among the receivers. It changes when the stream's format does; another relay has none until
    /// there is a connection.
    id: Option<u64>,
    /// What it is called.
    name: String,
    /// Where it is.
    to: String,
}

/// Begins to send a stream to a receiver, until it is removed or the relay ends
#[utoipa::path(
    post, path = "/api/v1/streams/{name}/sinks", tag = "sinks",
    params(("name" = String, Path, description = "Name of the stream")),
    request_body = SinkRequest,
    responses(
        (status = CREATED, body = SinkAdded),
        (status = NOT_FOUND, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "A sink has that name or address already"),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "A limit is reached")
    )
)]
pub(super) async fn add(
    State(control): State<Control>,
    Path(stream): Path<String>,
    Body(wish): Body<SinkRequest>,
) -> Result<(StatusCode, Json<SinkAdded>), HttpError> {
    let to = SinkUrl::parse(&wish.to, control.protocols().vocabulary()).map_err(HttpError::impossible)?;
    check_target(&control, &stream, &to)?;
    let timing = Some(wish.timing(control.stream_timing(&stream))?);
    let claim = wish.claim()?;
    let (name, address) = (wish.name.unwrap_or_else(|| to.to_string()), to.to_string());
    let class = wish.priority.map(Into::into);
    let view = read_view(wish.view.as_deref().unwrap_or_default())?;
    let level = wish.level.map(Level::try_from).transpose().map_err(ControlError::from)?.unwrap_or_default();
    let selection = Selection { branch: wish.branch, view, level };
    let link = wish.link.or_else(|| control.stream_link(&stream)).filter(|link| link != "off");
    link.as_deref().map(|link| control.knows_link(link)).transpose()?;
    let mut options = PushOptions::new(&stream, to, name.clone(), selection);
    options.receiver = Receiver { class, timing, link: LinkChoice::of(link), claim, ..options.receiver };
    let id = control.add_push(options).await?;
    Ok((StatusCode::CREATED, Json(SinkAdded { id, name, to: address })))
}

/// A stream that is sent to where it comes from would circle.
fn check_target(control: &Control, stream: &str, to: &SinkUrl) -> Result<(), HttpError> {
    let config = control.config();
    if config.streams.get(stream).is_some_and(|stream| stream.source.circles_to(to)) {
        let place = to.place();
        let what = format!("stream '{stream}' comes from {place}: it would circle; choose another address");
        return Err(HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, what));
    }
    Ok(())
}

/// Ends a receiver that was configured or added
#[utoipa::path(
    delete, path = "/api/v1/streams/{name}/sinks/{sink}", tag = "sinks",
    params(
        ("name" = String, Path, description = "Name of the stream"),
        ("sink" = String, Path, description = "Name of the sink, percent-encoded")
    ),
    responses((status = NO_CONTENT), (status = NOT_FOUND, body = ErrorBody))
)]
pub(super) async fn remove(
    State(control): State<Control>,
    Path((stream, sink)): Path<(String, String)>,
) -> Result<StatusCode, HttpError> {
    control.remove_push(&stream, &sink)?;
    Ok(StatusCode::NO_CONTENT)
}
