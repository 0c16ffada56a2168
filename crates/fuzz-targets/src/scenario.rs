//! Scenarios of the simulation.

use outflow_sim::{Scenario, run};

/// Packets and deliveries of a scenario that is short enough to be played.
const WORK_MAX: f64 = 3_000.0;

/// What is accepted can be played, and comes out the same both times.
pub(crate) fn scenario(data: &[u8]) {
    match Scenario::parse(&String::from_utf8_lossy(data), "scenario.toml") {
        Ok(scenario) if work(&scenario) <= WORK_MAX => assert_eq!(run(&scenario), run(&scenario)),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn work(scenario: &Scenario) -> f64 {
    let (source, receivers) = (&scenario.source, &scenario.receivers);
    let frames = scenario.duration * f64::from(source.frames_per_second) + 1.0;
    // Sizes vary by up to as much as they are; a key frame has a packet of its own in front.
    let bytes = 2 * source.key_frame_bytes.max(source.frame_bytes);
    let packets = frames * (bytes / source.packet_bytes + 2) as f64;
    packets * (1.0 + receivers.count as f64)
}
