//! Where packets leave a graph, to a branch.

use outflow_media::Format;

use super::{Item, Origin, Target, Unfit};
use crate::control::Understood;
use crate::limits::TRACKS_MAX;
use crate::schedule::TrackMask;

/// A branch that comes out.
#[derive(Debug)]
pub(super) struct Exit {
    pub(super) name: String,
    /// From where its packets come.
    pub(super) from: Vec<Origin>,
    pub(super) wanted: bool,
    pub(super) format: Result<Format, Unfit>,
    /// How many packets of each track were counted when they came out.
    pub(super) passed: [u16; TRACKS_MAX],
    /// Tracks of which some came out: they go on with the numbers of the stream.
    pub(super) began: TrackMask,
}

/// A packet leaves the stages that are here.
pub(super) fn leave(
    exits: &mut [Exit],
    further: &mut dyn FnMut(Target, Item),
    each: &mut dyn FnMut(usize, Understood),
    target: Target,
    mut item: Item,
) {
    let Target::Exit(number) = target else { return further(target, item) };
    let Some(exit) = exits.get_mut(usize::from(number)).filter(|exit| exit.wanted) else { return };
    exit.number(&mut item);
    each(usize::from(number), item.understood());
}

impl Exit {
    pub(super) fn new(name: &str, from: Vec<Origin>) -> Self {
        let format = Err(Unfit::new("the stream has no format yet", "wait for its source"));
        Exit {
            name: name.to_owned(),
            from,
            wanted: false,
            format,
            passed: [0; TRACKS_MAX],
            began: TrackMask::NONE,
        }
    }

    /// Closes the gaps in RTP sequence numbers that elements have left on purpose; those of packets
    /// that never came in stay.
    fn number(&mut self, item: &mut Item) {
        let Some(before) = item.of_track else { return };
        let track = item.packet.tag.track;
        let passed = &mut self.passed[usize::from(track) % TRACKS_MAX];
        if !self.began.has(track) {
            self.began = self.began.with(TrackMask::only(track));
            *passed = before;
        }
        item.renumber(before.wrapping_sub(*passed));
        *passed = passed.wrapping_add(1);
    }
}
