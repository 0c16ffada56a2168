//! A flow that goes on: what it is shows while it is looked at.

use std::net::SocketAddr;

use outflow_link::Medium;
use outflow_media::Tag;
use outflow_rtp::sdp::MediaDescription;

use super::classify::{self, Class};
use super::gather::Recorded;
use super::tagging::Tagger;

/// Packets after which it is looked for the first time, and twice as many for each time after that.
const LOOK_AFTER: usize = 32;

/// Packets after which a flow that has shown nothing is taken for data: pictures with which decoding begins come
/// more often.
const LOOKED_AT_MAX: usize = 512;

/// The datagrams of a flow, each tagged as it comes. Until it shows what it is, it is data.
#[derive(Debug)]
pub struct LiveFlow {
    class: Class,
    tagger: Tagger,
    /// What says what may be in it.
    described: Vec<MediaDescription>,
    /// While it is not known what it is: copies of what has come, so that nothing larger is kept for it.
    looked_at: Option<Vec<Vec<u8>>>,
}

impl LiveFlow {
    /// One that begins, from there to here; these may be in it.
    pub fn new(source: SocketAddr, destination: SocketAddr, media: &[MediaDescription]) -> Self {
        let may_be = |media: &&MediaDescription| classify::is_to(media, source, destination);
        LiveFlow {
            class: Class::Data,
            tagger: Tagger::new(&Class::Data),
            described: media.iter().filter(may_be).cloned().collect(),
            looked_at: Some(Vec::new()),
        }
    }

    /// One that is data, whatever is in it.
    pub fn data() -> Self {
        LiveFlow {
            class: Class::Data,
            tagger: Tagger::new(&Class::Data),
            described: Vec::new(),
            looked_at: None,
        }
    }

    /// The tag of its next datagram.
    pub fn tag(&mut self, payload: &[u8]) -> Tag {
        if let Some(looked_at) = &mut self.looked_at {
            if looked_at.is_empty() && !classify::may_be_media(payload) {
                self.looked_at = None;
                return self.tagger.tag(&self.class, payload);
            }
            looked_at.push(payload.to_vec());
            let count = looked_at.len();
            if count >= LOOK_AFTER && count.is_power_of_two() {
                return self.look(payload);
            }
        }
        self.tagger.tag(&self.class, payload)
    }

    /// Whether it is still looked for: what comes is kept for that.
    pub fn is_looked_at(&self) -> bool {
        self.looked_at.is_some()
    }

    /// What it is, in words.
    pub fn carries(&self) -> String {
        self.tagger.describe(&self.class)
    }

    /// What it is for, as far as that is known.
    pub fn medium(&self) -> Medium {
        match &self.class {
            class if !class.is_known() => Medium::Data,
            Class::Ts | Class::TsInRtp { .. } => Medium::Video,
            Class::Rtp { tracks, .. } if tracks.iter().any(|track| track.codec.is_video()) => Medium::Video,
            _ => Medium::Audio,
        }
    }

    /// Looks at what has come so far. The newest of it is tagged as what it was found to be.
    fn look(&mut self, newest: &[u8]) -> Tag {
        let Some(looked_at) = self.looked_at.take() else { return self.tagger.tag(&self.class, newest) };
        let packets: Vec<_> = looked_at
            .iter()
            .map(|payload| Recorded { nanos: 0, bytes: payload.len(), payload, is_cut_off: false })
            .collect();
        let class = Class::of(&packets, &self.described.iter().collect::<Vec<_>>());
        if !class.is_known() && looked_at.len() < LOOKED_AT_MAX {
            let tag = self.tagger.tag(&self.class, newest);
            self.looked_at = Some(looked_at);
            return tag;
        }
        // Its readers have to have seen what came before.
        let mut tagger = Tagger::new(&class);
        let tags = looked_at.iter().map(|payload| tagger.tag(&class, payload));
        let tag = tags.last();
        (self.class, self.tagger) = (class, tagger);
        tag.unwrap_or_default()
    }
}
