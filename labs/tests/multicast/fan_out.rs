//! What goes to groups goes by the kernel's fan-out, too, where that is asked for.

use super::mld::{STREAM, gets, joined};
use super::*;

const BY_THE_KERNEL: &str = "[fanout]\nudp = \"tc\"\n";

/// The relay's only receiver is a group, that the kernel sends to: as soon as it has a route, for which an address of
/// IPv6 has to be known to be the host's own (RFC 4862, section 5.4). The relay's system calls send until then.
fn is_the_kernels(relay: &Relay<'_>, group: &str) -> Result<()> {
    let by_the_kernel = |state: &Value| {
        let receivers = state["receivers"].as_array().map_or(&[][..], Vec::as_slice);
        matches!(receivers, [one] if one["name"] == group && one["path"] == "tc")
    };
    relay.wait_stream("data", "sent to the group by the kernel", by_the_kernel).map(drop)
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
