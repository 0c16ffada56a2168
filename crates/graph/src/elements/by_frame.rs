//! One verdict a frame: what elements share that decide what goes on and what does not.
//!
//! All packets of a frame get the verdict of its first packet that shows what the frame is. In front
//! of that one may come others (parameter sets, an access unit delimiter), which have the kind
//! `Header` until a slice is seen: they are held back until their frame shows itself, ends, or another
//! frame begins, and then go the way of the frame. That is the next packet of the track as a rule, and
//! [`HELD_PACKETS_MAX`] packets at most.
//!
//! Verdicts are remembered for [`REMEMBERED_VERDICTS`] frames of each track: packets that come late go
//! the way of their frame, and a frame that needs one that was left out is told to be an *orphan*. What
//! was lost before it came here is not known here, and orphans nothing.
//!
//! Datagrams of a transport stream that hold none of the main video are judged each for itself.

use core::any::Any;
use core::fmt::Debug;

use outflow_media::{Format, Kind, Needs, Tag, Time};
use outflow_packet::limits::{HELD_PACKETS_MAX, TRACKS_MAX};

use crate::limits::REMEMBERED_VERDICTS;
use crate::{Contents, Contract, Control, Element, Gives, Item, Message, Signals, Tally, Unfit};

/// The contract of all of them.
pub(super) const BY_FRAME: Contract =
    Contract::new(Contents::ANY, Gives::Same).with(Control::hears(Signals::BREAK));

/// What is decided of a frame.
pub(crate) trait Verdict: Copy + Debug + Send + 'static {
    /// Those that need the frame will miss it.
    fn leaves_out(self) -> bool;
}

/// What decides.
pub(super) trait Judge: Debug + Send {
    /// What it decides.
    type Verdict: Verdict;
    /// What the judge of another graph goes on from.
    type State: Send + 'static;

    /// Told what will come in. Frames are judged from here on by that.
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        Ok(input.clone())
    }

    /// Decides on a frame, given its first packet that shows what it is. `orphan`: it needs a frame
    /// that was left out.
    fn judge(&mut self, now: Time, item: &Item, orphan: bool) -> Self::Verdict;

    /// Does to a packet what was decided of its frame. Returns whether it goes on; if not, it is
    /// counted.
    fn carry_out(&mut self, item: &mut Item, verdict: Self::Verdict, tally: &mut Tally) -> bool;

    /// See [`Element::state`].
    fn state(&mut self) -> Self::State;

    /// See [`Element::resume`].
    fn resume(&mut self, state: Self::State);
}

/// An element that judges by frame.
#[derive(Debug)]
pub(super) struct ByFrame<J: Judge> {
    judge: J,
    is_ts: bool,
    memory: Memory<J::Verdict>,
    /// Packets of frames that did not show yet what they are.
    held: Vec<Item>,
    /// What goes on of a batch; its memory serves the next.
    out: Vec<Item>,
}

impl<J: Judge> ByFrame<J> {
    pub(super) fn new(judge: J) -> Self {
        ByFrame { judge, is_ts: false, memory: Memory::default(), held: Vec::new(), out: Vec::new() }
    }

    fn take(&mut self, now: Time, item: Item, tally: &mut Tally) {
        let Tag { track, frame, kind, last, .. } = item.packet.tag;
        if self.is_ts && kind == Kind::Data {
            let verdict = self.judge.judge(now, &item, false);
            return self.put(item, verdict, tally);
        }
        if let Some(verdict) = self.memory.get(track, frame) {
            return self.put(item, verdict, tally);
        }
        if self.held.iter().any(|held| held.packet.tag.track == track && held.packet.tag.frame != frame) {
            self.release(now, track, |held| held != frame, tally);
        }
        if kind == Kind::Header && !last && self.held.len() < HELD_PACKETS_MAX {
            return self.held.push(item);
        }
        let verdict = self.decide(now, &item);
        if !self.held.is_empty() {
            self.release(now, track, |_| true, tally);
        }
        self.put(item, verdict, tally);
    }

    fn decide(&mut self, now: Time, item: &Item) -> J::Verdict {
        let tag = item.packet.tag;
        let orphan = self.memory.misses(tag.track, tag.frame, tag.needs);
        let verdict = self.judge.judge(now, item, orphan);
        self.memory.set(tag.track, tag.frame, verdict);
        verdict
    }

    /// Lets go of what is held of frames of a track.
    fn release(&mut self, now: Time, track: u8, of: impl Fn(u32) -> bool, tally: &mut Tally) {
        let mut held = core::mem::take(&mut self.held);
        let is_due = |item: &mut Item| item.packet.tag.track == track && of(item.packet.tag.frame);
        for item in held.extract_if(.., is_due) {
            let known = self.memory.get(track, item.packet.tag.frame);
            let verdict = known.unwrap_or_else(|| self.decide(now, &item));
            self.put(item, verdict, tally);
        }
        self.held = held;
    }

    fn put(&mut self, mut item: Item, verdict: J::Verdict, tally: &mut Tally) {
        if self.judge.carry_out(&mut item, verdict, tally) {
            self.out.push(item);
        }
    }
}

impl<J: Judge> Element for ByFrame<J> {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        self.is_ts = *input == Format::Ts;
        self.judge.bind(input)
    }

    fn work(&mut self, now: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        for item in batch.drain(..) {
            self.take(now, item, tally);
        }
        core::mem::swap(batch, &mut self.out);
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        // Frame numbers begin again.
        if message == Message::Break {
            self.memory = Memory::default();
        }
        Some(message)
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        let held = core::mem::take(&mut self.held);
        Some(Box::new((self.judge.state(), core::mem::take(&mut self.memory), held)))
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        if let Ok(state) = state.downcast::<(J::State, Memory<J::Verdict>, Vec<Item>)>() {
            let (state, memory, held) = *state;
            self.judge.resume(state);
            (self.memory, self.held) = (memory, held);
        }
    }
}

/// The verdicts on the newest frames of each track.
#[derive(Debug, Clone)]
pub(crate) struct Memory<V> {
    tracks: Vec<Newest<V>>,
}

#[derive(Debug, Clone)]
struct Newest<V> {
    frame: u32,
    verdicts: [Option<V>; REMEMBERED_VERDICTS],
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        Memory { tracks: Vec::new() }
    }
}

impl<V: Verdict> Memory<V> {
    pub(crate) fn get(&self, track: u8, frame: u32) -> Option<V> {
        let newest = self.tracks.get(usize::from(track))?;
        let is_recent = newest.frame.wrapping_sub(frame) < REMEMBERED_VERDICTS as u32;
        newest.verdicts[frame as usize % REMEMBERED_VERDICTS].filter(|_| is_recent)
    }

    pub(crate) fn misses(&self, track: u8, frame: u32, needs: Needs) -> bool {
        let was_left_out =
            |distance| self.get(track, frame.wrapping_sub(distance)).is_some_and(V::leaves_out);
        !needs.is_nothing() && needs.distances().any(was_left_out)
    }

    pub(crate) fn set(&mut self, track: u8, frame: u32, verdict: V) {
        let track = usize::from(track) % TRACKS_MAX;
        if self.tracks.len() <= track {
            let none = || Newest { frame, verdicts: [None; REMEMBERED_VERDICTS] };
            self.tracks.resize_with(track + 1, none);
        }
        let newest = &mut self.tracks[track];
        let step = frame.wrapping_sub(newest.frame).cast_signed();
        if step.unsigned_abs() >= REMEMBERED_VERDICTS as u32 {
            newest.verdicts = [None; REMEMBERED_VERDICTS];
        }
        if step > 0 || step.unsigned_abs() >= REMEMBERED_VERDICTS as u32 {
            // What stood there is too old now.
            for skipped in 1..step.clamp(0, REMEMBERED_VERDICTS as i32).cast_unsigned() {
                newest.verdicts[frame.wrapping_sub(skipped) as usize % REMEMBERED_VERDICTS] = None;
            }
            newest.frame = frame;
        }
        newest.verdicts[frame as usize % REMEMBERED_VERDICTS] = Some(verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Verdict for u8 {
        fn leaves_out(self) -> bool {
            self == 0
        }
    }

    #[test]
    fn verdicts_are_remembered_for_a_number_of_frames() {
        let mut memory = Memory::default();
        memory.set(1, u32::MAX, 0_u8);
        memory.set(1, 1, 7);
        assert_eq!((memory.get(1, u32::MAX), memory.get(1, 0), memory.get(1, 1)), (Some(0), None, Some(7)));
        assert!(memory.misses(1, 2, Needs::back(3)) && !memory.misses(1, 2, Needs::back(1)));
        assert!(!memory.misses(0, 2, Needs::back(3)), "of another track");
        memory.set(1, u32::MAX.wrapping_add(REMEMBERED_VERDICTS as u32), 1);
        assert_eq!((memory.get(1, u32::MAX), memory.get(1, 1)), (None, Some(7)));
        // Late, then from the beginning.
        memory.set(1, 3, 0);
        assert_eq!(memory.get(1, 3), Some(0));
        memory.set(1, 100_000, 1);
        assert_eq!((memory.get(1, 3), memory.get(1, 100_000)), (None, Some(1)));
    }
}
