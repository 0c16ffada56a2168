//! Which source of reports is taken for a receiver's. An address can be forged, the number (SSRC) that a receiver chose
//! at random cannot be guessed: the first that reports from its address is it, until it leaves or falls silent.

use outflow_media::Time;

use crate::limits::REPORTER_SILENCE;

/// The source of reports of a receiver's track, and when it was heard last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pin(Option<(u32, Time)>);

impl Pin {
    /// A source reports at `now`. Answers whether it is the receiver's.
    pub(super) fn hear(&mut self, now: Time, ssrc: u32) -> bool {
        let holds = |(known, heard): (u32, Time)| known != ssrc && now.since(heard) < REPORTER_SILENCE;
        if self.0.is_some_and(holds) {
            return false;
        }
        self.0 = Some((ssrc, now));
        true
    }

    /// Whether a source is the receiver's, which has reported.
    pub(super) fn is(&self, ssrc: u32) -> bool {
        self.0.is_some_and(|(known, _)| known == ssrc)
    }

    /// A source leaves.
    pub(super) fn leave(&mut self, ssrc: u32) {
        self.0.take_if(|(known, _)| *known == ssrc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_reports_is_the_receiver_until_it_is_silent_or_leaves() {
        let mut pin = Pin::default();
        let at = |seconds: u64| Time::from_millis(seconds * 1000);
        assert!(!pin.is(7), "none has reported");
        assert!(pin.hear(at(1), 7) && pin.is(7));
        assert!(!pin.hear(at(2), 8) && !pin.is(8));
        let silence = REPORTER_SILENCE.as_secs();
        assert!(pin.hear(at(silence), 7), "it goes on");
        assert!(!pin.hear(at(silence + 1), 8));
        assert!(pin.hear(at(2 * silence), 8) && !pin.is(7), "it was silent");
        pin.leave(7);
        assert!(pin.is(8));
        pin.leave(8);
        assert!(pin.hear(at(2 * silence), 7));
    }
}
