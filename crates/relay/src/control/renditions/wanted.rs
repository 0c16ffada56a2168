//! Key frames that are wanted of renditions: of which one, and which track that is for its publisher.

use super::fit::Fit;
use super::rendition::Renditions;
use super::simulcast::Simulcast;
use crate::control::distribution::Distribution;
use crate::schedule::SinkKey;

/// The rendition that a track of a sink comes from, and what its publisher numbers that. Of a stream with a source
/// of its own, that is 0, and the track.
pub(in crate::control) fn origin_of(out: &Distribution, key: SinkKey, track: u8) -> (usize, u8) {
    let branch = out.sinks.get(key.0).and_then(|sink| sink.branch);
    let carried = branch.and_then(|branch| Simulcast::at(branch).carries(out, branch));
    let (Some(renditions), Some(origin)) = (&out.renditions, &out.origin) else { return (0, track) };
    let rendition = carried.map_or(renditions.reference(), |(rendition, _)| rendition);
    let main = Some(renditions).filter(|_| track == origin.format().main_track());
    let main = main.and_then(|renditions| renditions.main_track(rendition));
    main.map_or((renditions.reference(), track), |main| (rendition, main))
}

/// Renditions of which a key frame is waited for, so that sinks can change, and the track.
pub(in crate::control) fn awaited_key_frames(out: &Distribution) -> impl Iterator<Item = (usize, u8)> {
    let renditions = out.renditions.as_ref().into_iter();
    let awaited = renditions.flat_map(|all| all.switch().awaited().map(move |index| (all, index)));
    awaited.filter_map(|(all, index)| Some((index, all.main_track(index)?)))
}

impl Renditions {
    /// What a rendition's publisher numbers its main track, if that can be used.
    fn main_track(&self, rendition: usize) -> Option<u8> {
        match self.fit_of(rendition)? {
            Fit::Rtp { main, .. } => Some(*main),
            Fit::Ts(_) => Some(0),
        }
    }
}
