//! What each level costs: the `rate_table` of the paper (GMS, section III.C), measured while packets pass.

use outflow_media::Time;

use crate::Level;
use crate::limits::{RATE_TABLE_PARTS, RATE_TABLE_STEP};

/// Counts the bytes of each layer over the last few seconds.
#[derive(Debug, Default)]
pub struct Rates {
    /// By layer: bytes within each of the last steps. What is no part of the main track counts as base.
    layers: Vec<[u64; RATE_TABLE_PARTS]>,
    /// The step that goes on, and when it began.
    step: usize,
    began: Time,
    /// When the first step began.
    since: Option<Time>,
}

impl Rates {
    /// Counts a packet of a layer.
    pub fn add(&mut self, now: Time, layer: u8, bytes: usize) {
        if self.since.is_none() {
            (self.since, self.began) = (Some(now), now);
        }
        let passed = now.since(self.began).as_nanos() / RATE_TABLE_STEP.as_nanos();
        for _ in 0..passed.min(RATE_TABLE_PARTS as u128) {
            self.step = (self.step + 1) % RATE_TABLE_PARTS;
            self.layers.iter_mut().for_each(|steps| steps[self.step] = 0);
        }
        self.began = self.began + RATE_TABLE_STEP * passed as u32;
        let layer = usize::from(layer);
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, [0; RATE_TABLE_PARTS]);
        }
        self.layers[layer][self.step] += bytes as u64;
    }

    /// Bits a second of each level of `layers` layers, the best first. The step that goes on does not count,
    /// once there are others.
    pub fn table(&self, now: Time, layers: u8) -> Vec<u64> {
        let whole = self.since.map_or(0, |since| self.began.since(since).as_nanos());
        let span = whole.min(RATE_TABLE_STEP.as_nanos() * (RATE_TABLE_PARTS as u128 - 1));
        let counts = |index: usize| span == 0 || index != self.step;
        let span = if span == 0 { now.since(self.began).as_nanos().max(1_000_000) } else { span };
        // A source that has fallen silent costs less and less.
        let silent = now.since(self.began).as_nanos().saturating_sub(RATE_TABLE_STEP.as_nanos());
        let of_layer = |steps: &[u64; RATE_TABLE_PARTS]| -> u64 {
            steps.iter().enumerate().filter(|(index, _)| counts(*index)).map(|(_, bytes)| bytes).sum()
        };
        let bytes: Vec<u64> = self.layers.iter().map(of_layer).collect();
        let within = |level: u8| -> u64 {
            let max_layer = Level::new(level).map_or(0, |level| level.of(layers).layer());
            bytes.iter().take(usize::from(max_layer) + 1).sum()
        };
        let bps = |level| (u128::from(within(level)) * 8_000_000_000 / (span + silent)) as u64;
        (1..=layers.max(1)).map(bps).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_costs_what_its_layers_do() {
        let mut rates = Rates::default();
        assert_eq!(rates.table(Time::ZERO, 3), [0, 0, 0]);
        for ms in 0..20_000 {
            let now = Time::from_millis(7_000 + ms);
            rates.add(now, 0, 100);
            if ms % 2 == 0 {
                rates.add(now, 1, 100);
            }
            if ms >= 10_000 {
                rates.add(now, 2, 25);
            }
        }
        let now = Time::from_millis(27_000);
        assert_eq!(rates.table(now, 3), [1_400_000, 1_200_000, 800_000]);
        assert_eq!(rates.table(now, 0), [1_400_000], "nothing to choose");
        let later = rates.table(Time::from_millis(60_000), 3);
        assert!(later[0] < 200_000, "{later:?}");
    }

    #[test]
    fn the_first_moment_counts_as_it_is() {
        let mut rates = Rates::default();
        for ms in 0..100 {
            rates.add(Time::from_millis(ms), 0, 125);
        }
        assert_eq!(rates.table(Time::from_millis(100), 1), [1_000_000]);
    }
}
