//! What a packet says of its frame (the dependency descriptor, AV1 RTP specification, appendix A), as a viewer gets it. It
//! goes as it came, but for the number of the frame, which is the viewer's own: those of another rendition, or of a
//! publisher that comes back, are others, and browsers take no key frame whose number is lower than the one before.

use bytes::Bytes;
use outflow_rtp::sequence_distance;

use crate::limits::FRAMES_GAP_MAX;

/// A descriptor that goes to a viewer.
#[derive(Debug, Clone)]
pub(super) struct Described {
    value: Bytes,
    /// The viewer's number of the frame.
    number: u16,
    /// Bits of the first byte that do not hold: [`FIRST`] or [`LAST`].
    cleared: u8,
}

/// The packet is the first of its frame.
const FIRST: u8 = 0x80;
/// The packet is the last of its frame.
const LAST: u8 = 0x40;

/// What every descriptor has: both bits and a template, and the number of the frame.
const LEAST: usize = 3;

/// In the byte behind that: there is a structure, by which what follows is to be read.
const STRUCTURE: u8 = 0x80;

impl Described {
    /// The packet is made two, and this one is the first of them.
    pub(super) fn first_half(&self) -> Self {
        Described { cleared: self.cleared | LAST, ..self.clone() }
    }

    /// The second one.
    pub(super) fn second_half(&self) -> Self {
        Described { cleared: self.cleared | FIRST, ..self.clone() }
    }

    /// Bytes of it.
    pub(super) fn len(&self) -> usize {
        self.value.len()
    }

    /// Writes it behind what is in `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let [high, low] = self.number.to_be_bytes();
        let [flags, ..] = self.value[..] else { return };
        out.extend([flags & !self.cleared, high, low]);
        out.extend_from_slice(self.value.get(LEAST..).unwrap_or_default());
    }
}

/// A number of the stream's, and the viewer's of the same frame.
type Met = (u16, u16);

/// Numbers of frames at a viewer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frames {
    /// From here on they go side by side ...
    here: Option<Met>,
    /// ... and before as from there.
    before: Option<Met>,
    /// The viewer's newest.
    newest: u16,
}

impl Frames {
    /// The descriptor of a packet of the stream, which is the newest or comes late.
    pub(super) fn take(&mut self, value: Bytes, is_newest: bool) -> Option<Described> {
        let [flags, high, low, ref rest @ ..] = value[..] else { return None };
        let theirs = u16::from_be_bytes([high, low]);
        let begins = flags & FIRST != 0 && rest.first().is_some_and(|more| more & STRUCTURE != 0);
        if is_newest {
            self.go_on(theirs, begins);
        }
        Some(Described { number: self.number(theirs), value, cleared: 0 })
    }

    /// That of a packet that was taken before.
    pub(super) fn again(&self, value: Bytes) -> Option<Described> {
        let [_, high, low, ..] = value[..] else { return None };
        Some(Described { number: self.number(u16::from_be_bytes([high, low])), value, cleared: 0 })
    }

    /// A packet of this frame is the newest. With a structure, nothing that follows needs a frame before it.
    fn go_on(&mut self, theirs: u16, begins: bool) {
        let Some((met, _)) = self.here else {
            (self.here, self.newest) = (Some((theirs, theirs)), theirs);
            return;
        };
        let number = self.number(theirs);
        let step = sequence_distance(self.newest, number);
        if begins && !(1..=FRAMES_GAP_MAX).contains(&step) {
            let next = self.newest.wrapping_add(1);
            (self.before, self.here, self.newest) = (self.here, Some((theirs, next)), next);
        } else if step > 0 {
            self.newest = number;
            if sequence_distance(met, theirs) > FRAMES_GAP_MAX {
                // What was before is too long ago to come late.
                (self.here, self.before) = (Some((theirs, number)), None);
            }
        }
    }

    fn number(&self, theirs: u16) -> u16 {
        let is_before = |(met, _): &Met| sequence_distance(*met, theirs) < 0;
        let before = self.before.filter(|_| self.here.as_ref().is_some_and(is_before));
        before.or(self.here).map_or(theirs, |(met, own)| own.wrapping_add(theirs.wrapping_sub(met)))
    }

    /// As it is, for another process: where both met last, and the newest number.
    pub(super) fn save(&self) -> Option<(u16, u16, u16)> {
        self.here.map(|(theirs, own)| (theirs, own, self.newest))
    }

    /// It goes on there.
    pub(super) fn resume(saved: Option<(u16, u16, u16)>) -> Self {
        let Some((theirs, own, newest)) = saved else { return Frames::default() };
        Frames { here: Some((theirs, own)), before: None, newest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of this frame, with a structure or without.
    fn value(number: u16, has_structure: bool) -> Bytes {
        let [high, low] = number.to_be_bytes();
        let all = [FIRST | LAST | 5, high, low, STRUCTURE, 7];
        Bytes::copy_from_slice(if has_structure { &all } else { &all[..3] })
    }

    fn written(described: &Described) -> Vec<u8> {
        let mut out = Vec::new();
        described.write(&mut out);
        assert_eq!(out.len(), described.len());
        out
    }

    fn number(described: Option<Described>) -> u16 {
        let out = written(&described.expect("it is one"));
        u16::from_be_bytes([out[1], out[2]])
    }

    fn newest(frames: &mut Frames, theirs: u16, has_structure: bool) -> u16 {
        number(frames.take(value(theirs, has_structure), true))
    }

    #[test]
    fn it_goes_as_it_came_but_for_the_number() {
        let mut frames = Frames::resume(Some((10, 300, 299)));
        let described = frames.take(value(11, true), true).expect("it is one");
        assert_eq!(written(&described), [FIRST | LAST | 5, 1, 45, STRUCTURE, 7]);
        assert_eq!(written(&described.first_half())[0], FIRST | 5);
        assert_eq!(written(&described.second_half())[0], LAST | 5);
        assert!(frames.take(Bytes::from_static(&[0, 1]), true).is_none(), "too short");
    }

    #[test]
    fn numbers_of_a_rendition_run_on_where_another_one_ended() {
        for other in [3_u16, 902, 40_000] {
            let mut frames = Frames::default();
            assert_eq!(
                [(900, true), (901, false), (905, false)].map(|(at, key)| newest(&mut frames, at, key)),
                [900, 901, 905]
            );
            assert_eq!(newest(&mut frames, other, true), 906, "{other}");
            assert_eq!(newest(&mut frames, other.wrapping_add(2), false), 908);
            // One that comes late, or goes once more.
            let late = |frames: &mut Frames| number(frames.take(value(other.wrapping_add(1), false), false));
            assert_eq!(late(&mut frames), 907);
            assert_eq!(number(frames.again(value(other, true))), 906);
        }
    }

    #[test]
    fn what_comes_late_from_before_has_the_number_that_it_would_have_had() {
        let mut frames = Frames::default();
        newest(&mut frames, 900, true);
        assert_eq!(newest(&mut frames, 5_000, true), 901);
        assert_eq!(number(frames.again(value(899, false))), 899);
        assert_eq!(number(frames.again(value(5_000, true))), 901);
    }

    #[test]
    fn they_run_on_for_hours_without_a_structure() {
        let mut frames = Frames::default();
        newest(&mut frames, 50_000, true);
        assert_eq!(newest(&mut frames, 7, true), 50_001);
        let all = (8..200_000_u32).map(|at| newest(&mut frames, at as u16, false));
        assert!(all.eq((8..200_000_u32).map(|at| (50_001 + at - 7) as u16)));
    }

    #[test]
    fn it_goes_on_in_another_process() {
        let mut frames = Frames::default();
        newest(&mut frames, 900, true);
        newest(&mut frames, 7, true);
        let mut there = Frames::resume(frames.save());
        assert_eq!([(8, false), (700, true)].map(|(at, key)| newest(&mut there, at, key)), [902, 1594]);
        assert_eq!(Frames::resume(None).save(), None);
    }
}
