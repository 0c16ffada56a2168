//! What was given to a connection and is not known to have come: how long it is, and why it may not.

use std::collections::VecDeque;

use outflow_packet::DropReason;
use outflow_poc::connection::NotSent;
use outflow_relay::Report;

/// Units of which nothing was heard, at most; the oldest are forgotten then.
const UNITS_MAX: usize = 32_768;

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
    fn it_stays_as_long_as_it_may_be() {
        let mut ledger = Ledger::default();
        (0..2 * UNITS_MAX as u64).for_each(|unit| ledger.sent(unit, 1));
        assert_eq!(ledger.units.len(), UNITS_MAX);
        assert_eq!(ledger.lost(0), None);
        assert!(ledger.lost(2 * UNITS_MAX as u64 - 1).is_some());
    }
}
