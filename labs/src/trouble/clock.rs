//! The relay's clock, set while that of the machine goes on: a library that is loaded into the relay
//! (`labs/chaos/clock.c`) answers what the relay asks the system.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use anyhow::Result;
use tempfile::NamedTempFile;

use crate::process::Program;

/// The library.
const LIBRARY: &str = concat!(env!("OUT_DIR"), "/clock.so");
/// What it reads: the seconds, how often it is to fail, the beginning of threads' names, whether to tasks alone that
/// have not asked lately.
const FAILURES: u64 = 8;
const NAMES: u64 = 16;
const NAMES_BYTES: usize = 16;
const SELDOM: u64 = 32;
const BYTES: u64 = 40;

/// For how long it is noted which tasks ask, before it fails to one that has not.
const LATELY: Duration = Duration::from_secs(1);

/// A clock as it is set.
pub struct Clock {
    setting: NamedTempFile,
}

impl Clock {
    /// As the machine's is.
    pub fn new() -> Result<Self> {
        let clock = Self { setting: NamedTempFile::new()? };
        clock.set(0)?;
        clock.setting.as_file().set_len(BYTES)?;
        Ok(clock)
    }

    /// The same program, which has this clock.
    pub fn of(&self, program: Program) -> Program {
        let setting = self.setting.path().display().to_string();
        program.env("LD_PRELOAD", LIBRARY).env("CHAOS_CLOCK", &setting)
    }

    /// It is ahead of the machine's by this much from now on.
    pub fn set(&self, ahead_s: i64) -> Result<()> {
        self.put(0, ahead_s)
    }

    /// It fails the next time that a thread asks whose name begins so. Rust's library panics then.
    pub fn fail_once(&self, threads: &str) -> Result<()> {
        self.name(threads)?;
        self.put(SELDOM, 0)?;
        self.put(FAILURES, 1)
    }

    /// The same where a task asks that does so seldom: no connection by which media comes.
    pub fn fail_once_to_one_that_asks_seldom(&self, threads: &str) -> Result<()> {
        self.name(threads)?;
        self.put(SELDOM, 1)?;
        std::thread::sleep(LATELY);
        self.put(FAILURES, 1)
    }

    fn name(&self, threads: &str) -> Result<()> {
        let mut name = [0; NAMES_BYTES];
        name[..threads.len()].copy_from_slice(threads.as_bytes());
        Ok(self.setting.as_file().write_all_at(&name, NAMES)?)
    }

    fn put(&self, at: u64, value: i64) -> Result<()> {
        Ok(self.setting.as_file().write_all_at(&value.to_ne_bytes(), at)?)
    }

    /// Whether it has failed as it was to.
    pub fn has_failed(&self) -> Result<bool> {
        let mut left = [0; 8];
        self.setting.as_file().read_exact_at(&mut left, FAILURES)?;
        Ok(i64::from_ne_bytes(left) <= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::PATIENCE;

    #[test]
    fn a_program_has_the_clock_that_is_set_and_the_machine_has_not() -> Result<()> {
        let clock = Clock::new()?;
        // It begins with the time that it has then.
        let date = || -> Result<i64> {
            let done = clock.of(Program::words("date +%s")).finish(PATIENCE)?;
            Ok(done.stdout.trim().parse()?)
        };
        let machine = || std::time::UNIX_EPOCH.elapsed().map(|since| since.as_secs().cast_signed());
        assert!((date()? - machine()?).abs() < 60);
        clock.set(-3600)?;
        assert!((date()? - machine()? + 3600).abs() < 60);
        assert!(machine()? > 1_700_000_000);
        Ok(())
    }
}
