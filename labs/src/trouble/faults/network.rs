//! The network of the fragile viewers.

use anyhow::Result;

use crate::trouble::fault::Trouble;
use crate::trouble::places::{DEVICE, FRAGILE, FRAGILE_DEVICE};
use crate::trouble::scene::Scene;

/// Their device is down.
pub(super) fn device(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    set(scene, "down", "")?;
    Ok(Box::new(Undone("up", "")))
}

/// Their host answers no question for its hardware address, and the relay's has forgotten it.
pub(super) fn neighbour(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    set(scene, "arp", "off")?;
    let relay = &scene.places.paths.relay;
    relay.ip(&["neighbour", "flush", "to", &FRAGILE.to_string(), "dev", FRAGILE_DEVICE, "nud", "all"])?;
    Ok(Box::new(Undone("arp", "on")))
}

/// What the device is set to in the end.
struct Undone(&'static str, &'static str);

impl Trouble for Undone {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        set(scene, self.0, self.1)?;
        Ok(0)
    }
}

fn set(scene: &Scene<'_>, what: &str, value: &str) -> Result<()> {
    let mut words = vec!["link", "set", DEVICE, what];
    words.extend(Some(value).filter(|value| !value.is_empty()));
    scene.places.fragile.ip(&words)?;
    Ok(())
}
