//! What goes to groups goes by the kernel's fan-out, too, where that is asked for.

use std::net::{Ipv6Addr, SocketAddr};

use outflow_labs::net::RELAY_OUT;

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

/// Where the sink's datagrams go: the source's come to another port.
const SINK_PORT: u16 = 5300;

/// A member of the group.
fn member(at: &Namespace, device: &str, group: IpAddr) -> Result<UdpSocket> {
    let socket = at.run(|| {
        let socket = UdpSocket::bind((group, SINK_PORT))?;
        match group {
            IpAddr::V4(group) => {
                let own = if device == "out0" { RELAY_OUT } else { PLAYER };
                socket.join_multicast_v4(&group, &own)?;
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, nix::net::if_::if_nametoindex(device)?)?,
        }
        anyhow::Ok(socket)
    })?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Takes what has come.
fn take_all(at: &UdpSocket) -> Result<usize> {
    at.set_nonblocking(true)?;
    let count = core::iter::from_fn(|| at.recv(&mut [0; 4]).ok()).count();
    at.set_nonblocking(false)?;
    Ok(count)
}

fn is_sent_to(relay: &Relay<'_>, way: &str, because: Option<&str>) -> Result<()> {
    let by = |state: &Value| {
        let receivers = state["receivers"].as_array().map_or(&[][..], Vec::as_slice);
        matches!(receivers, [one] if one["path"] == way && one["path_because"].as_str() == because)
    };
    relay.wait_stream("data", &format!("sent to by {way}"), by).map(drop)
}

/// The relay's system calls send to the group of a sink, which a member on its machine gets, too; with `loop=off` the
/// kernel does, and that member gets nothing.
fn sinks_are_the_kernels(test: &str, group: IpAddr) -> Result<()> {
    let Some(scene) = Scene::new(test, &[])? else { return Ok(()) };
    let (relay, players) = (&scene.paths.relay, &scene.paths.players);
    Program::words("ethtool -K eth0 gro on").within(players).finish(PATIENCE)?;
    let (here, there) = (member(relay, "out0", group)?, member(players, "eth0", group)?);
    let to = SocketAddr::new(group, SINK_PORT);
    for way in ["tc", "xdp"] {
        let configuration = |more: &str| {
            listen()
                + &format!(
                    "[fanout]\nudp = \"{way}\"\n[streams.data]\nsource = \"udp://0.0.0.0:{PORT}?format=data\"\n\
                     [[sinks]]\nstream = \"data\"\nto = \"udp://{to}?interface=out0{more}\"\n"
                )
        };
        let mut relay = Relay::start(relay, &configuration(""))?;
        let _sending = scene.sends(RELAY_IN.into())?;
        let because = "members of its group on this machine get it, too";
        is_sent_to(&relay, "user", Some(because))?;
        for member in [&here, &there] {
            take_all(member)?;
            gets(member, 20)?;
        }
        relay.reload(&configuration("&loop=off"))?;
        is_sent_to(&relay, way, None)?;
        for member in [&here, &there] {
            take_all(member)?;
        }
        gets(&there, 100)?;
        ensure!(take_all(&here)? == 0, "a member on the relay's machine gets it by {way}");
        relay.healthy()?;
    }
    Ok(())
}

#[test]
fn a_group_of_sinks_that_is_not_looped_is_sent_to_by_the_kernel() -> Result<()> {
    let test = "a_group_of_sinks_that_is_not_looped_is_sent_to_by_the_kernel";
    sinks_are_the_kernels(test, Ipv4Addr::new(239, 2, 2, 2).into())
}

#[test]
fn a_group_of_ipv6_of_sinks_that_is_not_looped_is_sent_to_by_the_kernel() -> Result<()> {
    let test = "a_group_of_ipv6_of_sinks_that_is_not_looped_is_sent_to_by_the_kernel";
    sinks_are_the_kernels(test, Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 2, 2).into())
}
