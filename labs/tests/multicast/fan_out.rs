//! What goes to groups goes by the kernel's fan-out, too, where that is asked for.

use super::mld::{STREAM, gets, joined};
use super::*;

const BY_THE_KERNEL: &str = "[fanout]\nudp = \"tc\"\n";

/// The relay's only receiver is a group, that the kernel sends to.
fn is_the_kernels(relay: &Relay<'_>, group: &str) -> Result<()> {
    let state = relay.wait_receivers("data", 1)?;
    let receiver = &state["receivers"][0];
    ensure!(receiver["name"] == group && receiver["path"] == "tc", "{receiver:#}");
    Ok(())
}

#[test]
fn a_group_is_sent_to_by_the_kernel() -> Result<()> {
    let Some(scene) = Scene::new("a_group_is_sent_to_by_the_kernel", &[])? else { return Ok(()) };
    let mut relay = scene.relay(&format!("{DATA}{BY_THE_KERNEL}"))?;
    let _sending = scene.sends(RELAY_IN.into())?;
    let player = scene.joins(false, None)?;
    player.gets(100)?;
    is_the_kernels(&relay, "igmp:out0:239.1.1.1:5200")?;
    player.is_whole()?;
    relay.healthy()
}

#[test]
fn a_group_of_ipv6_is_sent_to_by_the_kernel() -> Result<()> {
    let Some(scene) = Scene::new("a_group_of_ipv6_is_sent_to_by_the_kernel", &[])? else { return Ok(()) };
    let mut relay = scene.relay(&format!("{STREAM}{BY_THE_KERNEL}"))?;
    let _sending = scene.sends(RELAY_IN.into())?;
    let player = joined(&scene.paths.players)?;
    gets(&player, 100)?;
    is_the_kernels(&relay, "mld:out0:[ff15::1:5]:5200")?;
    relay.healthy()
}
