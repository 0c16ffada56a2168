//! How busy the process is.

use std::time::{Duration, Instant};

/// CPU time of this process.
#[derive(Debug)]
pub(crate) struct Usage {
    at: Instant,
    cpu: Duration,
}

/// Over less than that, in seconds, the share of a core says nothing.
const SHORTEST_INTERVAL: f64 = 0.05;

impl Usage {
    /// Begins to measure.
    pub(crate) fn start() -> Self {
        Usage { at: Instant::now(), cpu: cpu_time() }
    }

    /// CPU time since the last call, percent of one core.
    pub(crate) fn cpu_percent(&mut self) -> f64 {
        let (at, cpu) = (Instant::now(), cpu_time());
        let passed = at.duration_since(self.at).as_secs_f64();
        if passed < SHORTEST_INTERVAL {
            return 0.0;
        }
        let used = cpu.saturating_sub(self.cpu).as_secs_f64();
        *self = Usage { at, cpu };
        used / passed * 100.0
    }
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
