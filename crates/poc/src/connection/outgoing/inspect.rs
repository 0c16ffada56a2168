//! What tests want to know.

use super::*;

impl Outgoing {
    pub(in crate::connection) fn check_accounts(&self) {
        let queued = self.units.iter().map(|unit| u64::from(unit.queued())).sum::<u64>();
        assert_eq!(self.queued_bytes, queued, "bytes that wait");
        let begun = self.units.iter().filter(|unit| unit.is_begun);
        assert_eq!(self.outstanding, begun.map(|unit| u64::from(unit.bytes)).sum::<u64>(), "outstanding");
        assert!(self.outstanding <= u64::from(self.flow.buffer_bytes));
        assert!(self.queued_bytes <= u64::from(self.flow.buffer_bytes));
        assert!(self.units.len() <= UNITS_OUTSTANDING_MAX);
        let next = self.base + self.units.len() as u64;
        assert!(self.next == next || self.base >= self.next, "{next} and {}", self.next);
        assert!(self.base <= self.cursor && self.told <= self.next);
        self.again.check_accounts();
    }

    pub(in crate::connection) fn describe(&self) -> String {
        let (base, cursor, next, told) = (self.base, self.cursor, self.next, self.told);
        let engine = (self.engine.settled_below(), self.engine.next_timeout());
        format!(
            "base {base}, cursor {cursor}, next {next}, told {told}, window {}, queued {}, outstanding {}, \
             again {}, news {:?}, engine {engine:?}, {:?}, {:?}",
            self.window_end,
            self.queued_bytes,
            self.outstanding,
            self.again.len(),
            self.news,
            self.counts,
            self.flow,
        )
    }
}
