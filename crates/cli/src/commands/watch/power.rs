//! What watching costs in energy.

use outflow_adapt::energy::{Meter, Model, Work};
use outflow_client::machine::Battery;
use outflow_client::measure::Summary;
use outflow_media::Time;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Adds up what is used.
#[derive(Debug)]
pub(super) struct Power {
    battery: Option<Battery>,
    meter: Meter,
    cpu_before: f64,
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct EnergySummary {
    /// `battery`, or `estimate`: of a pocket PC, by the paper's Table III.
    source: &'static str,
    joules: f64,
    watts: f64,
    /// Parts of an estimate.
    network_j: Option<f64>,
    display_j: Option<f64>,
    processing_j: Option<f64>,
    /// What the estimate was fed with.
    cpu_seconds: f64,
}

impl Power {
    pub(super) fn new(battery: Option<Battery>) -> Self {
        Power { battery, meter: Meter::default(), cpu_before: cpu_seconds() }
    }

    /// Looks at the battery, some times a second.
    pub(super) fn look(&mut self, now: Time) {
        let read = self.battery.as_ref().filter(|battery| battery.is_used_up());
        if let Some((amperes, volts)) = read.and_then(Battery::current_and_voltage) {
            self.meter.note(now.since(Time::ZERO), amperes, volts);
        }
    }

    pub(super) fn summary(&self, measured: &Summary) -> EnergySummary {
        let cpu_seconds = cpu_seconds() - self.cpu_before;
        let (joules, over) = self.meter.total();
        if !over.is_zero() {
            let watts = joules / over.as_secs_f64();
            let none = None;
            return EnergySummary {
                source: "battery",
                joules: rounded(joules),
                watts: rounded(watts),
                network_j: none,
                display_j: none,
                processing_j: none,
                cpu_seconds: rounded(cpu_seconds),
            };
        }
        let work = Work {
            seconds: measured.duration_s,
            bytes: measured.bytes as f64,
            cpu_seconds,
            pictures: measured.decodable_frames as f64,
        };
        let energy = Model::TABLE_III.energy(&work);
        EnergySummary {
            source: "estimate",
            joules: rounded(energy.total()),
            watts: rounded(energy.total() / work.seconds.max(f64::MIN_POSITIVE)),
            network_j: Some(rounded(energy.network)),
            display_j: Some(rounded(energy.display)),
            processing_j: Some(rounded(energy.processing)),
            cpu_seconds: rounded(cpu_seconds),
        }
    }
}

impl EnergySummary {
    pub(super) fn text(&self) -> String {
        let told = format!("{:.2} J, {:.2} W on average", self.joules, self.watts);
        match (self.network_j, self.display_j, self.processing_j) {
            (Some(network), Some(display), Some(processing)) => format!(
                "energy: about {told} (an estimate, of a pocket PC: network {network:.2} J, display {display:.2} \
                 J, processing {processing:.2} J)"
            ),
            _ => format!("energy: {told} (from the battery, of the whole machine)"),
        }
    }
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use outflow_client::measure::Measure;
    use outflow_media::Format;

    use super::*;

    fn summary() -> Summary {
        let measure = Measure::new(&Format::Ts, Time::ZERO);
        Summary { duration_s: 100.0, bytes: 5_000_000, decodable_frames: 300, ..measure.summary(Time::ZERO) }
    }

    #[test]
    fn without_a_battery_it_is_an_estimate_and_says_so() {
        let told = Power::new(None).summary(&summary());
        assert_eq!(told.source, "estimate");
        // Between the table's level 5 and idle; little CPU time was used here.
        assert!((615.0..780.0).contains(&told.joules), "{told:?}");
        assert!(told.text().contains("an estimate"), "{}", told.text());
    }

    #[test]
    fn a_battery_is_believed() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("BAT0");
        std::fs::create_dir(&folder).expect("a folder");
        let files = [
            ("type", "Battery"),
            ("status", "Discharging"),
            ("current_now", "500000"),
            ("voltage_now", "4000000"),
        ];
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("a file");
        }
        let mut power = Power::new(Battery::find(root.path()));
        power.look(Time::ZERO);
        power.look(Time::ZERO + Duration::from_secs(10));
        let told = power.summary(&summary());
        assert_eq!((told.source, told.joules, told.watts), ("battery", 20.0, 2.0));
        assert!(told.text().contains("from the battery"));
    }
}
