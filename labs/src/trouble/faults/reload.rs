//! Configurations that are wrong, loaded again and again.

use std::time::Duration;

use anyhow::Result;

use crate::trouble::fault::Trouble;
use crate::trouble::scene::Scene;

/// How long an answer may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// By SIGHUP.
pub(super) fn by_signal(_scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    Ok(Box::new(Reloads { is_by_api: false, done: 0 }))
}

/// By the API.
pub(super) fn by_api(_scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    Ok(Box::new(Reloads { is_by_api: true, done: 0 }))
}

struct Reloads {
    is_by_api: bool,
    done: u64,
}

impl Reloads {
    fn load(&mut self, scene: &mut Scene<'_>, configuration: &str) -> Result<()> {
        if self.is_by_api {
            std::fs::write(scene.relay.configuration_file(), configuration)?;
            let _refused = scene.relay.status("POST", "/api/v1/reload", ANSWERED_WITHIN);
        } else {
            scene.relay.reload(configuration)?;
        }
        self.done += 1;
        Ok(())
    }
}

impl Trouble for Reloads {
    fn go_on(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        for wrong in wrong(scene.configuration()) {
            self.load(scene, &wrong)?;
        }
        Ok(())
    }

    fn undo(mut self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        let good = scene.configuration().to_owned();
        self.load(scene, &good)?;
        Ok(self.done)
    }
}

/// What may be in a file by mistake.
fn wrong(good: &str) -> [String; 6] {
    let half = good.len() / 2;
    [
        good[..half].to_owned(),
        "\0".repeat(good.len()),
        good.replace("[limits]", "[limit]"),
        good.replace("workers = 2", "workers = \"two\""),
        good.replace("source = \"push\"", "source = \"pusch://\""),
        // At last: a program that writes a file empties it first.
        String::new(),
    ]
}
