//! What was given to a connection and is not known to have come: how long it is, and why it may not.

use std::collections::VecDeque;

use outflow_packet::DropReason;
use outflow_poc::connection::NotSent;
use outflow_relay::Report;

use crate::saved::SavedLedger;

/// Units of which nothing was heard, at most; the oldest are forgotten then.
const UNITS_MAX: usize = 32_768;

/// Why a unit may not come, as that is saved.
const REASONS: [DropReason; 4] =
    [DropReason::NotRepaired, DropReason::Late, DropReason::LessValuable, DropReason::DependsOnDropped];

/// Units by their numbers, which are given in turn.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The number of the first.
    base: u64,
    units: VecDeque<(u32, DropReason)>,
}

impl Ledger {
    /// A unit was given: that many bytes of a packet, or none if it is no packet of the stream.
    pub(super) fn sent(&mut self, unit: u64, bytes: usize) {
        if self.units.is_empty() {
            self.base = unit;
        }
        self.units.push_back((u32::try_from(bytes).unwrap_or(u32::MAX), DropReason::NotRepaired));
        if self.units.len() > UNITS_MAX {
            self.units.pop_front();
            self.base += 1;
        }
    }

    /// This end gave a unit up; whether the other one has it is not known yet.
    pub(super) fn given_up(&mut self, unit: u64, why: NotSent) {
        if let Some((_, reason)) = self.unit(unit) {
            *reason = match why {
                NotSent::TooLate | NotSent::NotNeeded => DropReason::Late,
                NotSent::Overload => DropReason::LessValuable,
                NotSent::Dependency => DropReason::DependsOnDropped,
                NotSent::NotRepaired(_) => DropReason::NotRepaired,
            };
        }
    }

    /// The other end is done with a unit, and has not had it: what to tell the core.
    pub(super) fn lost(&mut self, unit: u64) -> Option<Report> {
        let (bytes, reason) = *self.unit(unit).filter(|(bytes, _)| *bytes > 0)?;
        Some(Report::GivenUp { reason, bytes: u64::from(bytes) })
    }

    /// All from this unit on: of those below, nothing is heard any more.
    pub(super) fn save(&self, from: u64) -> SavedLedger {
        let heard =
            usize::try_from(from.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.units.len());
        let number =
            |reason: DropReason| REASONS.iter().position(|known| *known == reason).unwrap_or_default() as u8;
        let units = self.units.range(heard..).map(|(bytes, reason)| (*bytes, number(*reason)));
        SavedLedger { base: self.base + heard as u64, units: units.collect() }
    }

    pub(super) fn restore(saved: &SavedLedger) -> Self {
        let reason = |number: u8| REASONS.get(usize::from(number)).copied().unwrap_or(REASONS[0]);
        let left_out = saved.units.len().saturating_sub(UNITS_MAX);
        let units = saved.units.iter().skip(left_out).map(|(bytes, number)| (*bytes, reason(*number)));
        Ledger { base: saved.base.saturating_add(left_out as u64), units: units.collect() }
    }

    fn unit(&mut self, unit: u64) -> Option<&mut (u32, DropReason)> {
        let index = usize::try_from(unit.checked_sub(self.base)?).ok()?;
        self.units.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_told_with_its_length_and_the_reason() {
        let mut ledger = Ledger::default();
        for unit in 1..=3 {
            ledger.sent(unit, 100 * unit as usize);
        }
        ledger.given_up(2, NotSent::Overload);
        let told = |reason, bytes| Some(Report::GivenUp { reason, bytes });
        assert_eq!(ledger.lost(2), told(DropReason::LessValuable, 200));
        assert_eq!(ledger.lost(3), told(DropReason::NotRepaired, 300));
        assert_eq!((ledger.lost(0), ledger.lost(4)), (None, None));
        ledger.sent(4, 0);
        assert_eq!(ledger.lost(4), None, "it is no packet of the stream");
    }

    #[test]
    fn what_may_still_be_heard_of_goes_on_in_another_process() {
        let mut ledger = Ledger::default();
        (1..=4).for_each(|unit| ledger.sent(unit, 100 * unit as usize));
        ledger.given_up(3, NotSent::Overload);
        for (from, first) in [(0, 1), (2, 2), (5, 5), (9, 5)] {
            let bytes = minicbor::to_vec(ledger.save(from)).expect("memory takes all that is written to it");
            let saved: SavedLedger = minicbor::decode(&bytes).expect("it was just written");
            let mut again = Ledger::restore(&saved);
            for unit in 0..7 {
                let expected = if unit < first { None } else { ledger.lost(unit) };
                assert_eq!(again.lost(unit), expected, "{unit} of those from {from} on");
            }
        }
        let long = SavedLedger { base: 7, units: vec![(1, 9); UNITS_MAX + 1] };
        let again = Ledger::restore(&long);
        assert_eq!((again.base, again.units.len()), (8, UNITS_MAX));
    }

    #[test]
    fn it_stays_as_long_as_it_may_be() {
        let mut ledger = Ledger::default();
        (0..2 * UNITS_MAX as u64).for_each(|unit| ledger.sent(unit, 1));
        assert_eq!(ledger.units.len(), UNITS_MAX);
        assert_eq!(ledger.lost(0), None);
        assert!(ledger.lost(2 * UNITS_MAX as u64 - 1).is_some());
    }
}
