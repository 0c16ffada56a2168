//! What happened.

use core::time::Duration;

use outflow_media::Time;

const SLOT_MS: u64 = 100;

/// What is counted while a world runs.
#[derive(Debug, Default)]
pub struct Record {
    /// Bytes that arrived, by flow, by tenth of a second.
    delivered: Vec<Vec<u64>>,
    /// Every 5 ms: what waited, bytes that were served until then, and that could have been.
    samples: Vec<(Duration, u64, u64)>,
    served: u64,
    possible: u64,
}

/// How a queue was over a time.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// The mean wait.
    pub mean_ms: f64,
    /// The wait that 95 % are below.
    pub p95_ms: f64,
    /// The longest wait.
    pub most_ms: f64,
    /// Of what the link could carry.
    pub used: f64,
}

impl Record {
    pub(super) fn add(&mut self) {
        self.delivered.push(Vec::new());
    }

    pub(super) fn delivered(&mut self, now: Time, flow: usize, bytes: u64) {
        let slot = (now.as_millis() / SLOT_MS) as usize;
        let slots = &mut self.delivered[flow];
        slots.resize(slots.len().max(slot + 1), 0);
        slots[slot] += bytes;
    }

    pub(super) fn served(&mut self, bytes: u64) {
        self.served += bytes;
    }

    pub(super) fn sample(&mut self, queue: Duration, rate_bps: u64, every: Duration) {
        self.samples.push((queue, self.served, self.possible));
        self.possible += super::super::pacer::bytes_in(every, rate_bps);
    }

    /// Bits a second of a flow.
    pub fn rate(&self, flow: usize, from_ms: u64, to_ms: u64) -> f64 {
        let slots = &self.delivered[flow];
        let within = (from_ms / SLOT_MS) as usize..(to_ms / SLOT_MS) as usize;
        let bytes: u64 = within.filter_map(|slot| slots.get(slot)).sum();
        bytes as f64 * 8000.0 / (to_ms - from_ms) as f64
    }

    /// How the queue was from one moment to another.
    pub fn queue(&self, from_ms: u64, to_ms: u64) -> Queue {
        let within = &self.samples[(from_ms / 5) as usize..(to_ms / 5) as usize];
        let mut waits: Vec<f64> = within.iter().map(|(queue, ..)| queue.as_secs_f64() * 1000.0).collect();
        waits.sort_by(f64::total_cmp);
        let (first, last) = (within[0], within[within.len() - 1]);
        Queue {
            mean_ms: waits.iter().sum::<f64>() / waits.len() as f64,
            p95_ms: waits[waits.len() * 95 / 100],
            most_ms: waits[waits.len() - 1],
            used: (last.1 - first.1) as f64 / (last.2 - first.2).max(1) as f64,
        }
    }

    /// Jain's index of some flows (Jain, Chiu, Hawe, 1984).
    pub fn fairness(&self, flows: &[usize], from_ms: u64, to_ms: u64) -> f64 {
        let rates: Vec<f64> = flows.iter().map(|flow| self.rate(*flow, from_ms, to_ms)).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        sum * sum / (rates.len() as f64 * squares.max(1.0))
    }

    /// From when on the rate of a flow, over tenths of a second, stayed between bounds for a second.
    pub fn settles(&self, flow: usize, from_ms: u64, to_ms: u64, bounds: (f64, f64)) -> Option<u64> {
        let is_within = |ms: u64| (bounds.0..bounds.1).contains(&self.rate(flow, ms, ms + SLOT_MS));
        let settles = |ms: &u64| (*ms..ms + 1000).step_by(SLOT_MS as usize).all(is_within);
        (from_ms..to_ms).step_by(SLOT_MS as usize).find(settles).map(|ms| ms - from_ms)
    }
}
