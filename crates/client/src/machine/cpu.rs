//! How busy the CPU is: `/proc/stat`, proc(5).

/// Ticks that passed on all cores, and those of them in which there was nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
}

/// The load of all cores together, from one look to the next.
#[derive(Debug, Default)]
pub struct CpuLoad {
    before: Option<Ticks>,
}

impl CpuLoad {
    /// The load since the last call in percent; `None` at the first one, and where the system does not tell.
    pub fn percent(&mut self) -> Option<u8> {
        let now = read(&std::fs::read_to_string("/proc/stat").ok()?)?;
        let before = self.before.replace(now)?;
        load(before, now)
    }
}

fn load(before: Ticks, now: Ticks) -> Option<u8> {
    let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
    // The kernel's idle counters may fall by a little.
    let idle = now.idle.saturating_sub(before.idle).min(all);
    Some(((all - idle) * 100 / all) as u8)
}

/// The line of all cores: user nice system idle iowait irq softirq steal. The time of guests is in user's.
fn read(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(Ticks { all: ticks.iter().sum(), idle })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_what_was_not_idle() {
        let at = |text| read(text).expect("a line");
        let before = at("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n");
        assert_eq!(before, Ticks { all: 1000, idle: 850 });
        assert_eq!(load(before, at("cpu  160 0 65 820 55 0 0 0 0 0\n")), Some(75));
        assert_eq!(load(before, before), None, "no time has passed");
        assert_eq!(read("cpu  100 0 50\n"), None);
        assert_eq!(read("intr 5\n"), None);
    }

    #[test]
    fn this_machine_tells() {
        let mut load = CpuLoad::default();
        assert_eq!(load.percent(), None, "since when?");
        std::thread::sleep(core::time::Duration::from_millis(50));
        assert!(load.percent().is_some_and(|percent| percent <= 100));
    }
}
