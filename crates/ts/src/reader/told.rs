//! Which frame a datagram is told, of those that it has bytes of.

use outflow_media::frames::Frame;
use outflow_media::importance::{Class, Importance};
use outflow_media::{Content, Kind, Tag};

/// What the current datagram shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// The frame of the main stream that it is told, among those that ended in it.
    pub(super) best: Option<Candidate>,
    /// It has bytes of the frame that is arriving.
    pub(super) any: bool,
    /// The frame that is arriving began in it.
    pub(super) first: bool,
    /// The frame that is arriving is complete, by the length of its PES packet.
    pub(super) last: bool,
    /// What it has beside the main stream.
    pub(super) content: Content,
}

/// A frame that a datagram might be told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) frame: Frame,
    pub(super) first: bool,
    pub(super) last: bool,
    /// Of what sort it is if it is no picture.
    pub(super) content: Content,
}

impl Default for Shown {
    /// Of a datagram of null packets.
    fn default() -> Self {
        Shown { best: None, any: false, first: false, last: false, content: Content::Stuffing }
    }
}

impl Candidate {
    pub(super) fn tag(&self) -> Tag {
        Tag {
            frame: self.frame.number,
            track: 0,
            kind: self.frame.kind,
            content: if self.frame.kind == Kind::Data { self.content } else { Content::Opaque },
            // Datagrams mix frames of all layers.
            layer: 0,
            layers: 1,
            opens: self.frame.key,
            first: self.first,
            last: self.last,
            ends: None,
            key: self.frame.key,
            needs: self.frame.needs,
            grown: 0,
            adds: false,
            deadline: None,
        }
    }

    /// A key frame that begins comes first, because receivers join at it; then what others need, as far as is
    /// known. Among those the later one is told: it needs the earlier one, so that with it both count as lost.
    fn rank(&self) -> u8 {
        match self.tag().importance() {
            _ if self.first && self.frame.key => 2,
            importance if importance <= Importance::of(Class::Disposable, 0) => 0,
            _ => 1,
        }
    }
}

/// Which of two frames, the second one later, a datagram is told.
pub(super) fn better(earlier: Option<Candidate>, later: Option<Candidate>) -> Option<Candidate> {
    match (earlier, later) {
        (Some(a), Some(b)) => Some(if a.rank() > b.rank() { a } else { b }),
        (a, b) => a.or(b),
    }
}

impl super::TsReader {
    /// How many layers and temporal sub-layers the main stream has shown, and whether the latter were announced.
    pub fn layers_shown(&self) -> (u8, u8, bool) {
        self.frames.shown()
    }

    /// Another process has read the stream up to now, and seen these.
    pub fn show_layers(&mut self, shown: (u8, u8, bool)) {
        self.frames.show(shown);
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Needs;
    use outflow_media::importance::examples;

    use super::*;

    fn candidate(tag: &Tag, first: bool) -> Candidate {
        let &Tag { kind, key, content, .. } = tag;
        let frame = Frame { number: 1, kind, key, layer: 0, layers: 1, opens: key, needs: Needs::NOTHING };
        Candidate { frame, first, last: false, content }
    }

    #[test]
    fn what_matters_more_is_never_told_after_what_matters_less() {
        let examples = examples();
        for (at, (more, tag)) in examples.iter().enumerate() {
            for (less, other) in &examples[at..] {
                let (a, b) = (candidate(tag, false), candidate(other, false));
                assert!(a.rank() >= b.rank(), "{more} before {less}");
            }
        }
        let key = Tag { kind: Kind::Intra, key: true, ..Tag::default() };
        let others = examples.iter().map(|(_, tag)| candidate(tag, true).rank());
        assert!(others.max() < Some(candidate(&key, true).rank()), "a key frame that begins");
    }
}
