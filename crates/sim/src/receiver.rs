//! A receiver at the end of its path.

use core::time::Duration;

use outflow_media::Time;

/// A byte stream's path: what is on the way drains at the path's rate, and when it is full the
/// sender has to wait until half of it has gone.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    bps: u64,
    buffer_bytes: usize,
    on_the_way: usize,
    drained: Time,
    stalled: bool,
}

impl Path {
    pub(crate) fn new(bps: u64, buffer_bytes: usize, now: Time) -> Self {
        Path { bps, buffer_bytes, on_the_way: 0, drained: now, stalled: false }
    }

    /// From now on nobody reads at its end.
    pub(crate) fn stall(&mut self, now: Time) {
        self.drain(now);
        self.stalled = true;
    }

    /// Takes a packet of so many bytes, if there is room for it.
    pub(crate) fn take(&mut self, now: Time, bytes: usize) -> bool {
        self.drain(now);
        let fits = self.on_the_way + bytes <= self.buffer_bytes;
        if fits {
            self.on_the_way += bytes;
        }
        fits
    }

    /// When half of its room will be free again; `None` if never.
    pub(crate) fn writable_at(&mut self, now: Time) -> Option<Time> {
        self.drain(now);
        if self.stalled {
            return None;
        }
        let excess = self.on_the_way.saturating_sub(self.buffer_bytes / 2) as u64;
        Some(now + Duration::from_nanos(excess * 8_000_000_000 / self.bps + 1))
    }

    fn drain(&mut self, now: Time) {
        if !self.stalled {
            let bits = now.since(self.drained).as_nanos() * u128::from(self.bps) / 1_000_000_000;
            self.on_the_way = self.on_the_way.saturating_sub((bits / 8) as usize);
        }
        self.drained = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_path_takes_more_when_half_of_it_has_drained() {
        let mut path = Path::new(8_000, 100_000, Time::ZERO);
        assert!(path.take(Time::ZERO, 100_000));
        assert!(!path.take(Time::ZERO, 1));
        let at = path.writable_at(Time::ZERO).expect("it drains");
        assert_eq!(at.as_millis(), 50_000);
        assert!(path.take(at, 50_000));
        path.stall(at);
        assert_eq!(path.writable_at(at + Duration::from_secs(1_000)), None);
    }
}
