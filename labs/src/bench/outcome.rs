//! What came out of a measurement.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::arrivals::Arrivals;
use crate::core_time::Use;
use crate::receive::Period;

/// What came out.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Core time a delivered packet in nanoseconds, without what the relay uses when idle.
    pub ns: f64,
    /// Share of the core that was used, idle use included.
    pub load: f64,
    /// Share of the core that is used without a source.
    pub idle: f64,
    /// Packets that should have come and did not, of all sinks.
    pub lost: u64,
    /// Packets that came.
    pub delivered: u64,
    /// From the source's stamp to the sink: the median in microseconds.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// Share of packets that came merged with others (GSO).
    pub merged: f64,
    /// Share of the core that programs not measured took; it is in no other figure.
    pub strangers: f64,
    /// Whether others had so much of it that packets were late or lost for it.
    pub disturbed: bool,
    /// From the source's end until all had come that came, to a tenth of a second.
    pub behind: Duration,
    /// How long the relay took until it was ready and every sink had got something.
    pub start: Duration,
    /// Bytes of memory that the relay holds, those that the kernel holds for it included.
    pub memory: u64,
}

impl Outcome {
    pub(super) fn new(arrived: &Arrivals, sent: u64, used: Use, idle: Use) -> Result<Self> {
        Ok(Self {
            lost: arrived.lost(sent),
            p50_us: arrived.delay_us(0.5),
            p99_us: arrived.delay_us(0.99),
            merged: arrived.merged as f64 / arrived.total() as f64,
            ..Self::of_packets(arrived.total(), used, idle)?
        })
    }

    /// What came of a period in which receivers read a synthetic stream. Packets are its datagrams.
    pub fn of_period(period: &Period, used: Use, idle: Use) -> Result<Self> {
        Ok(Self {
            lost: period.sum(|meter| meter.lost),
            p50_us: period.delays.value_at_quantile(0.5) as f64,
            p99_us: period.delays.value_at_quantile(0.99) as f64,
            ..Self::of_packets(period.sum(|meter| meter.datagrams), used, idle)?
        })
    }

    /// What came of `delivered` packets, of which nothing else is known.
    pub fn of_packets(delivered: u64, used: Use, idle: Use) -> Result<Self> {
        ensure!(delivered > 0, "nothing was delivered");
        let own = (used.load() - idle.load()) * used.wall.as_secs_f64();
        Ok(Self {
            ns: own * 1e9 / delivered as f64,
            load: used.load(),
            idle: idle.load(),
            lost: 0,
            delivered,
            p50_us: f64::NAN,
            p99_us: f64::NAN,
            merged: 0.0,
            strangers: used.strangers.as_secs_f64() / used.wall.as_secs_f64(),
            disturbed: false,
            behind: Duration::ZERO,
            start: Duration::ZERO,
            memory: 0,
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        let (load, idle) = (percent(self.load), percent(self.idle));
        let (strangers, merged) = (percent(self.strangers), percent(self.merged));
        write!(f, "{:6.0} ns, {} lost", self.ns, self.lost)?;
        if !self.p99_us.is_nan() {
            write!(f, ", p99 {:.1} ms", self.p99_us / 1e3)?;
        }
        write!(f, ", core {load:.0} % (idle {idle:.1}, others {strangers:.0}), {merged:.0} % merged")?;
        if self.disturbed { write!(f, ", disturbed by others") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_without_a_source_is_not_the_packets_cost() {
        let arrived = Arrivals { counts: vec![50, 50], ..Arrivals::default() };
        let used = |wall, busy| Use {
            wall: Duration::from_millis(wall),
            busy: Duration::from_millis(busy),
            ..Use::default()
        };
        let outcome = Outcome::new(&arrived, 50, used(1000, 110), used(500, 5)).expect("something came");
        assert!((outcome.ns - 1e6).abs() < 1.0 && (outcome.load - 0.11).abs() < 1e-9, "{outcome:?}");
        assert_eq!((outcome.lost, outcome.delivered), (0, 100));
        assert!(Outcome::new(&Arrivals::default(), 50, used(1000, 110), used(500, 5)).is_err());
    }
}
