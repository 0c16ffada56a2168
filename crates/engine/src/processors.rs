//! Which processors threads run on, where each worker has one of its own (`limits.pin_workers`).

use std::fs;

use outflow_config::Limits;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::message::ControlError;

/// How many workers there are, and where they and everything else run; anywhere, if nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processors {
    /// How many workers there are.
    pub workers: usize,
    /// The processor of each worker.
    own: Vec<usize>,
    /// Those that are left.
    others: Vec<usize>,
    /// How many there are in all.
    count: usize,
}

impl Processors {
    /// As the configuration says.
    ///
    /// # Errors
    /// There are not as many processors as workers that are to have one each, or the system does not say.
    pub fn of(limits: &Limits) -> Result<Self, ControlError> {
        if !limits.pin_workers {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            let workers = if limits.workers == 0 { count } else { limits.workers };
            return Ok(Processors { workers, own: Vec::new(), others: Vec::new(), count });
        }
        let allowed = sched_getaffinity(None);
        let allowed = allowed.map_err(|e| ControlError::system("asking for processors", &e.into()))?;
        let allowed = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        Self::shared_out(allowed, limits.workers)
    }

    /// One for each worker; 0 stands for as many as leave one to everything else.
    fn shared_out(mut allowed: Vec<usize>, workers: usize) -> Result<Self, ControlError> {
        let workers = if workers == 0 { allowed.len().saturating_sub(1).max(1) } else { workers };
        if workers > allowed.len() {
            return Err(ControlError::Configuration(format!(
                "limits.pin_workers: of {} processors, {workers} workers cannot have one each: set limits.workers \
                 to {} or less, or leave pin_workers out",
                allowed.len(),
                allowed.len()
            )));
        }
        let (count, others) = (allowed.len(), allowed.split_off(workers));
        Ok(Processors { workers, own: allowed, others, count })
    }

    /// Whether a thread more can run while one of the workers does.
    pub const fn have_room(&self) -> bool {
        self.count > 1
    }

    /// Has all threads of this process run where no worker is, if there is such a place, and with them those that
    /// they begin. To be called before there are workers.
    pub fn clear(&self) -> Result<(), ControlError> {
        if self.own.is_empty() {
            return Ok(());
        }
        let Processors { own, others, .. } = self;
        tracing::info!(workers = ?own, ?others, "each worker keeps to a processor of its own");
        if others.is_empty() {
            tracing::warn!("no processor is left for anything else: set limits.workers to one less");
            return Ok(());
        }
        let failed = |e| ControlError::system("listing threads", &e);
        let others = set(others);
        for thread in fs::read_dir("/proc/self/task").map_err(failed)? {
            let name = thread.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            if let Some(thread) = number.and_then(Pid::from_raw) {
                // It may have ended meanwhile.
                let _ = sched_setaffinity(Some(thread), &others);
            }
        }
        Ok(())
    }

    /// Has the thread that calls this keep to the processor of this worker, if it is to have one.
    pub fn keep(&self, worker: usize) -> std::io::Result<()> {
        match self.own.get(worker) {
            Some(own) => Ok(sched_setaffinity(None, &set(&[*own]))?),
            None => Ok(()),
        }
    }
}

fn set(processors: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    processors.iter().for_each(|processor| set.set(*processor));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_has_one_and_everything_else_the_rest() {
        let shared = |allowed: &[usize], workers| {
            let shared = Processors::shared_out(allowed.to_vec(), workers).expect("there is room");
            assert_eq!(shared.workers, shared.own.len());
            assert_eq!(shared.have_room(), allowed.len() > 1);
            (shared.own, shared.others)
        };
        assert_eq!(shared(&[2, 3, 7, 8], 1), (vec![2], vec![3, 7, 8]));
        assert_eq!(shared(&[2, 3, 7, 8], 0), (vec![2, 3, 7], vec![8]));
        assert_eq!(shared(&[2, 3], 2), (vec![2, 3], vec![]));
        assert_eq!(shared(&[5], 0), (vec![5], vec![]));
        let error = Processors::shared_out(vec![0, 1], 3).expect_err("too many").to_string();
        assert!(error.contains("set limits.workers to 2 or less"), "{error}");
    }

    #[test]
    fn workers_that_have_none_run_anywhere() {
        let any = Processors::of(&Limits { workers: 3, ..Limits::default() }).expect("nothing is asked");
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(any, Processors { workers: 3, own: Vec::new(), others: Vec::new(), count });
        assert_eq!(any.have_room(), count > 1);
        any.clear()
            .and_then(|()| any.keep(0).map_err(|e| ControlError::system("", &e)))
            .expect("nothing to do");
    }
}
