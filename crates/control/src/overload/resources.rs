//! What the process takes of what it may take: memory and descriptors. What is read again and again is opened once: a
//! process that has no descriptors left has to see that.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// Where control groups of version 2 are seen.
const GROUPS: &str = "/sys/fs/cgroup";

/// Of what there is, a relay takes this many parts in four if nothing else is said.
const PARTS_OF_FOUR: u64 = 3;

/// What a default is a whole multiple of: people read it.
const ROUND: u64 = 1_000_000;

/// Something of which there is so much, and of which so much is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Share {
    /// What is taken.
    pub(crate) taken: u64,
    /// What there is; 0 if that is not known.
    pub(crate) all: u64,
}

/// Where memory and descriptors are read.
#[derive(Debug)]
pub(super) struct Resources {
    statm: Option<File>,
    group: Option<Group>,
    /// What the machine has, or less if the control group may have less.
    most: u64,
}

/// The control group that leaves the process the least memory.
#[derive(Debug)]
struct Group {
    max: File,
    current: File,
    stat: File,
}

impl Resources {
    /// Those of this process.
    pub(super) fn open() -> Self {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = folder_of(&own).and_then(|folder| Group::open(&folder));
        let machine = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let machine = number_after(&machine, "MemTotal:").map_or(u64::MAX, |kib| kib << 10);
        let most = group.as_ref().and_then(Group::max).map_or(machine, |max| max.min(machine));
        Resources { statm: File::open("/proc/self/statm").ok(), group, most }
    }

    /// How much memory a relay takes if nothing else is said; 0 if nothing is known of the machine.
    pub(super) fn usual_memory(&self) -> u64 {
        match self.most {
            u64::MAX => 0,
            most => most / 4 * PARTS_OF_FOUR / ROUND * ROUND,
        }
    }

    /// Resident memory, of this much; and of less, if others of its control group have taken the rest.
    pub(super) fn memory(&self, of: u64) -> Share {
        let statm = self.statm.as_ref().map(text).unwrap_or_default();
        let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
        let taken = pages * rustix::param::page_size() as u64;
        let left = self.group.as_ref().and_then(|group| group.leaves(taken)).unwrap_or(u64::MAX);
        Share { taken, all: of.min(left) }
    }
}

/// Open descriptors, of those that the process may have.
pub(super) fn descriptors() -> Share {
    let all = getrlimit(Resource::Nofile).current.unwrap_or(0);
    // Since Linux 6.2 the size of that folder is their number.
    let counted = rustix::fs::stat("/proc/self/fd").map_or(0, |stat| stat.st_size as u64);
    let taken = if counted > 0 { counted } else { counted_one_by_one().unwrap_or(all) };
    Share { taken, all }
}

/// The same where the system has not counted them; none if there is none left to look with.
fn counted_one_by_one() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

impl Group {
    /// Of this folder and those that it lies in, the one that may have least; none if all may have what there is.
    fn open(folder: &Path) -> Option<Self> {
        let limited = folder.ancestors().take_while(|folder| folder.starts_with(GROUPS));
        let limited = limited.filter_map(|folder| {
            let open = |name: &str| File::open(folder.join(name)).ok();
            let group = Group {
                max: open("memory.max")?,
                current: open("memory.current")?,
                stat: open("memory.stat")?,
            };
            Some((group.max()?, group))
        });
        limited.min_by_key(|(max, _)| *max).map(|(_, group)| group)
    }

    /// What it may have; none if that is all there is.
    fn max(&self) -> Option<u64> {
        text(&self.max).trim().parse().ok()
    }

    /// What it leaves a process that has taken so much of it: what the others hold, but for files, is not to be had.
    fn leaves(&self, taken: u64) -> Option<u64> {
        let current: u64 = text(&self.current).trim().parse().ok()?;
        let stat = text(&self.stat);
        let files = ["active_file ", "inactive_file "].map(|name| number_after(&stat, name).unwrap_or(0));
        Some(left(self.max()?, current.saturating_sub(files.iter().sum()), taken))
    }
}

/// What is left of `max` to a process that has `taken` of what all `hold`.
fn left(max: u64, hold: u64, taken: u64) -> u64 {
    max.saturating_sub(hold.saturating_sub(taken)).max(1)
}

/// The folder of a process's control group, by `/proc/self/cgroup`.
fn folder_of(own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(GROUPS).join(path))
}

/// The number that follows a word at the beginning of a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A small file, from its beginning.
fn text(file: &File) -> String {
    let mut bytes = [0; 8192];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_takes_is_read_again_and_again() {
        let resources = Resources::open();
        let all = resources.usual_memory();
        let before = resources.memory(all);
        assert!(before.taken > 0 && before.all > 0, "{before:?}");
        assert!(before.all <= all && all.is_multiple_of(ROUND));
        let taken = std::hint::black_box(vec![1u8; 128 << 20]);
        assert!(resources.memory(all).taken >= before.taken + (taken.len() as u64) / 4);
    }

    #[test]
    fn descriptors_are_counted() {
        let files: Vec<_> = (0..50).filter_map(|_| File::open("/dev/null").ok()).collect();
        let Share { taken, all } = descriptors();
        assert!(files.len() == 50 && (50..=all).contains(&taken), "{taken} of {all}");
        assert!(counted_one_by_one().is_some_and(|count| count >= 50));
    }

    #[test]
    fn what_others_hold_of_a_group_is_not_left() {
        assert_eq!(left(1000, 300, 300), 1000, "it is alone");
        assert_eq!(left(1000, 900, 100), 200);
        assert_eq!(left(1000, 1200, 0), 1, "something, so that it can be divided by");
    }

    #[test]
    fn the_files_of_the_system_are_read() {
        let own = "4:memory:/old\n0::/system.slice/outflow.service\n";
        assert_eq!(folder_of(own), Some("/sys/fs/cgroup/system.slice/outflow.service".into()));
        assert_eq!(folder_of("4:memory:/old\n"), None);
        assert_eq!(number_after("MemTotal:  24 kB\n", "MemTotal:"), Some(24));
        assert_eq!(number_after("inactive_file 7\nactive_file 8\n", "active_file "), Some(8));
        assert_eq!(number_after("", "active_file "), None);
    }
}
