//! What the machine itself has: CPU time and a battery, as Linux tells.

mod cpu;
mod power;

pub use cpu::CpuLoad;
pub use power::{Battery, POWER_SUPPLIES};

use std::path::Path;

use outflow_adapt::Resources;

/// Looks at CPU and battery.
#[derive(Debug)]
pub struct Machine {
    load: CpuLoad,
    battery: Option<Battery>,
}

impl Machine {
    /// With the first battery below `supplies` ([`POWER_SUPPLIES`], mostly), if there is one.
    pub fn open(supplies: &Path) -> Self {
        Machine { load: CpuLoad::default(), battery: Battery::find(supplies) }
    }

    /// The battery.
    pub fn battery(&self) -> Option<&Battery> {
        self.battery.as_ref()
    }

    /// What there is now; the load is that since the last call.
    pub fn resources(&mut self) -> Resources {
        let battery = self.battery.as_ref().filter(|battery| battery.is_used_up());
        Resources {
            cpu_percent: self.load.percent(),
            charge_percent: battery.and_then(Battery::charge_percent),
        }
    }
}
