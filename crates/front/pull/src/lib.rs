//! What fronts share that pull streams from other servers, cameras or relays, as clients: trying again, and packets
//! handed on.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

use outflow_client::{Error, Options, Received, subscribe};
use outflow_config::{SecretUrl, StreamConfig};
use outflow_control::{Control, PublishOptions, Publisher, Push, Reconnect};
use outflow_engine::message::ControlError;
use outflow_engine::system::random_u32;
use outflow_rtp::rtcp;
use tokio::time::{Instant, sleep};

/// The name under which reports are passed on.
const CNAME: &str = "outflow-pull";

/// Where to ask for a stream, and how.
pub type Asked = (SecretUrl, Options);

/// Keeps `stream` published with what its configured source sends when it is asked, until aborted.
pub async fn pull(
    control: Control,
    stream: String,
    config: StreamConfig,
    ask: impl Fn(&Control, &StreamConfig) -> Result<Asked, ControlError>,
) {
    // Secrets are left out.
    let shown = config.source.to_string();
    let mut reconnect = Reconnect::new(random_u32());
    loop {
        let began = Instant::now();
        let turn = async { turn(&control, &stream, &shown, ask(&control, &config)?).await };
        let why = match turn.await {
            Ok(()) => "its turn was taken away".to_owned(),
            Err(why) => why.to_string(),
        };
        let wait = reconnect.after(began.elapsed());
        let retry_ms = wait.as_millis() as u64;
        tracing::warn!(stream, source = shown, why, retry_ms, "the source cannot be pulled");
        sleep(wait).await;
    }
}

/// Why a turn ended.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The other server, or the way there.
    #[error(transparent)]
    Source(#[from] Error),
    /// This relay.
    #[error(transparent)]
    Relay(#[from] ControlError),
}

/// Connects, and publishes until that ends.
async fn turn(control: &Control, stream: &str, shown: &str, (url, options): Asked) -> Result<(), Failure> {
    let mut subscription = subscribe(url.reveal(), options).await?;
    let format = subscription.format().clone();
    let options = PublishOptions { format, peer: shown.to_owned(), configured: true };
    let mut publisher = control.publish(stream, options).await?;
    let mut feedback = publisher.take_feedback();
    loop {
        let received = tokio::select! {
            received = subscription.recv() => received?,
            track = feedback.key_frame() => {
                subscription.ask_key_frame(track);
                continue;
            }
        };
        if hand_on(&publisher, received) == Push::Closed {
            return Ok(());
        }
    }
}

/// Publishes what another server has sent.
pub fn hand_on(publisher: &Publisher, received: Received) -> Push {
    match received {
        Received::Packet(packet) => publisher.try_send(packet.track, packet.bytes),
        Received::SenderReport { track, report, .. } => {
            publisher.rtcp(track, rtcp::sender_report(&report, CNAME).into())
        }
        // Those that ask for other levels than all look at these before.
        Received::Levels { .. } => Push::Taken,
    }
}
