//! What streams reserve of workers' time, and where there is room for it.

use std::collections::BTreeMap;

use outflow_config::RESERVE;
use outflow_engine::message::ControlError;

use crate::placing::StreamEntry;

/// What is reserved by worker, thousandths of a percent of its time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reserves(BTreeMap<usize, u32>);

impl Reserves {
    /// What these streams reserve, wherever they are served.
    pub(crate) fn of<'a>(streams: impl Iterator<Item = &'a StreamEntry>) -> Self {
        let mut all = Reserves::default();
        for stream in streams.filter(|stream| stream.options.reserve > 0) {
            for worker in stream.serving() {
                *all.0.entry(worker).or_default() += stream.options.reserve;
            }
        }
        all
    }

    /// Whether a worker has room for this, too.
    pub(crate) fn fits(&self, worker: usize, reserve: u32) -> bool {
        let others = self.0.get(&worker).copied().unwrap_or(0);
        reserve == 0 || others.saturating_add(reserve) <= most()
    }

    /// A stream is to be at a worker, and reserves this there.
    ///
    /// # Errors
    /// There is no room for it: what to do.
    pub(crate) fn demand(&self, stream: &str, worker: usize, reserve: u32) -> Result<(), ControlError> {
        let left = most().saturating_sub(self.0.get(&worker).copied().unwrap_or(0));
        match self.fits(worker, reserve) {
            true => Ok(()),
            false => Err(ControlError::NoRoom(format!(
                "stream '{stream}' reserves {} % of a worker, of which {} % can be reserved: lower its reserve, or \
                 that of other streams, or give the relay more workers",
                percent(reserve),
                percent(left)
            ))),
        }
    }
}

/// How much of a worker can be reserved, thousandths of a percent.
fn most() -> u32 {
    RESERVE.end().thousandths()
}

fn percent(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_can_be_reserved_as_far_as_the_limit_and_no_further() {
        let reserves = Reserves(BTreeMap::from([(0, 60_000)]));
        assert!(reserves.fits(0, 20_000) && !reserves.fits(0, 21_000) && reserves.fits(1, 80_000));
        assert!(reserves.fits(0, 0), "nothing is reserved");
        assert_eq!(reserves.demand("a", 0, 20_000), Ok(()));
        let ControlError::NoRoom(why) = reserves.demand("a", 0, 25_500).expect_err("no room") else {
            panic!("another error")
        };
        assert!(
            why.starts_with("stream 'a' reserves 25.5 % of a worker, of which 20 % can be reserved"),
            "{why}"
        );
    }
}
