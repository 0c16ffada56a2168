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

/// Numbers of frames at a viewer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frames {
    /// What is added to the stream's, and what was before that.
    offset: u16,
    before: u16,
    /// The number of the packet at the viewer from which on that is so.
    from: u32,
    /// The viewer's newest frame.
    newest: Option<u16>,
}

impl Frames {
    /// The descriptor of a packet of the stream, which has this number at the viewer, and is the newest or comes late.
    pub(super) fn take(&mut self, value: Bytes, number: u32, is_newest: bool) -> Option<Described> {
        let [flags, high, low, ref rest @ ..] = value[..] else { return None };
        let theirs = u16::from_be_bytes([high, low]);
        let begins = flags & FIRST != 0 && rest.first().is_some_and(|more| more & STRUCTURE != 0);
        if is_newest {
            self.go_on(theirs, number, begins);
        }
        self.again(value, number)
    }

    /// That of a packet that was taken before.
    pub(super) fn again(&self, value: Bytes, number: u32) -> Option<Described> {
        let [_, high, low, ..] = value[..] else { return None };
        Some(Described { number: self.own(u16::from_be_bytes([high, low]), number), value, cleared: 0 })
    }

    /// A packet of this frame is the newest. Where it begins a structure, nothing behind needs a frame before it.
    fn go_on(&mut self, theirs: u16, number: u32, begins: bool) {
        let own = self.own(theirs, number);
        let Some(newest) = self.newest else {
            self.newest = Some(own);
            return;
        };
        let step = sequence_distance(newest, own);
        if begins && !(1..=FRAMES_GAP_MAX).contains(&step) {
            let next = newest.wrapping_add(1);
            (self.before, self.offset, self.from) = (self.offset, next.wrapping_sub(theirs), number);
            self.newest = Some(next);
        } else if step > 0 {
            self.newest = Some(own);
        }
    }

    fn own(&self, theirs: u16, number: u32) -> u16 {
        theirs.wrapping_add(if number < self.from { self.before } else { self.offset })
    }

    /// As it is, for another process: what is added, and the newest.
    pub(super) fn save(&self) -> Option<(u16, u16)> {
        self.newest.map(|newest| (self.offset, newest))
    }

    /// It goes on there.
    pub(super) fn resume(saved: Option<(u16, u16)>) -> Self {
        let (offset, newest) = saved.unzip();
        let offset = offset.unwrap_or(0);
        Frames { offset, before: offset, from: 0, newest }
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

    fn frame(described: Option<Described>) -> u16 {
        let out = written(&described.expect("it is one"));
        u16::from_be_bytes([out[1], out[2]])
    }

    /// Packets of these frames, with a structure or without, each with the next number.
    fn all<const N: usize>(frames: &mut Frames, from: u32, of: [(u16, bool); N]) -> [u16; N] {
        let mut number = from;
        of.map(|(theirs, has_structure)| {
            number += 1;
            frame(frames.take(value(theirs, has_structure), number - 1, true))
        })
    }

    #[test]
    fn it_goes_as_it_came_but_for_the_number() {
        let mut frames = Frames::resume(Some((290, 300)));
        let described = frames.take(value(11, true), 5, true).expect("it is one");
        assert_eq!(written(&described), [FIRST | LAST | 5, 1, 45, STRUCTURE, 7]);
        assert_eq!(written(&described.first_half())[0], FIRST | 5);
        assert_eq!(written(&described.second_half())[0], LAST | 5);
        assert!(frames.take(Bytes::from_static(&[0, 1]), 6, true).is_none(), "too short");
    }

    #[test]
    fn numbers_of_a_rendition_run_on_where_another_one_ended() {
        for other in [3_u16, 902, 905, 40_000] {
            let mut frames = Frames::default();
            assert_eq!(
                all(&mut frames, 300, [(900, true), (901, false), (905, false)]),
                [900, 901, 905],
                "{other}"
            );
            let next = other.wrapping_add(2);
            assert_eq!(all(&mut frames, 303, [(other, true), (next, false)]), [906, 908], "{other}");
            // One that comes late, and those that go once more, of both.
            assert_eq!(frame(frames.take(value(904, false), 302, false)), 904);
            let again = [(901, 301), (905, 302), (other, 303), (next, 304)];
            let again = again.map(|(theirs, number)| frame(frames.again(value(theirs, false), number)));
            assert_eq!(again, [901, 905, 906, 908], "{other}");
        }
    }

    #[test]
    fn they_run_on_for_hours_without_a_structure() {
        let mut frames = Frames::default();
        assert_eq!(all(&mut frames, 300, [(50_000, true), (7, true)]), [50_000, 50_001]);
        let all = (8..200_000_u32).map(|at| frame(frames.take(value(at as u16, false), 300 + at, true)));
        assert!(all.eq((8..200_000_u32).map(|at| (50_001 + at - 7) as u16)));
    }

    #[test]
    fn it_goes_on_in_another_process() {
        let mut frames = Frames::default();
        all(&mut frames, 300, [(900, true), (7, true)]);
        let mut there = Frames::resume(frames.save());
        assert_eq!(all(&mut there, 302, [(8, false), (700, true), (3, true)]), [902, 1594, 1595]);
        assert_eq!(Frames::resume(None).save(), None);
    }
}
