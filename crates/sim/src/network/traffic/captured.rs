//! Traffic that was captured, sent again as it came.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use outflow_media::{Kind, Time};
use serde::{Deserialize, Deserializer};

use super::source::{Emission, Source};
use crate::capture::{Capture, CapturedPacket};
use crate::network::units::named;

/// A capture (see [`crate::capture`]). Each track of each of its flows is a flow.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturedModel {
    /// The file, relative to where the command runs.
    pub file: PathBuf,
    /// The session description of what was captured, if there is one.
    pub sdp: Option<PathBuf>,
    /// Only some of it.
    #[serde(default)]
    pub only: Only,
    /// What is in the file, once it was read.
    #[serde(skip)]
    pub(in crate::network) tracks: Arc<Vec<Vec<CapturedPacket>>>,
}

/// What of a capture is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// All of it.
    #[default]
    All,
    /// Tracks of which it is known what their packets mean.
    Media,
    /// The others.
    Data,
}

impl<'de> Deserialize<'de> for Only {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        named(given, &[Only::All, Only::Media, Only::Data], |one| match one {
            Only::All => "all",
            Only::Media => "media",
            Only::Data => "data",
        })
    }
}

impl CapturedModel {
    /// Takes its tracks out of what is in its file.
    pub(in crate::network) fn take(&mut self, capture: &Capture) {
        let mut tracks: Vec<Vec<CapturedPacket>> = Vec::new();
        for flow in &capture.flows {
            let most = flow.packets.iter().map(|packet| packet.tag.track).max().unwrap_or(0);
            for track in 0..=most {
                let of_track = flow.packets.iter().filter(|packet| packet.tag.track == track);
                tracks.push(of_track.copied().collect());
            }
        }
        let is_media =
            |packets: &[CapturedPacket]| packets.iter().any(|packet| packet.tag.kind != Kind::Data);
        tracks.retain(|packets| match self.only {
            Only::All => !packets.is_empty(),
            Only::Media => is_media(packets),
            Only::Data => !packets.is_empty() && !is_media(packets),
        });
        self.tracks = Arc::new(tracks);
    }

    pub(super) fn mean_bps(&self) -> f64 {
        let packets = || self.tracks.iter().flatten();
        let bytes: usize = packets().map(|packet| packet.bytes).sum();
        let lasts = packets().map(|packet| packet.at.as_nanos()).max().unwrap_or(0) as f64 / 1e9;
        if lasts > 0.0 { bytes as f64 * 8.0 / lasts / self.tracks.len() as f64 } else { 0.0 }
    }

    /// Each track, sent from `start` on.
    pub(super) fn flows(&self, start: Time) -> Vec<Box<dyn Source>> {
        let after = start.since(Time::ZERO);
        let flow = |track| -> Box<dyn Source> {
            Box::new(Captured { tracks: Arc::clone(&self.tracks), track, next: 0, after })
        };
        (0..self.tracks.len()).map(flow).collect()
    }
}

struct Captured {
    tracks: Arc<Vec<Vec<CapturedPacket>>>,
    track: usize,
    next: usize,
    after: Duration,
}

impl Captured {
    fn packet(&self) -> Option<&CapturedPacket> {
        self.tracks.get(self.track)?.get(self.next)
    }
}

impl Source for Captured {
    fn due(&self) -> Option<Time> {
        Some(self.packet()?.at + self.after)
    }

    fn next(&mut self) -> Option<Emission> {
        let CapturedPacket { bytes, tag, .. } = *self.packet()?;
        self.next += 1;
        Some(Emission { tag, bytes, payload: None })
    }
}
