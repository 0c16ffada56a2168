//! A stream pulled from a server: a camera or another relay, by RTSP or by the partial-order transport.

use std::time::Duration;

use outflow_client::{Credentials, Error, Lower, Options, Received, subscribe};
use outflow_config::{RtspSource, SourceUrl, StreamConfig, Transport};
use outflow_media::rtcp;
use tokio::time::{Instant, sleep};

use crate::control::{Control, ControlError, PublishOptions, Publisher, Push};
use crate::limits::{PULL_GOOD_AFTER, PULL_WAIT_MAX, PULL_WAIT_MIN};
use crate::system::random_u32;

/// The name under which reports are passed on.
const CNAME: &str = "outflow-pull";

/// Keeps `stream` published with what its configured source sends when it is asked, until aborted.
pub(crate) async fn pull(control: Control, stream: String, config: StreamConfig) {
    // Secrets are left out.
    let shown = config.source.to_string();
    let mut backoff = Backoff::new(random_u32());
    loop {
        let began = Instant::now();
        let why = match turn(&control, &stream, &config).await {
            Ok(()) => "its turn was taken away".to_owned(),
            Err(why) => why.to_string(),
        };
        if began.elapsed() >= PULL_GOOD_AFTER {
            backoff.reset();
        }
        let wait = backoff.next();
        let retry_ms = wait.as_millis() as u64;
        tracing::warn!(stream, source = shown, why, retry_ms, "the source cannot be pulled");
        sleep(wait).await;
    }
}

/// Why a turn ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Source(#[from] Error),
    #[error(transparent)]
    Relay(#[from] ControlError),
}

/// Connects, and publishes until that ends.
async fn turn(control: &Control, stream: &str, config: &StreamConfig) -> Result<(), Failure> {
    let (url, options) = match &config.source {
        SourceUrl::Rtsp(source) => (source.url.clone(), options(source, config.transport)),
        SourceUrl::Poc(url) => {
            let poc = &control.config().poc;
            let options = Options {
                poc: Some(crate::poc::options(poc, Some(url))?),
                poc_latency: Some(url.latency.unwrap_or(poc.latency)),
                seed: u64::from(random_u32()),
                ..Options::default()
            };
            (format!("poc://{}{}", url.place, url.resource), options)
        }
        _ => return Ok(()),
    };
    let mut subscription = subscribe(&url, options).await?;
    let format = subscription.format().clone();
    let options = PublishOptions { format, peer: config.source.to_string(), configured: true };
    let publisher = control.publish(stream, options).await?;
    loop {
        let received = subscription.recv().await?;
        if hand_on(&publisher, received) == Push::Closed {
            return Ok(());
        }
    }
}

/// Publishes what another server has sent.
pub(crate) fn hand_on(publisher: &Publisher, received: Received) -> Push {
    match received {
        Received::Packet(packet) => publisher.try_send(packet.track, packet.bytes),
        Received::SenderReport { track, report, .. } => {
            publisher.rtcp(track, rtcp::sender_report(&report, CNAME).into())
        }
        // Whoever asks for other levels than all looks at these before.
        Received::Levels { .. } => Push::Taken,
    }
}

fn options(source: &RtspSource, transport: Transport) -> Options {
    let password = source.password.as_ref().map(|password| password.reveal().to_owned());
    let credentials = source.user.is_some() || password.is_some();
    Options {
        transport: match transport {
            Transport::Tcp => Lower::Tcp,
            Transport::Udp => Lower::Udp,
        },
        credentials: credentials.then(|| Credentials {
            user: source.user.clone().unwrap_or_default(),
            password: password.unwrap_or_default(),
        }),
        seed: u64::from(random_u32()),
        ..Options::default()
    }
}

/// How long to wait before trying again: twice as long each time, and never quite the same, so
/// that many relays do not come back to a server all at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    failures: u32,
    random: u32,
}

impl Backoff {
    pub(crate) fn new(seed: u32) -> Self {
        Backoff { failures: 0, random: seed }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = PULL_WAIT_MIN.saturating_mul(1 << self.failures.min(16)).min(PULL_WAIT_MAX);
        self.failures = self.failures.saturating_add(1);
        // Between all of it and half; the constants are those of Numerical Recipes.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (wait - wait / 2 * (self.random >> 16) / (1 << 16)).max(PULL_WAIT_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_up_to_its_limit_and_begins_anew_after_a_success() {
        let mut backoff = Backoff::new(7);
        let waits: Vec<_> = (0..40).map(|_| backoff.next()).collect();
        assert_eq!(waits[0], PULL_WAIT_MIN);
        assert!(waits.iter().all(|wait| (PULL_WAIT_MIN..=PULL_WAIT_MAX).contains(wait)));
        assert!(waits[10..].iter().all(|wait| *wait >= PULL_WAIT_MAX / 2));
        assert!(waits[10..].windows(2).any(|pair| pair[0] != pair[1]), "never quite the same");
        backoff.reset();
        assert_eq!(backoff.next(), PULL_WAIT_MIN);
    }

    #[test]
    fn the_same_seed_waits_the_same() {
        let waits = |seed| {
            let mut backoff = Backoff::new(seed);
            (0..9).map(|_| backoff.next()).collect::<Vec<_>>()
        };
        assert_eq!(waits(3), waits(3));
        assert_ne!(waits(3), waits(4));
    }
}
