//! What a receiver has besides its network (GMS, section III.C): CPU time and charge. They bound what it asks
//! for; what the network carries is found below that bound.

use core::time::Duration;

use outflow_media::Time;

/// More of the CPU than that is too much, if it lasts for [`BUSY_FOR`].
const BUSY_PERCENT: u8 = 90;
const BUSY_FOR: Duration = Duration::from_secs(1);

/// Less than that leaves room for a better level, if it lasts for [`FREE_FOR`].
const FREE_PERCENT: u8 = 60;
const FREE_FOR: Duration = Duration::from_secs(5);

/// With so much charge, or more, there is no bound; with so little the base is all there is.
const CHARGE_FULL: u8 = 50;
const CHARGE_LOW: u8 = 10;

/// The charge has to rise by this many percent before the bound moves back: gauges waver.
const CHARGE_THRESHOLD: u8 = 2;

/// What a receiver has at a moment; `None` where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// How much of the CPU is in use, in percent of all cores.
    pub cpu_percent: Option<u8>,
    /// The charge that is left in percent, while it is used up: not on mains.
    pub charge_percent: Option<u8>,
}

/// Which resource bounds the level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scarce {
    Cpu(u8),
    Charge(u8),
}

/// The best level that the resources allow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bound {
    cpu: Cpu,
    /// The lowest charge seen lately.
    charge: Option<u8>,
}

#[derive(Debug, Clone, Default)]
struct Cpu {
    /// The best level, counted from 0.
    bound: u8,
    percent: u8,
    busy_since: Option<Time>,
    free_since: Option<Time>,
}

impl Bound {
    /// Notes what there is, for a stream that has `levels` levels.
    pub(crate) fn note(&mut self, now: Time, resources: Resources, levels: u8) {
        if let Some(percent) = resources.cpu_percent {
            self.cpu.note(now, percent, levels);
        }
        self.charge = resources.charge_percent.map(|charge| match self.charge {
            Some(before) if charge > before && charge - before < CHARGE_THRESHOLD => before,
            _ => charge,
        });
    }

    /// The best level for a stream that has `levels` levels, and what is scarce if that is not 1.
    pub(crate) fn best(&self, levels: u8) -> (u8, Option<Scarce>) {
        let by_charge = self.charge.map_or(1, |charge| by_charge(charge, levels));
        let by_cpu = self.cpu.bound.saturating_add(1).min(levels.max(1));
        match by_charge.max(by_cpu) {
            1 => (1, None),
            level if level == by_charge => (level, self.charge.map(Scarce::Charge)),
            level => (level, Some(Scarce::Cpu(self.cpu.percent))),
        }
    }
}

impl Cpu {
    /// Too busy: an eighth of the levels less, and another look after as long. Free: one more.
    fn note(&mut self, now: Time, percent: u8, levels: u8) {
        self.percent = percent;
        self.busy_since = (percent >= BUSY_PERCENT).then(|| self.busy_since.unwrap_or(now));
        self.free_since = (percent <= FREE_PERCENT).then(|| self.free_since.unwrap_or(now));
        if self.busy_since.is_some_and(|since| now.since(since) >= BUSY_FOR) {
            let step = (levels / 8).max(1);
            self.bound = self.bound.saturating_add(step).min(levels.saturating_sub(1));
            self.busy_since = Some(now);
        }
        if self.free_since.is_some_and(|since| now.since(since) >= FREE_FOR) {
            self.bound = self.bound.saturating_sub(1);
            self.free_since = Some(now);
        }
    }
}

/// In proportion between full and low.
fn by_charge(percent: u8, levels: u8) -> u8 {
    let (above, range) = (percent.clamp(CHARGE_LOW, CHARGE_FULL) - CHARGE_LOW, CHARGE_FULL - CHARGE_LOW);
    let missing = u16::from(range - above) * u16::from(levels.max(1) - 1) / u16::from(range);
    1 + missing as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, cpu: u8) -> (Time, Resources) {
        (Time::from_millis(ms), Resources { cpu_percent: Some(cpu), charge_percent: None })
    }

    #[test]
    fn a_busy_cpu_takes_levels_away_and_a_free_one_gives_them_back_later() {
        let mut bound = Bound::default();
        let mut note = |ms, cpu| {
            let (now, resources) = at(ms, cpu);
            bound.note(now, resources, 33);
            bound.best(33)
        };
        assert_eq!(note(0, 95), (1, None), "it may be over at once");
        assert_eq!(note(999, 99), (1, None));
        assert_eq!(note(1000, 92), (5, Some(Scarce::Cpu(92))));
        assert_eq!(note(1500, 92).0, 5);
        assert_eq!(note(1600, 80).0, 5, "well used");
        assert_eq!(note(2500, 95).0, 5, "it begins again");
        assert_eq!(note(3500, 95).0, 9);
        assert_eq!([note(4000, 30).0, note(8999, 30).0, note(9000, 30).0, note(14_000, 30).0], [9, 9, 8, 7]);
        for second in 20..100 {
            note(second * 1000, 100);
        }
        assert_eq!(note(100_000, 100).0, 33, "no further than the base");
    }

    #[test]
    fn the_less_charge_the_lower_the_level() {
        let levels = |charges: &[u8]| charges.iter().map(|c| by_charge(*c, 33)).collect::<Vec<_>>();
        assert_eq!(levels(&[100, 50, 30, 10, 0]), [1, 1, 17, 33, 33]);
        assert_eq!([by_charge(0, 1), by_charge(49, 3), by_charge(29, 3), by_charge(5, 3)], [1, 1, 2, 3]);
    }

    #[test]
    fn a_gauge_that_wavers_moves_nothing_and_mains_lift_the_bound() {
        let mut bound = Bound::default();
        let mut note = |charge| {
            let resources = Resources { cpu_percent: None, charge_percent: charge };
            bound.note(Time::ZERO, resources, 33);
            bound.best(33)
        };
        assert_eq!(note(Some(30)), (17, Some(Scarce::Charge(30))));
        assert_eq!([note(Some(31)).0, note(Some(30)).0, note(Some(32)).0], [17, 17, 15]);
        assert_eq!(note(None), (1, None));
    }
}
