//! What a receiver's place at a stream gives, to the other end of a connection.
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use outflow_control::limits::RECONNECT_WAIT_MIN;
use outflow_control::{Control, Playing, PushOptions, Reconnect};
use outflow_engine::message::{CloseReason, ControlError, Delivery, Described, PeerPath};
use outflow_engine::system::random_u32;
use outflow_poc::connection::SendError;
use outflow_poc_socket::media::Form;
use outflow_poc_socket::{Address, NetworkPath, PocSocket, look_up, media};
use outflow_relay::{Encapsulation, Selection};
use outflow_rtp::sdp;
use tokio::time::sleep;

use super::peer::{OVERHEAD, PocPeer};
use crate::codes::ENDED;
use crate::options::{latency, options};
use crate::settings::{Poc, PocUrl};

/// How a stream goes to a receiver.
pub(super) struct Media {
    pub(super) form: Form,
    /// What is said of it first.
    pub(super) described: Option<Bytes>,
    /// For how long packets are of use.
    pub(super) latency: Duration,
}

/// By a state machine of its own, in this form.
pub(super) fn delivery(form: Form) -> Delivery {
    let encapsulation = match form {
        Form::Ts => Encapsulation::Ts,
        Form::Rtp => Encapsulation::Rtp,
    };
    Delivery::Peer(encapsulation, OVERHEAD)
}

/// What is said of a stream before its packets.
pub(super) async fn description(
    control: &Control,
    stream: &str,
    wanted: &Selection,
    form: Form,
) -> Result<Option<Bytes>, ControlError> {
    if form == Form::Ts {
        return Ok(None);
    }
    let Described { format, levels } = control.describe(stream, wanted.clone()).await?;
    let nowhere = IpAddr::from([0; 4]);
    let session = sdp::Session {
        name: stream,
        id: 0,
        version: 0,
        origin: nowhere,
        destination: nowhere,
        ttl: None,
        ports: &[],
        controls: false,
        levels,
    };
    Ok(Some(sdp::emit(&format, &session).into()))
}

impl Media {
    /// Sends until one of both ends it. Answers why the relay did, if it did. `epoch` is when the workers' time
    /// began.
    pub(super) async fn send(
        self,
        epoch: Instant,
        socket: PocSocket,
        mut playing: Playing,
    ) -> Option<CloseReason> {
        let Media { form, described, latency } = self;
        let begun = tokio::select! {
            begun = describe(&socket, described) => begun,
            reason = playing.closed() => {
                socket.close(ENDED, &reason.to_string());
                return Some(reason);
            }
        };
        begun.ok()?;
        // From now on the worker has it, and says to the other end how it ends.
        let (detached, NetworkPath { udp, peer, own }) =
            socket.detach(playing.inbox(), playing.id(), epoch)?;
        playing.start_peer(Box::new(PocPeer::new(detached, form, latency)), PeerPath { udp, peer, own });
        Some(playing.closed().await).filter(|reason| *reason != CloseReason::PeerGone)
    }
}

/// Says what is to be said before packets.
async fn describe(socket: &PocSocket, described: Option<Bytes>) -> Result<(), SendError> {
    match described {
        Some(text) => socket.send(text).await.map(drop),
        None => Ok(()),
    }
}

/// Keeps sending a stream to a configured receiver, whatever becomes of the connection and of the source, until
/// the stream is gone.
pub(super) async fn keep_sending(control: Control, push: PushOptions) {
    let mut reconnect = Reconnect::new(random_u32());
    loop {
        let began = Instant::now();
        let why = match turn(&control, &push).await {
            // A publisher may come at any time.
            Err(Failure::Relay(ControlError::NoSource(_))) => {
                sleep(RECONNECT_WAIT_MIN).await;
                continue;
            }
            Ok(Some(CloseReason::StreamRemoved | CloseReason::Removed | CloseReason::ShuttingDown))
            | Err(Failure::Relay(
                ControlError::UnknownStream(_) | ControlError::StreamGone | ControlError::ShuttingDown,
            )) => return,
            Ok(Some(reason)) => reason.to_string(),
            Ok(None) => "the other end closed the connection".to_owned(),
            Err(error) => error.to_string(),
        };
        let wait = reconnect.after(began.elapsed());
        let retry_ms = wait.as_millis() as u64;
        tracing::warn!(name = push.name(), why, retry_ms, "a receiver cannot be sent to; trying again");
        sleep(wait).await;
    }
}

/// Why a turn did not begin.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Relay(#[from] ControlError),
    #[error(transparent)]
    Open(#[from] outflow_poc_socket::OpenError),
    #[error("{0}")]
    Place(String),
}

/// Connects, and sends until that ends.
async fn turn(control: &Control, push: &PushOptions) -> Result<Option<CloseReason>, Failure> {
    let config = control.config();
    let Some(url) = push.to.address::<PocUrl>() else {
        return Ok(Some(CloseReason::Removed));
    };
    let form = Form::Rtp;
    let described = description(control, &push.stream, &push.receiver.selection, form).await?;
    let poc = config.section::<Poc>();
    let options = options(&poc, Some(url))?;
    let wrong = |error: &dyn std::fmt::Display| Failure::Place(format!("{url}: {error}"));
    let address = Address { place: url.place.clone(), resource: url.resource.reveal().to_owned() };
    let place = look_up(&address).await.map_err(|error| wrong(&error))?;
    let request = media::to_send(&address.resource, form, latency(&poc, url));
    let socket = PocSocket::connect(place, request, &options).await?;
    let playing = control.play(&push.stream, push.receiver.clone(), delivery(form)).await?;
    let latency = latency(&poc, url);
    Ok(Media { form, described, latency }.send(control.epoch(), socket, playing).await)
}

#[cfg(test)]
mod tests;
