//! What is sent: the models of traffic.

mod captured;
mod data;
mod layered;
mod live;
mod packet_size;
mod source;
mod video;

use outflow_link::Medium;
use outflow_media::Time;
use serde::Deserialize;

pub use captured::{CapturedModel, Only};
pub use data::DataModel;
pub use layered::LayeredModel;
pub(super) use live::HEADERS;
pub use packet_size::PacketSize;
pub(super) use source::{Emission, Source};
pub use video::{Offering, Sizes, VideoModel};

use crate::scenario::SourceModel;

/// A model of traffic.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Model {
    /// Coded video of I, P and B frames (ABD, section 2.2).
    Video(VideoModel),
    /// Packets of one size at random (ABD, section 2.2).
    Data(DataModel),
    /// What was captured.
    Capture(CapturedModel),
    /// H.264 in RTP, with its bytes: what relays take.
    H264(SourceModel),
    /// Video of which each frame has all layers, in RTP that says them to routers.
    Layered(LayeredModel),
}

impl Model {
    /// What its flows are for.
    pub(super) fn medium(&self) -> Medium {
        match self {
            Model::Video(_) => Medium::Video,
            Model::Data(_) => Medium::Data,
            Model::Capture(model) if model.only == Only::Data => Medium::Data,
            Model::Capture(_) | Model::H264(_) | Model::Layered(_) => Medium::Video,
        }
    }

    /// Checks what it says.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Model::Video(model) => model.check().map_err(str::to_owned),
            Model::Data(model) => model.check().map_err(str::to_owned),
            Model::Layered(model) => model.check().map_err(str::to_owned),
            Model::Capture(_) => Ok(()),
            Model::H264(model) => match model.rules().into_iter().find(|(_, holds, _)| !holds) {
                Some((key, _, must)) => Err(format!("{key} must be {must}")),
                None => Ok(()),
            },
        }
    }

    /// Mean bits a second of a flow.
    pub fn mean_bps(&self) -> f64 {
        match self {
            Model::Video(model) => model.mean_bps(),
            Model::Data(model) => model.rate.0 as f64,
            Model::Capture(model) => model.mean_bps(),
            Model::H264(model) => model.mean_bps(),
            Model::Layered(model) => model.rate.0 as f64,
        }
    }

    /// One of it, from `start` on: a flow, or those of a capture.
    pub(super) fn flows(&self, start: Time, rng: fastrand::Rng) -> Vec<Box<dyn Source>> {
        match self {
            Model::Video(model) => vec![Box::new(video::Video::new(model, start, rng))],
            Model::Data(model) => vec![Box::new(data::Data::new(model, start, rng))],
            Model::Capture(model) => model.flows(start),
            Model::H264(model) => vec![Box::new(live::Live::new(model, start, rng))],
            Model::Layered(model) => vec![Box::new(layered::Layered::new(model, start, rng))],
        }
    }
}
