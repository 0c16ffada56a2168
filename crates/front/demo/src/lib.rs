//! The built-in source: a short clip, played endlessly.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use outflow_config::{Address, Brings, Invalid, Protocol, Scheme, StreamConfig};
use outflow_control::{Control, Front, PublishOptions, Push, Task};
use outflow_engine::message::ControlError;
use outflow_media::Format;
use outflow_ts::TsLoop;
use tokio::time::{Duration, Instant, sleep_until};

/// The clip: H.264 and AAC, of the project's own making (`scripts/make-demo-clip`).
static CLIP: &[u8] = include_bytes!("../../../../assets/demo.ts");

/// How far ahead of its time a packet may go, so that packets go in small bunches as an encoder's do.
const EARLY: Duration = Duration::from_millis(2);

/// The built-in clip as a source: `demo://`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Demo)
}

const NAME: &str = "demo";

const SOURCES: &[Scheme] =
    &[Scheme { name: NAME, prefixes: &[NAME], example: "demo://", parse: |text| Ok(Arc::new(clip(text)?)) }];

/// The address of the clip: there is one.
#[derive(Debug, PartialEq, Eq)]
struct Clip;

fn clip(text: &str) -> Result<Clip, Invalid> {
    if text.eq_ignore_ascii_case("demo://") {
        return Ok(Clip);
    }
    Err(Invalid::new("the built-in clip takes no address", "write \"demo://\""))
}

impl Address for Clip {
    fn brings(&self) -> Brings {
        Brings::Ts
    }
}

impl fmt::Display for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("demo://")
    }
}

#[derive(Debug)]
struct Demo;

impl Front for Demo {
    fn protocol(&self) -> Protocol {
        Protocol { sources: SOURCES, ..Protocol::default() }
    }

    fn pull(&self, control: Control, stream: String, _: StreamConfig) -> Task<()> {
        Box::pin(async move {
            if let Err(error) = play_clip(control, &stream).await {
                tracing::error!(stream, %error, "the source cannot be used");
            }
        })
    }
}

/// Publishes the clip to `stream` until the stream is removed.
///
/// # Errors
/// The stream does not take it.
async fn play_clip(control: Control, stream: &str) -> Result<(), ControlError> {
    let clip = Bytes::from_static(CLIP);
    let mut player =
        TsLoop::new(clip).map_err(|e| ControlError::Unsupported(format!("the built-in clip: {e}")))?;
    let options =
        PublishOptions { format: Format::Ts, peer: "the built-in clip".to_owned(), configured: true };
    let publisher = control.publish(stream, options).await?;
    let start = Instant::now();
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(7 * 188);
        let due = start + player.next(&mut buffer);
        if due > Instant::now() + EARLY {
            sleep_until(due).await;
        }
        if publisher.try_send(0, buffer.split()) == Push::Closed {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_config::{Protocols, SourceUrl};

    use super::*;

    #[test]
    fn there_is_one_clip() {
        let known = Protocols::from_iter([Demo.protocol()]);
        let read = |text: &str| SourceUrl::parse(text, known.vocabulary());
        assert_eq!(read("demo://").map(|source| source.to_string()), Ok("demo://".to_owned()));
        assert!(read("demo://x").is_err_and(|error| error.to_string().contains("takes no address")));
        assert!(read("demo").is_err());
    }
}
