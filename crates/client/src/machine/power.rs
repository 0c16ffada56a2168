//! A battery, as `/sys/class/power_supply` shows it (Documentation/ABI/testing/sysfs-class-power of Linux).

use std::path::{Path, PathBuf};

/// Where Linux shows batteries.
pub const POWER_SUPPLIES: &str = "/sys/class/power_supply";

/// A battery. What it shows is read again each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Battery {
    folder: PathBuf,
}

impl Battery {
    /// The first battery below a folder, by name. Those of mice and the like (`scope` is `Device`) do not count.
    pub fn find(supplies: &Path) -> Option<Self> {
        let folders = std::fs::read_dir(supplies).ok()?.flatten().map(|entry| entry.path());
        let mut batteries: Vec<Battery> = folders.map(|folder| Battery { folder }).collect();
        batteries.retain(|one| one.text("type").as_deref() == Some("Battery"));
        batteries.retain(|one| one.text("scope").as_deref() != Some("Device"));
        batteries.into_iter().min_by(|a, b| a.folder.cmp(&b.folder))
    }

    /// Whether the machine lives on it.
    pub fn is_used_up(&self) -> bool {
        self.text("status").as_deref() == Some("Discharging")
    }

    /// The charge that is left, in percent.
    pub fn charge_percent(&self) -> Option<u8> {
        let share = |now: &str, full: &str| {
            let (now, full) = (self.number(now)?, self.number(full).filter(|full| *full > 0)?);
            Some(now.saturating_mul(100) / full)
        };
        let capacity = self.number("capacity");
        let percent = capacity
            .or_else(|| share("charge_now", "charge_full"))
            .or_else(|| share("energy_now", "energy_full"));
        percent.map(|percent| percent.clamp(0, 100) as u8)
    }

    /// The current in amperes, without its sign, and the voltage in volts. Of batteries that tell power alone
    /// the current follows from it.
    pub fn current_and_voltage(&self) -> Option<(f64, f64)> {
        let micro = |name: &str| Some(self.number(name)? as f64 / 1e6);
        let volts = micro("voltage_now").filter(|volts| *volts > 0.0)?;
        let amperes = micro("current_now").or_else(|| Some(micro("power_now")? / volts))?;
        Some((amperes.abs(), volts))
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.join(name)).ok()?;
        Some(text.trim().to_owned())
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn supplies(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
            std::fs::write(path, format!("{text}\n")).expect("a file");
        }
        root
    }

    #[test]
    fn the_machines_own_battery_is_found_and_read() {
        let root = supplies(&[
            ("AC/type", "Mains"),
            ("BAT1/type", "Battery"),
            ("BAT0/type", "Battery"),
            ("BAT0/status", "Discharging"),
            ("BAT0/capacity", "37"),
            ("BAT0/current_now", "-1500000"),
            ("BAT0/voltage_now", "11400000"),
            ("A-mouse/type", "Battery"),
            ("A-mouse/scope", "Device"),
        ]);
        let battery = Battery::find(root.path()).expect("there is one");
        assert!(battery.is_used_up());
        assert_eq!(battery.charge_percent(), Some(37));
        assert_eq!(battery.current_and_voltage(), Some((1.5, 11.4)));
        std::fs::write(root.path().join("BAT0/status"), "Charging").expect("a file");
        assert!(!battery.is_used_up());
    }

    #[test]
    fn what_some_batteries_do_not_tell_follows_from_the_rest() {
        let root = supplies(&[
            ("BAT0/type", "Battery"),
            ("BAT0/energy_now", "25000000"),
            ("BAT0/energy_full", "50000000"),
            ("BAT0/power_now", "6000000"),
            ("BAT0/voltage_now", "12000000"),
        ]);
        let battery = Battery::find(root.path()).expect("there is one");
        assert_eq!((battery.charge_percent(), battery.current_and_voltage()), (Some(50), Some((0.5, 12.0))));
    }

    #[test]
    fn without_a_battery_nothing_is_told() {
        assert_eq!(Battery::find(Path::new("/nonexistent")), None);
        let root = supplies(&[("AC/type", "Mains")]);
        assert_eq!(Battery::find(root.path()), None);
        let root = supplies(&[("BAT0/type", "Battery"), ("BAT0/current_now", "nonsense")]);
        let battery = Battery::find(root.path()).expect("there is one");
        assert_eq!((battery.charge_percent(), battery.current_and_voltage()), (None, None));
    }
}
