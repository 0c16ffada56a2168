//! Which frames can be decoded: those that came whole, and whose needs did.

use outflow_media::{Kind, Needs, Tag};

/// Frames kept in mind; needs reach back 32 at most.
const WINDOW: usize = 64;
/// Frames that one datagram may hold without being told: 1316 bytes hold no more pictures.
const UNTOLD: u32 = 7;

/// Follows the frames of one track.
///
/// A datagram of a transport stream may hold bytes of several frames and is told only one: frames
/// that are never told, or not from their first byte on, are there all the same, unless packets
/// are missing. Of RTP, numbers that are left out are those of frames that were not sent here.
///
/// Where packets are missing between two frames, it is not known how many frames went with them and
/// which frames would have needed those: everything up to the next key frame counts as lost.
#[derive(Debug)]
pub(super) struct Frames {
    window: [Option<Done>; WINDOW],
    open: Option<Open>,
    /// It is a transport stream.
    is_ts: bool,
    /// Packets have come.
    started: bool,
    /// The frame begun last.
    last: Option<u32>,
    /// Frames may be missing since the last key frame.
    broken: bool,
    pub(super) all: u64,
    pub(super) decodable: u64,
    pub(super) keys: u64,
}

#[derive(Debug, Clone, Copy)]
struct Done {
    number: u32,
    decodable: bool,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    number: u32,
    intact: bool,
    ended: bool,
    key: bool,
    needs: Needs,
}

/// What a packet brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Seen {
    /// It is the first to show that its frame is a key frame.
    pub(super) key: bool,
    /// With it, a frame could be decoded.
    pub(super) decodable: bool,
}

impl Frames {
    pub(super) fn new(is_ts: bool) -> Self {
        Frames {
            window: [None; WINDOW],
            open: None,
            is_ts,
            started: false,
            last: None,
            broken: true,
            all: 0,
            decodable: 0,
            keys: 0,
        }
    }

    /// A packet of the track; `gap` if packets are missing in front of it.
    pub(super) fn packet(&mut self, tag: &Tag, gap: bool) -> Seen {
        let decodable_before = self.decodable;
        let key = match &mut self.open {
            Some(open) if open.number == tag.frame => {
                open.intact &= !gap || tag.first;
                let shows_key = tag.key && !open.key;
                open.learn(tag);
                shows_key
            }
            Some(open) if tag.frame.wrapping_sub(open.number) > u32::MAX / 2 => return Seen::default(),
            _ => self.begin(tag, gap),
        };
        self.keys += u64::from(key);
        if let Some(open) = self.open.as_mut().filter(|open| tag.last && !open.ended) {
            open.ended = true;
            let open = *open;
            self.finish(open);
        }
        Seen { key, decodable: self.decodable > decodable_before }
    }

    /// Begins the frame of `tag`; returns whether it is known to be a key frame.
    fn begin(&mut self, tag: &Tag, gap: bool) -> bool {
        // What stands between frames (tables, audio) is no frame, unless it begins one.
        let stands_between = tag.stands_between();
        if let Some(mut open) = self.open.take().filter(|open| !open.ended) {
            // Of the frame before, the end may be among what is missing.
            open.intact &= !gap;
            self.finish(open);
        }
        self.broken |= gap;
        let follows = core::mem::replace(&mut self.started, true) && !gap;
        if stands_between {
            return false;
        }
        if follows && self.is_ts {
            self.pass_over(tag.frame);
        }
        self.last = Some(tag.frame);
        let intact = tag.first || follows;
        let mut open = Open { number: tag.frame, intact, ended: false, key: false, needs: Needs::NOTHING };
        open.learn(tag);
        self.open = Some(open);
        tag.key
    }

    /// Frames before `next` that no packet was told: what they need is not known, but likely to be
    /// the frame before them.
    fn pass_over(&mut self, next: u32) {
        let Some(last) = self.last else { return };
        let untold = next.wrapping_sub(last).saturating_sub(1);
        if untold > UNTOLD {
            return;
        }
        for number in (1..=untold).map(|n| last.wrapping_add(n)) {
            let (intact, needs) = (true, Needs::back(1));
            self.finish(Open { number, intact, ended: true, key: false, needs });
        }
    }

    fn finish(&mut self, frame: Open) {
        if frame.key && frame.needs.is_nothing() {
            self.broken = false;
        }
        let there =
            frame.needs.distances().all(|distance| self.was_decodable(frame.number.wrapping_sub(distance)));
        let decodable = frame.intact && there && !self.broken;
        self.all += 1;
        self.decodable += u64::from(decodable);
        self.window[frame.number as usize % WINDOW] = Some(Done { number: frame.number, decodable });
    }

    fn was_decodable(&self, number: u32) -> bool {
        self.window[number as usize % WINDOW].is_some_and(|done| done.number == number && done.decodable)
    }
}

impl Open {
    /// Readers learn what a frame needs on the way through it.
    fn learn(&mut self, tag: &Tag) {
        if tag.kind == Kind::Data && !tag.first {
            return;
        }
        self.key |= tag.key;
        self.needs = tag.needs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames as letters: I and P need what came before, B too but no frame needs it. Each has a
    /// first, a middle and a last packet; those at the positions in `lost` do not come.
    fn decodable(gop: &str, lost: &[usize]) -> (u64, u64) {
        let mut frames = Frames::new(true);
        let (mut at, mut gap, mut reference) = (0, false, 0);
        for (number, kind) in (0_u32..).zip(gop.chars()) {
            let back = Needs::back(number - reference);
            let (kind, needs) = match kind {
                'I' => (Kind::Intra, Needs::NOTHING),
                'P' => (Kind::Predicted, back),
                _ => (Kind::Bidirectional, back),
            };
            if kind != Kind::Bidirectional {
                reference = number;
            }
            for part in 0..3 {
                let (first, last, key) = (part == 0, part == 2, kind == Kind::Intra);
                let tag = Tag { frame: number, kind, needs, first, last, key, ..Tag::default() };
                if lost.contains(&at) {
                    gap = true;
                } else {
                    frames.packet(&tag, core::mem::take(&mut gap));
                }
                at += 1;
            }
        }
        (frames.all, frames.decodable)
    }

    #[test]
    fn all_that_came_can_be_decoded() {
        assert_eq!(decodable("IPBBPBBIPBB", &[]), (11, 11));
    }

    #[test]
    fn a_hole_in_a_frame_takes_those_that_need_it() {
        assert_eq!(decodable("IPBBPBB", &[3 * 2 + 1]), (7, 6), "no frame needs a B frame");
        assert_eq!(decodable("IPBBPBBIP", &[3 + 1]), (9, 3), "all up to the next key frame need a P frame");
        assert_eq!(decodable("IPP", &[0]), (3, 0), "not even the key frame came whole");
    }

    #[test]
    fn a_hole_between_frames_takes_all_up_to_the_next_key_frame() {
        assert_eq!(decodable("IPBBPIPB", &[6, 7, 8]), (7, 5));
        assert_eq!(decodable("IPBBPIPB", &[5, 6]), (8, 4), "the end of one, the beginning of the next");
    }

    #[test]
    fn nothing_can_be_decoded_before_the_first_key_frame() {
        assert_eq!(decodable("PBBIPB", &[]), (6, 3));
    }

    #[test]
    fn frames_that_share_a_datagram_are_there() {
        let mut frames = Frames::new(true);
        let intra = Tag { kind: Kind::Intra, first: true, key: true, ..Tag::default() };
        let predicted = Tag { kind: Kind::Predicted, needs: Needs::back(1), ..Tag::default() };
        frames.packet(&intra, false);
        // Of frame 3 the beginning, and all of 1 and 2, stood in the datagram that was told 0.
        frames.packet(&Tag { frame: 3, ..predicted }, false);
        frames.packet(&Tag { frame: 4, first: true, ..predicted }, false);
        assert_eq!((frames.all, frames.decodable), (4, 4));
    }

    #[test]
    fn frames_that_a_level_leaves_out_are_not_counted() {
        let mut frames = Frames::new(false);
        let whole = Tag { first: true, last: true, ..Tag::default() };
        let key = Tag { frame: 1, kind: Kind::Intra, key: true, ..whole };
        frames.packet(&key, false);
        frames.packet(&Tag { frame: 5, kind: Kind::Predicted, needs: Needs::back(4), ..whole }, false);
        frames.packet(&Tag { frame: 7, kind: Kind::Predicted, needs: Needs::back(1), ..whole }, false);
        assert_eq!((frames.all, frames.decodable), (3, 2), "what the last one needs is missing");
    }

    #[test]
    fn audio_between_the_packets_of_a_frame_changes_nothing() {
        let mut frames = Frames::new(true);
        let audio = Tag { frame: 5, ..Tag::default() };
        frames.packet(&audio, false);
        let video = Tag { frame: 5, kind: Kind::Intra, first: true, key: true, ..Tag::default() };
        assert!(frames.packet(&video, false).key);
        frames.packet(&audio, false);
        let next =
            Tag { frame: 6, kind: Kind::Predicted, first: true, needs: Needs::back(1), ..Tag::default() };
        assert!(frames.packet(&next, false).decodable);
        assert_eq!((frames.all, frames.decodable, frames.keys), (1, 1, 1));
    }
}
