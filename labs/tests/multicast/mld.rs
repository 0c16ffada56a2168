//! Hosts join groups of IPv6 by MLD.

use std::net::Ipv6Addr;

use super::levels::says;
use super::*;

const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 1, 5);
pub(super) const STREAM: &str =
    "[streams.data]\nsource = \"udp://0.0.0.0:5200?format=data\"\ngroup = \"udp://[ff15::1:5]:5200\"\n";

/// A player of a host, which has joined.
pub(super) fn joined(host: &Namespace) -> Result<UdpSocket> {
    let socket = host.run(|| {
        let socket = UdpSocket::bind((GROUP_V6, PORT))?;
        socket.join_multicast_v6(&GROUP_V6, nix::net::if_::if_nametoindex("eth0")?)?;
        anyhow::Ok(socket)
    })?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// The next datagrams that come, each of which is the one behind the one before.
pub(super) fn gets(at: &UdpSocket, count: u32) -> Result<()> {
    let mut last = None;
    for _ in 0..count {
        let mut bytes = [0; 4];
        at.recv(&mut bytes).context("nothing comes")?;
        let number = u32::from_be_bytes(bytes);
        ensure!(last.is_none_or(|last| number == last + 1), "{number} behind {last:?}");
        last = Some(number);
    }
    Ok(())
}

/// What is said of the group where hosts speak MLD.
fn group(relay: &Relay<'_>, interface: &str) -> Result<Option<Value>> {
    let state = relay.json("/api/v1/multicast")?;
    let interfaces = state["interfaces"].as_array().context("interfaces")?;
    let mut of = interfaces.iter().filter(|one| one["name"] == interface && one["protocol"] == "mld");
    let of = of.next().with_context(|| format!("there is no MLD on {interface}: {state:#}"))?;
    ensure!(of["is_querier"] == true, "{of:#}");
    let groups = of["groups"].as_array().context("groups")?;
    Ok(groups.iter().find(|one| one["group"] == GROUP_V6.to_string()).cloned())
}

#[test]
fn one_that_joins_by_mld_is_sent_the_stream_and_nothing_after_it_left() -> Result<()> {
    let Some(scene) = Scene::new("one_that_joins_by_mld_is_sent_the_stream", &[])? else { return Ok(()) };
    let mut relay = scene.relay(STREAM)?;
    let _sending = scene.sends(RELAY_IN.into())?;
    let player = joined(&scene.paths.players)?;
    gets(&player, 100)?;
    let state = relay.wait_receivers("data", 1)?;
    ensure!(state["receivers"][0]["name"] == "mld:out0:[ff15::1:5]:5200", "{state:#}");
    let shown = group(&relay, "out0")?.context("it is wanted")?;
    ensure!(shown["served_by"] == "relay" && shown["stream"] == "data", "{shown:#}");
    drop(player);
    relay.wait_receivers("data", 0)?;
    wait_for("it is not wanted", || Ok(group(&relay, "out0")?.is_none()))?;
    relay.healthy()
}

#[test]
fn one_that_joins_by_mld_says_its_level_to_the_relay_at_its_address_of_the_link() -> Result<()> {
    let Some(scene) = Scene::new("levels of hosts of MLD by unicast", &["curl"])? else { return Ok(()) };
    let everywhere = configuration(&["out0"], STREAM).replace("0.0.0.0", "[::]");
    let mut relay = Relay::start(&scene.paths.relay, &everywhere)?;
    let _player = joined(&scene.paths.players)?;
    wait_for("it is known", || Ok(group(&relay, "out0")?.is_some()))?;
    let own = scene.paths.relay.run(|| Interface::find(Family::V6, "out0"))?.address;
    let wish = format!("{{\"group\":\"{GROUP_V6}\",\"level\":3}}");
    let (answer, status) = says(&scene.paths.players, format!("[{own}%25eth0]"), &wish)?;
    ensure!(status == 200 && answer["interface"] == "out0" && answer["best"] == 3, "{status} {answer:#}");
    let shown = group(&relay, "out0")?.context("it is wanted")?;
    ensure!(shown["level"] == 3, "{shown:#}");
    relay.healthy()
}

/// What is said of an interface: the protocols there, and what is wrong with it.
fn said(relay: &Relay<'_>, interface: &str) -> Result<(BTreeSet<String>, Vec<String>)> {
    let state = relay.json("/api/v1/multicast")?;
    let all = state["interfaces"].as_array().context("interfaces")?;
    let of = || all.iter().filter(|one| one["name"] == interface);
    let words = |key: &'static str| of().filter_map(move |one| Some(one[key].as_str()?.to_owned()));
    Ok((words("protocol").collect(), words("problem").collect()))
}

#[test]
fn an_interface_of_ipv6_alone_does_without_igmp() -> Result<()> {
    let Some(scene) = Scene::new("an_interface_of_ipv6_alone_does_without_igmp", &[])? else { return Ok(()) };
    let at = |end| Ipv6Addr::new(0xfd66, 0, 0, 4, 0, 0, 0, end);
    let host = Namespace::new("six")?;
    link(&host, ("eth0", at(2)), &scene.paths.relay, ("six", at(1)))?;
    // Of IPv6, it has only the address that every interface has: that of IPv4 may have been forgotten.
    scene.paths.relay.ip(&["link", "add", "bare", "type", "veth", "peer", "name", "far"])?;
    for device in ["bare", "far"] {
        scene.paths.relay.ip(&["link", "set", device, "up"])?;
    }
    let interfaces = configuration(&["out0", "six", "bare"], STREAM);
    let mut relay = Relay::start(&scene.paths.relay, &interfaces)?;
    let protocols = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    wait_for("hosts are asked", || Ok(said(&relay, "six")?.0 == protocols(&["mld"])))?;
    wait_for("the other is missed", || Ok(!said(&relay, "bare")?.1.is_empty()))?;
    ensure!(said(&relay, "six")? == (protocols(&["mld"]), Vec::new()), "{:?}", said(&relay, "six")?);
    ensure!(said(&relay, "out0")? == (protocols(&["igmp", "mld"]), Vec::new()));
    let _sending = scene.sends(RELAY_IN.into())?;
    gets(&joined(&host)?, 100)?;
    // It is taken for both as soon as there is an address.
    scene.paths.relay.ip(&["address", "add", "10.66.4.1/24", "dev", "six"])?;
    wait_for("hosts are asked by both", || Ok(said(&relay, "six")?.0 == protocols(&["igmp", "mld"])))?;
    relay.healthy()
}
