//! The built-in source: a short clip, played endlessly.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use minicbor::{Decode, Encode};
use outflow_config::{Address, Brings, Invalid, Protocol, Scheme, StreamConfig};
use outflow_control::{Control, Front, PULLED, Part, PublishOptions, Publisher, Push, Task, Upgrade};
use outflow_engine::message::ControlError;
use outflow_media::Format;
use outflow_ts::TsLoop;
use tokio::time::{Duration, Instant, sleep_until};

/// The clip: H.264 and AAC, of the project's own making (`scripts/make-demo-clip`).
static CLIP: &[u8] = include_bytes!("../../../../assets/live.ts");

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
        // Before anything waits: what is not asked for ends.
        let kept = control.shared::<Upgrade>().pulled(&control, &stream);
        Box::pin(async move {
            if let Err(error) = play_clip(control, &stream, kept).await {
                tracing::error!(stream, %error, "the source cannot be used");
            }
        })
    }
}

/// The clip as another process goes on with it.
#[derive(Debug, Clone, Copy, Encode, Decode)]
#[cbor(map)]
struct SavedClip {
    /// Bytes of it: one of another version has another length.
    #[n(0)]
    bytes: usize,
    /// Nanoseconds from the relay's epoch to its beginning.
    #[n(1)]
    began: u64,
    /// Where it is (see [`TsLoop::place`]).
    #[n(2)]
    rounds: u64,
    #[n(3)]
    at: usize,
}

/// The clip as it plays.
struct Player {
    clip: TsLoop,
    began: Instant,
}

impl Player {
    /// One that begins now.
    fn new() -> Result<Self, ControlError> {
        let clip = TsLoop::new(Bytes::from_static(CLIP))
            .map_err(|e| ControlError::Unsupported(format!("the built-in clip: {e}")))?;
        Ok(Player { clip, began: Instant::now() })
    }

    /// What another process needs to go on at this place.
    fn save(&self, (rounds, at): (u64, usize), epoch: Instant) -> SavedClip {
        let began = self.began.saturating_duration_since(epoch).as_nanos();
        SavedClip { bytes: CLIP.len(), began: u64::try_from(began).unwrap_or(u64::MAX), rounds, at }
    }

    /// Goes on where one was that had this clip, too; begins now otherwise.
    fn go_on(&mut self, saved: SavedClip, epoch: Instant) {
        let SavedClip { bytes, began, rounds, at } = saved;
        let began = epoch.checked_add(Duration::from_nanos(began));
        if bytes == CLIP.len()
            && let Some(began) = began
            && self.clip.go_on_at((rounds, at))
        {
            self.began = began;
        }
    }
}

/// Publishes the clip to `stream` until the stream is removed, or until another process goes on with it; goes on with
/// what the process before has played.
///
/// # Errors
/// The stream does not take it.
async fn play_clip(
    control: Control,
    stream: &str,
    kept: Option<(Publisher, Part)>,
) -> Result<(), ControlError> {
    let (mut player, epoch) = (Player::new()?, Instant::from_std(control.epoch()));
    let publisher = match kept {
        Some((publisher, part)) => {
            // What it cannot read begins again.
            minicbor::decode(&part.value).into_iter().for_each(|saved| player.go_on(saved, epoch));
            publisher
        }
        None => {
            let peer = "the built-in clip".to_owned();
            let options = PublishOptions { format: Format::Ts, peer, configured: true };
            control.publish(stream, options).await?
        }
    };
    let mut member = control.shared::<Upgrade>().join(PULLED);
    member.brings_media();
    let mut buffer = BytesMut::new();
    loop {
        let place = player.clip.place();
        buffer.reserve(7 * 188);
        let due = player.began + player.clip.next(&mut buffer);
        while due > Instant::now() + EARLY {
            tokio::select! {
                () = sleep_until(due) => {}
                () = member.asked() => {
                    // The datagram that waits is the other process's.
                    let (value, turn) = (minicbor::to_vec(player.save(place, epoch)), Some(publisher.id()));
                    let part = value.ok().map(|value| Part { value, descriptors: Vec::new(), turn });
                    if member.give(part).await {
                        return Ok(());
                    }
                }
            }
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
    fn it_goes_on_where_it_was_by_the_same_clock() {
        let epoch = Instant::now();
        let (mut first, mut other) = (Player::new().expect("it plays"), Player::new().expect("it plays"));
        let mut bytes = [BytesMut::new(), BytesMut::new()];
        for _ in 0..5000 {
            bytes[0].clear();
            first.clip.next(&mut bytes[0]);
        }
        bytes[0].clear();
        other.go_on(first.save(first.clip.place(), epoch), epoch);
        assert_eq!(other.began, first.began);
        let mut next = |player: &mut Player, at: usize| player.clip.next(&mut bytes[at]);
        assert!((0..3000).all(|_| next(&mut first, 0) == next(&mut other, 1)));
        assert_eq!(bytes[0], bytes[1]);

        let saved = SavedClip { bytes: 1, ..first.save(first.clip.place(), epoch) };
        let began = other.began;
        let mut other = Player::new().expect("it plays");
        other.go_on(saved, epoch);
        assert_eq!(other.clip.place(), (0, 0), "another clip begins");
        assert!(other.began > began);
    }

    #[test]
    fn there_is_one_clip() {
        let known = Protocols::from_iter([Demo.protocol()]);
        let read = |text: &str| SourceUrl::parse(text, known.vocabulary());
        assert_eq!(read("demo://").map(|source| source.to_string()), Ok("demo://".to_owned()));
        assert!(read("demo://x").is_err_and(|error| error.to_string().contains("takes no address")));
        assert!(read("demo").is_err());
    }
}
