//! Which frames of a flow are worth nothing any more: the general form of a dependency map (ABD, section 2.2),
//! taken from tags.

use outflow_media::Tag;

/// Frames that are kept in mind: needs reach back 32.
const FRAMES: u32 = 64;

/// What became of the newest frames of a flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Damage {
    newest: Option<u32>,
    /// A bit for each frame, the newest first, that is incomplete, or needs one that is.
    lost: u64,
}

impl Damage {
    /// A packet of a frame arrives. Returns whether the frame is of no use: something of it was lost before, or
    /// of what it needs.
    pub fn look(&mut self, tag: &Tag) -> bool {
        self.reach(tag.frame);
        let needs_lost = tag.needs.distances().any(|back| self.is_lost(tag.frame.wrapping_sub(back)));
        if needs_lost {
            self.lose(tag.frame);
        }
        self.is_lost(tag.frame)
    }

    /// Something of a frame is lost.
    pub fn lose(&mut self, frame: u32) {
        self.reach(frame);
        if let Some(bit) = self.bit(frame) {
            self.lost |= bit;
        }
    }

    /// Whether a frame is of no use, as far as that is in mind.
    pub fn is_lost(&self, frame: u32) -> bool {
        self.bit(frame).is_some_and(|bit| self.lost & bit != 0)
    }

    fn bit(&self, frame: u32) -> Option<u64> {
        let back = self.newest?.wrapping_sub(frame);
        (back < FRAMES).then(|| 1 << back)
    }

    /// The newest frame is this one, unless there was a newer one.
    fn reach(&mut self, frame: u32) {
        let Some(newest) = self.newest else {
            self.newest = Some(frame);
            return;
        };
        let step = frame.wrapping_sub(newest);
        if step.cast_signed() > 0 {
            self.lost = self.lost.checked_shl(step).unwrap_or(0);
            self.newest = Some(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Needs;

    use super::*;

    fn frame(frame: u32, needs: Needs) -> Tag {
        Tag { frame, needs, ..Tag::default() }
    }

    #[test]
    fn what_needs_a_lost_frame_is_lost_up_to_what_needs_nothing() {
        let mut damage = Damage::default();
        let back = |distance| Needs::back(distance);
        assert!(!damage.look(&frame(10, Needs::NOTHING)));
        assert!(!damage.look(&frame(11, back(1))));
        damage.lose(11);
        assert!(damage.look(&frame(12, back(1))), "it needs the lost one");
        assert!(!damage.look(&frame(13, back(3))), "it needs another one");
        assert!(damage.look(&frame(14, back(1).and(back(2)))), "a chain");
        assert!(!damage.look(&frame(15, Needs::NOTHING)));
        assert!(damage.look(&frame(12, back(1))), "a late packet of it");
        assert!(!damage.look(&frame(90, back(32))), "out of mind");
    }

    #[test]
    fn numbers_wrap() {
        let mut damage = Damage::default();
        damage.lose(u32::MAX);
        assert!(damage.look(&frame(0, Needs::back(1))));
        assert!(!damage.look(&frame(1, Needs::back(3))));
    }
}
