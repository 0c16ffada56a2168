//! What gets through, by the receiver's clock: the incoming rate of section 5.5.

/// It is measured over half a second, in slots.
const SLOT_US: i64 = 50_000;
const SLOTS: usize = 10;

/// Less time than that says nothing.
const LEAST_US: i64 = 150_000;

/// Bytes that arrived over the last moments.
#[derive(Debug, Clone, Default)]
pub(super) struct Throughput {
    /// Bytes of each slot, by its number modulo their count.
    slots: [u32; SLOTS],
    /// When the first packet came that counts, and the newest, in microseconds of the receiver's clock.
    span: Option<(i64, i64)>,
}

impl Throughput {
    /// A packet arrived.
    pub(super) fn note(&mut self, received_us: i64, bytes: u64) {
        let window = SLOT_US * SLOTS as i64;
        let (first, newest) = self.span.unwrap_or((received_us, received_us));
        let is_near = |later: i64| (-window..window).contains(&later);
        if !received_us.checked_sub(newest).is_some_and(is_near) {
            // Nothing came for that long, or the clock leapt: it begins again.
            *self = Throughput::default();
            self.add(received_us, bytes);
            self.span = Some((received_us, received_us));
            return;
        }
        for slot in slot(newest) + 1..=slot(received_us) {
            self.slots[place(slot)] = 0;
        }
        let newest = newest.max(received_us);
        let oldest = (slot(newest) - SLOTS as i64 + 1).saturating_mul(SLOT_US);
        if received_us >= oldest {
            self.add(received_us, bytes);
        }
        self.span = Some((first.max(oldest), newest));
    }

    fn add(&mut self, received_us: i64, bytes: u64) {
        let slot = &mut self.slots[place(slot(received_us))];
        *slot = slot.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Bits a second; none if too little time has passed.
    pub(super) fn bps(&self) -> Option<f64> {
        let (first, newest) = self.span?;
        let span = newest - first;
        let bytes: u64 = self.slots.iter().map(|bytes| u64::from(*bytes)).sum();
        (span >= LEAST_US).then(|| bytes as f64 * 8_000_000.0 / span as f64)
    }
}

fn slot(at_us: i64) -> i64 {
    at_us.div_euclid(SLOT_US)
}

fn place(slot: i64) -> usize {
    slot.rem_euclid(SLOTS as i64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits a second after packets of 1250 bytes, one each `every` microseconds, from a moment on.
    fn after(throughput: &mut Throughput, from_us: i64, every: i64, count: i64) -> Option<f64> {
        (0..count).for_each(|n| throughput.note(from_us + n * every, 1250));
        throughput.bps()
    }

    #[test]
    fn it_is_that_of_the_last_half_second() {
        let mut throughput = Throughput::default();
        assert_eq!(after(&mut throughput, -70_000, 10_000, 15), None, "too little");
        let is_near = |bps: Option<f64>, of: f64| bps.is_some_and(|bps| (bps / of - 1.0).abs() < 0.05);
        assert!(is_near(after(&mut throughput, 80_000, 10_000, 100), 1e6));
        assert!(is_near(after(&mut throughput, 1_080_000, 2_000, 300), 5e6));
        assert!(is_near(after(&mut throughput, 1_680_000, 100_000, 8), 1e5), "{:?}", throughput.bps());
    }

    #[test]
    fn a_pause_or_a_leap_begins_again() {
        let mut throughput = Throughput::default();
        after(&mut throughput, 0, 10_000, 100);
        for from in [2_000_000, 9_000_000_000, 0, i64::MIN, i64::MAX] {
            throughput.note(from, 1250);
            assert_eq!(throughput.bps(), None, "{from}");
        }
    }

    #[test]
    fn what_comes_late_counts_where_it_came() {
        let mut throughput = Throughput::default();
        after(&mut throughput, 0, 10_000, 60);
        let before = throughput.bps().expect("a rate");
        throughput.note(400_000, 1250);
        let after = throughput.bps().expect("a rate");
        assert!(after > before && after < before * 1.05);
        // What is too old for that does not.
        throughput.note(99_000, 125_000);
        assert_eq!(throughput.bps(), Some(after));
    }
}
