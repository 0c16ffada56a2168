//! Nets of groups of pictures, from what tags say of them.

use outflow_media::{Kind, Needs, Tag};

use super::edges::components;
use super::{Builder, Carries, Edges, Interval, Name, Net, NetError, Place, Rule};

/// Rounds that a group may begin ahead of the end of the one before: its key frame does not wait for the last
/// pictures that nothing needs.
const OVERLAP: u32 = 2;

/// What a net is to know of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Its kind, which says how long its objects stay useful.
    pub kind: Kind,
    /// The frames that it needs, by how many frames of the track they are sent before it. They may be of
    /// groups before.
    pub needs: Needs,
}

impl From<&Tag> for Frame {
    fn from(tag: &Tag) -> Self {
        Frame { kind: tag.kind, needs: tag.needs }
    }
}

/// How frames become transitions and places.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Objects of a frame: its slices, say, or its packets. At least one.
    pub objects_per_frame: u32,
    /// When a frame is complete. Of rules that need a master, it is the frame's first object.
    pub rule: Rule,
    /// How long objects of a kind stay useful, from when the frames that they need are complete and their own
    /// has begun to come.
    pub validity: fn(Kind) -> Interval,
}

/// What a frame comes after: another one of the period, and how many periods before.
type Before = (usize, u32);

/// The net of a period of frames, which are given in the order in which they are sent.
///
/// Each frame is a transition, and its objects are places in front of it. They come from the frames that it
/// needs, in turn: which of the slices comes from which does not matter, as long as none is left out. Where
/// there are more of these frames than objects, places that only order are added, and where nothing is
/// needed at all, objects come from the frames that nothing else follows, two periods before. So the graph
/// is strongly connected, and a group can begin while the end of the last one is still awaited.
pub fn of_gop(frames: &[Frame], shape: &Shape) -> Result<Net, NetError> {
    let before = closed(&needed(frames));
    let mut builder = Builder::new();
    let name = |i: usize| Name::new(&format!("{}{i}", letter(frames[i].kind)));
    let ids: Vec<_> = (0..frames.len()).map(|i| builder.transition(name(i), shape.rule)).collect();
    for (i, frame) in frames.iter().enumerate() {
        let place = |name: Name, carries, (producer, initial): Before| {
            let (producer, consumer, interval) = (ids[producer], ids[i], (shape.validity)(frame.kind));
            Place { name, carries, producer, consumer, interval, initial }
        };
        let (objects, before, name) = (shape.objects_per_frame.max(1), &before[i], name(i));
        for object in 0..objects {
            let share = object as usize * before.len() / objects as usize;
            // Of more frames than objects, the first ones; the others are below.
            let from = before[share.min(object as usize)];
            let id = builder.place(place(name.numbered(object), Carries::Object, from));
            if object == 0 && shape.rule.needs_master() {
                builder.master(id);
            }
        }
        for (number, from) in (objects..).zip(before.iter().skip(objects as usize)) {
            builder.place(place(name.numbered(number), Carries::Order, *from));
        }
    }
    builder.build()
}

/// For each frame, the frames that it needs.
fn needed(frames: &[Frame]) -> Vec<Vec<Before>> {
    let of = |(i, frame): (usize, &Frame)| {
        let back = |distance: u32| {
            let (distance, count) = (distance as usize, frames.len());
            let periods = distance.saturating_sub(i).div_ceil(count);
            (i + periods * count - distance, periods as u32)
        };
        frame.needs.distances().map(back).collect()
    };
    frames.iter().enumerate().map(of).collect()
}

/// The same, with all that makes the graph strongly connected: components that nothing follows lead to those
/// that follow nothing.
fn closed(needed: &[Vec<Before>]) -> Vec<Vec<Before>> {
    let mut closed = needed.to_vec();
    let pairs = needed.iter().enumerate();
    let pairs = pairs.flat_map(|(i, before)| before.iter().map(move |(producer, _)| (*producer, i)));
    let component = components(&Edges::new(needed.len(), pairs.clone()));
    let mut is_followed = vec![false; needed.len()];
    let mut follows = vec![false; needed.len()];
    for (from, to) in pairs.filter(|(from, to)| component[*from] != component[*to]) {
        is_followed[component[from] as usize] = true;
        follows[component[to] as usize] = true;
    }
    let mut last = vec![0; needed.len()];
    let mut first = vec![usize::MAX; needed.len()];
    for (i, component) in component.iter().map(|component| *component as usize).enumerate() {
        last[component] = i;
        first[component] = first[component].min(i);
    }
    let is_end = |i: &usize| last[component[*i] as usize] == *i && !is_followed[component[*i] as usize];
    let ends: Vec<_> = (0..needed.len()).filter(is_end).map(|i| (i, OVERLAP)).collect();
    for (i, before) in closed.iter_mut().enumerate() {
        let component = component[i] as usize;
        // One alone needs an end even if it is its own: a group of one key frame.
        if first[component] == i && !follows[component] {
            before.extend(&ends);
        }
    }
    closed
}

const fn letter(kind: Kind) -> char {
    match kind {
        Kind::Header => 'H',
        Kind::Intra => 'I',
        Kind::Predicted => 'P',
        Kind::Bidirectional => 'B',
        Kind::Enhancement => 'E',
        Kind::Data => 'D',
    }
}

/// The frames of the paper's MPEG service (Apvrille, Dairaine, Rojas, Sénac, Diaz, "Implementing a user
/// level multimedia transport protocol in Java"; M = 4, N = 12), in the order in which they are sent. The
/// group is open: the first three B pictures are shown before the I picture, and need the last P picture of
/// the group before.
pub fn mpeg_gop() -> Vec<Frame> {
    let (intra, predicted, b) = (Kind::Intra, Kind::Predicted, Kind::Bidirectional);
    let mut frames = Vec::new();
    for (kind, needs) in [(intra, Needs::NOTHING), (predicted, Needs::back(4)), (predicted, Needs::back(4))] {
        frames.push(Frame { kind, needs });
        for i in 1..=3 {
            frames.push(Frame { kind: b, needs: Needs::back(i).and(Needs::back(i + 4)) });
        }
    }
    frames
}

/// The shape of the paper's MPEG service: 15 slices a picture, 25 pictures a second.
///
/// The paper says that I slices are valid for longer than P and B slices, and not how long. What is waited
/// for adds up along a circuit: if slices of every picture are lost, I, P, P and B picture take 720 ms here,
/// and there are two groups in that circuit, which last 960 ms. So a receiver that gets nothing again still
/// keeps up.
pub const fn mpeg_shape() -> Shape {
    const fn validity(kind: Kind) -> Interval {
        match kind {
            Kind::Bidirectional => Interval::until_ms(40, 80),
            Kind::Predicted => Interval::until_ms(40, 160),
            _ => Interval::until_ms(40, 320),
        }
    }
    Shape { objects_per_frame: 15, rule: Rule::WeakAnd, validity }
}

#[cfg(test)]
mod tests;
