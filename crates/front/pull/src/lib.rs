//! What fronts share that pull streams from other servers, cameras or relays, as clients: trying again, and packets
//! handed on.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

use minicbor::{Decode, Encode};
use outflow_client::{Error, Options, Received, Subscription, subscribe};
use outflow_config::{SecretUrl, StreamConfig};
use outflow_control::{Control, PULLED, Part, PublishOptions, Publisher, Push, Reconnect, Upgrade};
use outflow_engine::message::ControlError;
use outflow_engine::system::random_u32;
use outflow_rtp::rtcp;
use tokio::time::{Instant, sleep};

/// The name under which reports are passed on.
const CNAME: &str = "outflow-pull";

/// Where to ask for a stream, and how.
pub type Asked = (SecretUrl, Options);

/// Keeps `stream` published with what its configured source sends when it is asked, until aborted, or until another
/// process does. One that the process before has pulled goes on, if it is still the one that is configured.
pub fn pull(
    control: Control,
    stream: String,
    config: StreamConfig,
    ask: impl Fn(&Control, &StreamConfig) -> Result<Asked, ControlError> + Send + Sync,
) -> impl Future<Output = ()> + Send {
    // Before anything waits: what is not asked for ends.
    let mut kept = control.shared::<Upgrade>().pulled(&control, &stream);
    async move {
        // Secrets are left out.
        let shown = config.source.to_string();
        let mut reconnect = Reconnect::new(random_u32());
        loop {
            let began = Instant::now();
            let turn =
                async { turn(&control, (&stream, &shown), ask(&control, &config)?, kept.take()).await };
            let why = match turn.await {
                Ok(Over::Elsewhere) => return,
                Ok(Over::TakenAway) => "its turn was taken away".to_owned(),
                Err(why) => why.to_string(),
            };
            let wait = reconnect.after(began.elapsed());
            let retry_ms = wait.as_millis() as u64;
            tracing::warn!(stream, source = shown, why, retry_ms, "the source cannot be pulled");
            sleep(wait).await;
        }
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

/// How a turn ended that did not fail.
enum Over {
    /// The relay gave it to another source, or the stream is gone.
    TakenAway,
    /// Another process goes on with it.
    Elsewhere,
}

/// A source that goes on in another process.
#[derive(Encode, Decode)]
#[cbor(map)]
struct SavedPull {
    /// What it is, without secrets.
    #[n(0)]
    source: String,
    #[cbor(n(1), with = "minicbor::bytes")]
    subscription: Vec<u8>,
}

/// Connects, or goes on with what the process before has pulled, and publishes until that ends.
async fn turn(
    control: &Control,
    (stream, shown): (&str, &str),
    (url, options): Asked,
    kept: Option<(Publisher, Part)>,
) -> Result<Over, Failure> {
    let kept = kept.and_then(|kept| resume(control, shown, (&url, &options), kept));
    let (mut subscription, mut publisher) = match kept {
        Some(both) => both,
        None => {
            let subscription = subscribe(url.reveal(), options).await?;
            let format = subscription.format().clone();
            let options = PublishOptions { format, peer: shown.to_owned(), configured: true };
            (subscription, control.publish(stream, options).await?)
        }
    };
    let mut feedback = publisher.take_feedback();
    let mut member = control.shared::<Upgrade>().join(PULLED);
    member.brings_media();
    loop {
        let received = tokio::select! {
            received = subscription.recv() => received?,
            track = feedback.key_frame() => {
                subscription.ask_key_frame(track);
                continue;
            }
            () = member.asked() => {
                subscription.take_received().for_each(|received| {
                    // Its stream's worker counts what has no room.
                    let _ = hand_on(&publisher, received);
                });
                let part = save(control, shown, &mut subscription, &publisher).await;
                if member.give(part).await {
                    subscription.vanish();
                    return Ok(Over::Elsewhere);
                }
                subscription.go_on();
                continue;
            }
        };
        if hand_on(&publisher, received) == Push::Closed {
            return Ok(Over::TakenAway);
        }
    }
}

/// What another process needs to go on; nothing if it has to begin again.
async fn save(
    control: &Control,
    shown: &str,
    subscription: &mut Subscription,
    publisher: &Publisher,
) -> Option<Part> {
    let (subscription, descriptors) = subscription.save(control.epoch()).await?;
    let value = minicbor::to_vec(SavedPull { source: shown.to_owned(), subscription }).ok()?;
    Some(Part { value, descriptors, turn: Some(publisher.id()) })
}

/// Goes on with what the process before has pulled, if that is what is configured here.
fn resume(
    control: &Control,
    shown: &str,
    (url, options): (&SecretUrl, &Options),
    (publisher, part): (Publisher, Part),
) -> Option<(Subscription, Publisher)> {
    let SavedPull { source, subscription } = minicbor::decode(&part.value).ok()?;
    let saved = (&subscription[..], part.descriptors);
    let restore = || Subscription::restore(url.reveal(), options.clone(), saved, control.epoch());
    let subscription = (source == shown).then(restore);
    Some((subscription??, publisher))
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
