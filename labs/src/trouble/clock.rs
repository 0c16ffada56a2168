//! The relay's clock, set while that of the machine goes on: a library that is loaded into the relay
//! (`labs/chaos/clock.c`) answers what the relay asks the system.

use std::os::unix::fs::FileExt;

use anyhow::Result;
use tempfile::NamedTempFile;

use crate::process::Program;

/// The library.
const LIBRARY: &str = concat!(env!("OUT_DIR"), "/clock.so");
/// Where the beginning of threads' names stands in what it reads, behind the seconds, and its bytes.
const NAMES: (u64, usize) = (8, 16);

/// A clock as it is set.
pub(crate) struct Clock {
    setting: NamedTempFile,
}

impl Clock {
    /// As the machine's is.
    pub(crate) fn new() -> Result<Self> {
        let clock = Self { setting: NamedTempFile::new()? };
        clock.set(0)?;
        clock.fail_to("")?;
        Ok(clock)
    }

    /// The same program, which has this clock.
    pub(crate) fn of(&self, program: Program) -> Program {
        let setting = self.setting.path().display().to_string();
        program.env("LD_PRELOAD", LIBRARY).env("CHAOS_CLOCK", &setting)
    }

    /// It is ahead of the machine's by this much from now on.
    pub(crate) fn set(&self, ahead_s: i64) -> Result<()> {
        Ok(self.setting.as_file().write_all_at(&ahead_s.to_ne_bytes(), 0)?)
    }

    /// It fails to threads whose names begin so from now on; to none if this is empty. Rust's library panics then.
    pub(crate) fn fail_to(&self, threads: &str) -> Result<()> {
        let (at, bytes) = NAMES;
        let mut name = vec![0; bytes];
        name[..threads.len()].copy_from_slice(threads.as_bytes());
        Ok(self.setting.as_file().write_all_at(&name, at)?)
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
