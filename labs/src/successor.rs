//! Processes that go on with what others did: they are no children of this one, and are found by what they were started
//! as.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

/// The processes that were started as this program with this argument, and run; the youngest at the end.
pub(crate) fn all(program: &Path, argument: &str) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        // Processes end meanwhile. One that has ended and is not waited for yet has no command line.
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let mut words = line.split('\0');
        let is_it = words.next().is_some_and(|name| Path::new(name).file_name() == program.file_name());
        if is_it
            && words.any(|word| word == argument)
            && let Some(process) = Process::of(pid)
            && process.runs()
        {
            found.push((process.began, pid, process.parent));
        }
    }
    found.sort_unstable();
    // One that has just been started by another is the same, until it becomes another program.
    let parents: BTreeSet<u32> = found.iter().map(|(_, pid, _)| *pid).collect();
    let is_first = |(_, _, parent): &(u64, u32, u32)| !parents.contains(parent);
    Ok(found.into_iter().filter(is_first).map(|(_, pid, _)| pid).collect())
}

/// Whether a process is there, and has not ended.
pub(crate) fn runs(pid: u32) -> bool {
    Process::of(pid).is_some_and(|process| process.runs())
}

/// What the system says of a process.
struct Process {
    state: char,
    parent: u32,
    /// In ticks since the machine's start.
    began: u64,
}

impl Process {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// From `/proc/PID/stat` (proc_pid_stat(5)): the name, in the second field, may have anything in it.
    fn parse(stat: &str) -> Option<Self> {
        let (_, behind_the_name) = stat.rsplit_once(") ")?;
        let mut fields = behind_the_name.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        // Field 22; the parent is field 4.
        Some(Self { state, parent, began: fields.nth(17)?.parse().ok()? })
    }

    const fn runs(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::process::{Program, Running};

    #[test]
    fn state_and_start_are_found_behind_any_name() {
        let stat = "17 (a) Z (b) S 11 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let process = Process::parse(stat).expect("it is whole");
        assert_eq!((process.state, process.parent, process.began), ('S', 11, 4711));
        assert!(process.runs() && !Process { state: 'Z', ..process }.runs());
        assert!(Process::parse("17 (cut) S 1 2").is_none());
    }

    #[test]
    fn processes_are_found_by_what_they_were_started_as_until_they_end() {
        let folder = tempfile::tempdir().expect("there is room");
        let argument = folder.path().display().to_string();
        let found = |name: &str| all(Path::new(name), &argument).expect("/proc is there");
        let start = || -> Running {
            let line = ["-c", "sleep 302 & wait", "x", &argument];
            let started = Program::new("sh").args(line).start().expect("it starts");
            let until = Instant::now() + Duration::from_secs(20);
            while found("/other/sh").last() != Some(&started.pid()) {
                assert!(Instant::now() < until, "it is not found");
            }
            // Starts are told to a hundredth of a second.
            std::thread::sleep(Duration::from_millis(30));
            started
        };
        let (first, second) = (start(), start());
        let pids = [first.pid(), second.pid()];
        assert_eq!((found("sh"), found("bash")), (pids.to_vec(), Vec::new()));
        assert!(runs(pids[1]));
        drop(second);
        assert_eq!(found("sh"), pids[..1]);
        assert!(!runs(pids[1]));
    }
}
