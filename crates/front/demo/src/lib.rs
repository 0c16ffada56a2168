//! The built-in source: a short clip, played endlessly.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use outflow_config::StreamConfig;
use outflow_control::{Control, Front, PublishOptions, Push, Task};
use outflow_engine::message::ControlError;
use outflow_media::Format;
use outflow_media::ts::TsLoop;
use tokio::time::{Duration, Instant, sleep_until};

/// The clip: H.264 and AAC, of the project's own making (`scripts/make-demo-clip`).
static CLIP: &[u8] = include_bytes!("../../../../assets/demo.ts");

/// How far ahead of its time a packet may go, so that packets go in small bunches as an encoder's do.
const EARLY: Duration = Duration::from_millis(2);

/// The built-in clip as a source: `demo://`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Demo)
}

#[derive(Debug)]
struct Demo;

impl Front for Demo {
    fn source_schemes(&self) -> &'static [&'static str] {
        &["demo"]
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
