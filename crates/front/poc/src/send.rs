//! What a receiver's place at a stream gives, to the other end of a connection.
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use outflow_control::limits::RECONNECT_WAIT_MIN;
use outflow_control::{Control, Playing, PushOptions, Reconnect, Upgrade};
use outflow_engine::message::{CloseReason, ControlError, Delivery, Described, PeerPath};
use outflow_engine::system::random_u32;
use outflow_packet::TrackMask;
use outflow_poc::connection::SendError;
use outflow_poc_socket::media::Form;
use outflow_poc_socket::save::PocEnd;
use outflow_poc_socket::{Address, NetworkPath, PocSocket, look_up, media};
use outflow_relay::{Encapsulation, Selection};
use outflow_rtp::sdp;
use tokio::time::sleep;

use super::peer::{OVERHEAD, PocPeer};
use crate::codes::ENDED;
use crate::handover::{SINKS, TakenSinks, give};
use crate::options::{latency, options};
use crate::saved::{SavedSink, encode};
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
    Delivery::Peer(encapsulation, OVERHEAD, TrackMask::ALL)
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
    let Described { format, levels } = control.describe(stream, wanted.clone(), Encapsulation::Rtp).await?;
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
    /// Begins to send: from then on the worker has the connection, and says to the other end how it ends. Answers what
    /// has the socket. `epoch` is when the workers' time began.
    ///
    /// # Errors
    /// Why it has ended before.
    pub(super) async fn begin(
        self,
        epoch: Instant,
        socket: PocSocket,
        playing: &mut Playing,
    ) -> Result<PocEnd, CloseReason> {
        let Media { form, described, latency } = self;
        let begun = tokio::select! {
            begun = describe(&socket, described) => begun,
            reason = playing.closed() => {
                socket.close(ENDED, &reason.to_string());
                return Err(reason);
            }
        };
        begun.map_err(|_| CloseReason::PeerGone)?;
        let detached = socket.detach(playing.inbox(), playing.id(), epoch);
        let (detached, NetworkPath { udp, peer, own }) = detached.ok_or(CloseReason::PeerGone)?;
        let end = detached.end();
        playing.start_peer(Box::new(PocPeer::new(detached, form, latency)), PeerPath { udp, peer, own });
        Ok(end)
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
/// the stream is gone, or another process does. One that the process before has sent to goes on, if it is still the one
/// that is configured.
pub(super) fn keep_sending(control: Control, push: PushOptions) -> impl Future<Output = ()> + Send {
    // Before anything waits: what is not asked for ends.
    let mut kept = control.shared::<TakenSinks>().of(&push);
    async move {
        let mut reconnect = Reconnect::new(random_u32());
        loop {
            let began = Instant::now();
            let why = match turn(&control, &push, kept.take()).await {
                Ok(Elsewhere) => return,
                // A publisher may come at any time.
                Err(Failure::Relay(ControlError::NoSource(_))) => {
                    sleep(RECONNECT_WAIT_MIN).await;
                    continue;
                }
                Err(
                    Failure::Ended(
                        CloseReason::StreamRemoved | CloseReason::Removed | CloseReason::ShuttingDown,
                    )
                    | Failure::Relay(
                        ControlError::UnknownStream(_)
                        | ControlError::StreamGone
                        | ControlError::ShuttingDown,
                    ),
                ) => return,
                Err(error) => error.to_string(),
            };
            let wait = reconnect.after(began.elapsed());
            let retry_ms = wait.as_millis() as u64;
            tracing::warn!(name = push.name(), why, retry_ms, "a receiver cannot be sent to; trying again");
            sleep(wait).await;
        }
    }
}

/// Another process goes on with it.
struct Elsewhere;

/// Why a turn did not begin, or has ended.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Ended(CloseReason),
    #[error(transparent)]
    Relay(#[from] ControlError),
    #[error(transparent)]
    Open(#[from] outflow_poc_socket::OpenError),
    #[error("{0}")]
    Place(String),
}

/// A receiver that was connected to, and is sent to.
pub(super) struct Sink {
    pub(super) playing: Playing,
    /// What has the socket of its connection.
    pub(super) end: PocEnd,
}

/// Connects, or goes on with a connection that there is, and sends until that ends, or another process does.
async fn turn(control: &Control, push: &PushOptions, kept: Option<Sink>) -> Result<Elsewhere, Failure> {
    let Sink { mut playing, end } = match kept {
        Some(sink) => sink,
        None => connect(control, push).await?,
    };
    let mut member = control.shared::<Upgrade>().join(SINKS);
    // What the other end acknowledges comes here, and media waits for that.
    member.brings_media();
    loop {
        tokio::select! {
            reason = playing.closed() => return Err(Failure::Ended(reason)),
            () = member.asked() => {
                let saved = |end| encode(&SavedSink {
                    name: push.name().to_owned(),
                    stream: push.stream.clone(),
                    to: push.receiver.address.clone(),
                    end,
                });
                if give(&end, control, &mut member, saved).await {
                    return Ok(Elsewhere);
                }
            }
        }
    }
}

/// Connects, and begins to send.
async fn connect(control: &Control, push: &PushOptions) -> Result<Sink, Failure> {
    let config = control.config();
    let url = push.to.address::<PocUrl>().ok_or(Failure::Ended(CloseReason::Removed))?;
    let form = Form::Rtp;
    let described = description(control, &push.stream, &push.receiver.selection, form).await?;
    let poc = config.section::<Poc>();
    let options = options(&poc, Some(url))?;
    let wrong = |error: &dyn std::fmt::Display| Failure::Place(format!("{url}: {error}"));
    let address = Address { place: url.place.clone(), resource: url.resource.reveal().to_owned() };
    let place = look_up(&address).await.map_err(|error| wrong(&error))?;
    let request = media::to_send(&address.resource, form, latency(&poc, url));
    let socket = PocSocket::connect(place, request, &options).await?;
    let mut playing = control.play(&push.stream, push.receiver.clone(), delivery(form)).await?;
    let media = Media { form, described, latency: latency(&poc, url) };
    let end = media.begin(control.epoch(), socket, &mut playing).await.map_err(Failure::Ended)?;
    Ok(Sink { playing, end })
}

#[cfg(test)]
mod tests;
