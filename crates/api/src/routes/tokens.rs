//! Tokens that have names.

use axum::Json;
use axum::extract::State;
use outflow_config::AccessToken;
use outflow_control::{Control, sessions_of_tokens};
use serde::Serialize;
use utoipa::ToSchema;

/// A token of `[[access.tokens]]`: what it is good for, and not what it is known by.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenState {
    /// What it is called.
    name: String,
    /// What it is good for: "publish", "play", "control", "relay".
    rights: Vec<String>,
    /// With which streams: names, or how they begin.
    streams: Vec<String>,
    /// From which addresses; from all of them if there are none.
    from: Vec<String>,
    /// When it is good no longer (RFC 3339).
    expires: Option<String>,
    /// Receivers and publishers that it has let in and that are there now.
    sessions: u64,
}

impl TokenState {
    fn of(token: &AccessToken, sessions: u64) -> Self {
        TokenState {
            name: token.name.clone(),
            rights: token.rights.iter().map(ToString::to_string).collect(),
            streams: token.streams.iter().map(ToString::to_string).collect(),
            from: token.from.iter().map(ToString::to_string).collect(),
            expires: token.expires.map(|expires| expires.to_string()),
            sessions,
        }
    }
}

/// The tokens with names, and how many sessions use each
#[utoipa::path(
    get, path = "/api/v1/tokens", tag = "relay",
    responses((status = OK, body = [TokenState]))
)]
pub(super) async fn list(State(control): State<Control>) -> Json<Vec<TokenState>> {
    let (config, sessions) = (control.config(), sessions_of_tokens(&control));
    let state = |token: &AccessToken| TokenState::of(token, sessions.get(&token.name).copied().unwrap_or(0));
    Json(config.access.tokens.iter().map(state).collect())
}
