//! Too little of what the relay needs, so that it sheds (docs/operations.md, "Overload").

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::access::joins_at;
use crate::trouble::fault::{Storm, Trouble};
use crate::trouble::scene::Scene;

/// How many percent of the memory that it may have the relay has when the fault begins: above 90 it takes on no more,
/// and ends receivers of the class "low", of which there are none.
const TAKEN_PERCENT: u64 = 92;
/// How long the answer to a reload may take.
const RELOADED_WITHIN: Duration = Duration::from_secs(2);
/// A level is left when less was taken for 5 seconds; there are three.
const OVER_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The relay has nearly all the memory that it may have, and receivers come all the time, which would take more. What
/// was done is how many were refused.
pub(super) fn memory(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let refused = refused(scene)?;
    let limit = scene.relay.resident()? / 1000 * 100 / TAKEN_PERCENT;
    let limits = "[limits]\n";
    let near = scene.configuration().replace(limits, &format!("{limits}memory = \"{limit} kB\"\n"));
    load(scene, &near)?;
    Ok(Box::new(MemoryNear { refused, joins: Storm(vec![joins_at(scene)]) }))
}

struct MemoryNear {
    /// Before.
    refused: u64,
    joins: Storm,
}

impl Trouble for MemoryNear {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        Box::new(self.joins).undo(scene)?;
        let refused = refused(scene)?.saturating_sub(self.refused);
        let good = scene.configuration().to_owned();
        load(scene, &good)?;
        // The next fault is to find a relay that takes on what comes.
        let until = Instant::now() + OVER_WITHIN;
        while overload(scene)?["level"] != 0 && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(refused)
    }
}

/// Has the relay load this.
fn load(scene: &Scene<'_>, configuration: &str) -> Result<()> {
    std::fs::write(scene.relay.configuration_file(), configuration)?;
    let status = scene.relay.status("POST", "/api/v1/reload", RELOADED_WITHIN);
    ensure!(status == Some(200), "a reload was answered {status:?}");
    Ok(())
}

/// How many receivers the relay has refused as it had too much to do.
fn refused(scene: &Scene<'_>) -> Result<u64> {
    overload(scene)?["joins_refused"].as_u64().context("the relay does not say how many it has refused")
}

fn overload(scene: &Scene<'_>) -> Result<Value> {
    Ok(scene.relay.json("/api/v1/relay")?["overload"].clone())
}
