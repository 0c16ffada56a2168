//! Which status says what of the relay's and the door's refusals.

use outflow_door::Refused;
use outflow_engine::message::ControlError;
use outflow_rtsp::server::Reply;
use outflow_rtsp::{StatusCode, headers};

/// The answer to a request that is refused.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) Reply);

impl Refusal {
    /// `why` is for people.
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Refusal(Reply::error(status, why))
    }
}

impl From<ControlError> for Refusal {
    fn from(error: ControlError) -> Self {
        let status = match &error {
            ControlError::Refused(refused) => return Refusal::from(refused.clone()),
            ControlError::UnknownStream(_) | ControlError::StreamGone => StatusCode::NotFound,
            ControlError::NotPushed(..) | ControlError::Busy(..) => StatusCode::Forbidden,
            ControlError::NoSource(_)
            | ControlError::Limit { .. }
            | ControlError::HandedOver
            | ControlError::ShuttingDown => StatusCode::ServiceUnavailable,
            ControlError::NoRoom(_) => StatusCode::NotEnoughBandwidth,
            ControlError::UnknownReceiver(_) => StatusCode::SessionNotFound,
            ControlError::Unsupported(_) => StatusCode::UnsupportedMediaType,
            _ => StatusCode::InternalServerError,
        };
        Refusal::new(status, error.to_string())
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::BadName(_) => StatusCode::NotFound,
            Refused::BadSelection(_) => StatusCode::UnsupportedMediaType,
            Refused::TokenMissing | Refused::TokenWrong | Refused::Revoked => StatusCode::Unauthorized,
            Refused::NotLocal | Refused::NotGiven { .. } => StatusCode::Forbidden,
            Refused::TooOften { .. }
            | Refused::Full { .. }
            | Refused::Draining
            | Refused::Overloaded
            | Refused::NotAnswered => StatusCode::ServiceUnavailable,
        };
        let reply = Reply::error(status, refused.to_string());
        Refusal(match refused.retry_after_s() {
            Some(wait_s) => reply.with(headers::RETRY_AFTER, wait_s.to_string()),
            None => reply,
        })
    }
}
