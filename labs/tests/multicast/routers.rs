//! Over routers of DVMRP, which are relays, too: what the first relay sends, or forwards, goes where hosts of
//! others want it.

use outflow_packet::gmc::Mark;
use outflow_rtp::RtpHeader;

use super::*;

/// ```text
///            A            B           D
/// source   relay mid0 ─ eth0 eth1 ─ eth0 out0 ─ eth0 host
///                mid1 ─ eth0 eth1 ─ eth1
///                         C
/// ```
struct Routers {
    scene: Scene,
    b: Namespace,
    c: Namespace,
    d: Namespace,
    host: Namespace,
}

const OWN: Ipv4Addr = on(4, 1);
const HOST: Ipv4Addr = on(8, 2);

const fn on(third: u8, last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 66, third, last)
}

impl Routers {
    fn new(test: &str, needs: &[&str]) -> Result<Option<Self>> {
        let Some(scene) = Scene::new(test, needs)? else { return Ok(None) };
        let [b, c, d, host] = ["b", "c", "d", "host"].map(Namespace::new);
        let (b, c, d, host) = (b?, c?, d?, host?);
        link(&b, ("eth0", on(4, 2)), &scene.paths.relay, ("mid0", OWN))?;
        link(&c, ("eth0", on(5, 2)), &scene.paths.relay, ("mid1", on(5, 1)))?;
        link(&d, ("eth0", on(6, 2)), &b, ("eth1", on(6, 1)))?;
        link(&d, ("eth1", on(7, 2)), &c, ("eth1", on(7, 1)))?;
        link(&host, ("eth0", HOST), &d, ("out0", on(8, 1)))?;
        host.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        Ok(Some(Routers { scene, b, c, d, host }))
    }

    fn joins(&self) -> Result<Member> {
        self.scene.joins_at(&self.host, HOST, None)
    }
}

/// A player at the host says a level by unicast, which holds as long as it plays.
fn plays_at(host: &Namespace, level: u8) -> Result<UdpSocket> {
    let player = host.run(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.join_multicast_v4(&GROUP, &HOST)?;
        anyhow::Ok(socket)
    })?;
    let body = format!("{{\"group\": \"{GROUP}\", \"level\": {level}}}");
    wait_for("the host is known", || Ok(levels::says(host, on(8, 1), &body)?.1 == 200))?;
    Ok(player)
}

/// A relay that is a router between two others.
fn between<'n>(namespace: &'n Namespace, streams: &str) -> Result<Relay<'n>> {
    Relay::start(namespace, &with_multicast("neighbours = [\"eth0\", \"eth1\"]", streams))
}

/// The router of hosts.
fn last<'n>(namespace: &'n Namespace, neighbours: &[&str]) -> Result<Relay<'n>> {
    let interfaces = format!("interfaces = [\"out0\"]\nneighbours = {neighbours:?}");
    Relay::start(namespace, &with_multicast(&interfaces, ""))
}

fn dvmrp(relay: &Relay<'_>) -> Result<Value> {
    Ok(relay.json("/api/v1/multicast")?["dvmrp"].clone())
}

/// Waits until a relay has a route to what another one sends, over this neighbour.
fn wait_route(relay: &Relay<'_>, to: Ipv4Addr, via: Ipv4Addr) -> Result<()> {
    let (network, via) = (format!("{to}/32"), via.to_string());
    wait_for(&format!("there is a route to {network} via {via}"), || {
        let routes = dvmrp(relay)?["routes"].as_array().cloned().context("routes")?;
        Ok(routes.iter().any(|route| route["network"] == network && route["via"] == via))
    })
}

/// Waits until a relay sends at these levels where neighbours are, by the names of interfaces.
fn wait_sent(relay: &Relay<'_>, wanted: &[(&str, u64)]) -> Result<()> {
    let mut last = Value::Null;
    let waited = wait_for(&format!("it sends by {wanted:?}"), || {
        last = dvmrp(relay)?;
        let interfaces = last["interfaces"].as_array().context("interfaces")?;
        let sent = interfaces.iter().flat_map(|one| {
            let levels = one["sent"].as_array().into_iter().flatten();
            levels.map(|sent| (one["name"].as_str().unwrap_or_default(), sent["level"].as_u64()))
        });
        Ok(sent.eq(wanted.iter().map(|(name, level)| (*name, Some(*level)))))
    });
    waited.with_context(|| format!("{last:#}"))
}

#[test]
fn what_the_relay_sends_goes_over_routers_once_where_somebody_wants_it() -> Result<()> {
    let Some(net) = Routers::new("what_the_relay_sends_goes_over_routers", &[])? else { return Ok(()) };
    let neighbours = "interfaces = [\"out0\"]\nneighbours = [\"mid0\", \"mid1\"]";
    let mut a = Relay::start(&net.scene.paths.relay, &with_multicast(neighbours, DATA))?;
    let mut others = [between(&net.b, "")?, between(&net.c, "")?, last(&net.d, &["eth0", "eth1"])?];
    let _sending = net.scene.sends(RELAY_IN.into())?;
    // Of two ways, that over the lower address is taken.
    wait_route(&others[2], OWN, on(6, 1))?;
    wait_sent(&a, &[]).context("it is not wanted")?;
    a.wait_receivers("data", 0)?;
    let host = net.joins()?;
    host.gets(200)?;
    let state = a.wait_receivers("data", 1).context("of two ways, it goes one")?;
    let name = state["receivers"][0]["name"].as_str().context("its name")?.to_owned();
    ensure!(["dvmrp:mid0:239.1.1.1:5200", "dvmrp:mid1:239.1.1.1:5200"].contains(&&*name), "{name}");
    let near = net.scene.joins(false, None)?;
    near.gets(50)?;
    near.is_whole().context("the near one")?;
    host.leaves()?;
    wait_sent(&a, &[])?;
    host.is_whole()?;
    let again = net.joins()?;
    again.gets(100).context("it is grafted")?;
    again.is_whole()?;
    let metrics = a.get("/metrics")?;
    for line in ["outflow_multicast_neighbours{interface=\"mid0\"} 1", "outflow_multicast_routes{protocol="] {
        ensure!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    a.reload(&with_multicast("interfaces = [\"out0\"]", DATA))?;
    wait_for("it is no router of DVMRP any more", || Ok(dvmrp(&a)?.is_null()))?;
    a.wait_receivers("data", 1).context("the near one stays")?;
    near.gets(50)?;
    near.is_whole().context("the near one")?;
    others.iter_mut().try_for_each(Relay::healthy)?;
    a.healthy()
}

#[test]
fn a_level_travels_over_routers_to_the_relay_that_sends() -> Result<()> {
    let Some(net) = Routers::new("a_level_travels_over_routers", &["ffmpeg", "ffprobe", "curl"])? else {
        return Ok(());
    };
    levels_travel(&net, |level| plays_at(&net.host, level))
}

#[test]
fn a_level_is_not_unsaid_by_a_kernel_that_leaves_with_each_player() -> Result<()> {
    let test = "a_level_is_not_unsaid_by_a_kernel";
    let Some(net) = Routers::new(test, &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let program = LevelProgram::start(&net.host, Family::V4)?;
    levels_travel(&net, |level| program.says(GROUP, Some(level)))
}

/// Levels that are said at the host come to the relay that sends, and hold for the players that come and go there.
fn levels_travel<T>(net: &Routers, says: impl Fn(u8) -> Result<T>) -> Result<()> {
    let stream = "[streams.cam]\ngroup = \"udp://239.1.1.1:5200\"\n";
    let mut a = Relay::start(&net.scene.paths.relay, &with_multicast("neighbours = [\"mid0\"]", stream))?;
    let mut others = [between(&net.b, "")?, last(&net.d, &["eth0"])?];
    let _coding = codes("cam", &net.scene)?;
    a.wait_up("cam")?;
    wait_route(&others[1], OWN, on(6, 1))?;
    let low = says(3)?;
    wait_sent(&a, &[("mid0", 3)])?;
    // The player's own reports know no levels, and do not unsay what was said from its address.
    let seen = kinds(&net.host, HOST, 4)?;
    ensure!(seen.chars().all(|kind| kind == 'I'), "{seen}");
    let _middle = says(2)?;
    drop(low);
    wait_sent(&a, &[("mid0", 2)])?;
    let without = kinds(&net.host, HOST, 14)?;
    ensure!(without.contains('P') && !without.contains('B'), "{without}");
    others.iter_mut().try_for_each(Relay::healthy)?;
    a.healthy()
}

#[test]
fn a_relay_on_the_way_sends_less_of_what_another_forwards() -> Result<()> {
    let Some(net) = Routers::new("a_relay_on_the_way_sends_less", &["ffmpeg", "ffprobe"])? else {
        return Ok(());
    };
    let neighbours = "interfaces = [\"in0\"]\nneighbours = [\"mid0\"]";
    let mut a = Relay::start(&net.scene.paths.relay, &with_multicast(neighbours, ""))?;
    let stream =
        "[streams.cam]\nsource = \"udp://239.1.1.1:5200?interface=eth0\"\ngroup = \"udp://239.1.1.1:5200\"\n";
    let mut b = between(&net.b, stream)?;
    let mut d = last(&net.d, &["eth0"])?;
    let to = format!("-f mpegts udp://{GROUP}:{PORT}?pkt_size=1316&ttl=8&localaddr={SOURCE}");
    let _sending = ffmpeg_sends(&clip(), &to).within(&net.scene.paths.source).start()?;
    b.wait_up("cam").context("it is a member itself")?;
    wait_route(&d, on(4, 2), on(6, 1))?;
    say_level(&net.host, 3)?;
    wait_sent(&b, &[("eth1", 3)])?;
    let low = kinds(&net.host, HOST, 3)?;
    ensure!(low.chars().all(|kind| kind == 'I'), "{low}");
    let player = ffmpeg_decodes(&format!("-i udp://{GROUP}:{PORT}?localaddr={HOST}"), 100);
    let playing = player.within(&net.host).start()?;
    wait_sent(&b, &[]).context("all of it is forwarded")?;
    playing.succeed(PATIENCE)?;
    [&mut a, &mut b, &mut d].into_iter().try_for_each(Relay::healthy)
}

#[test]
fn a_relay_that_receives_a_group_asks_for_the_best_that_its_receivers_want() -> Result<()> {
    let Some(net) = Routers::new("a_relay_that_receives_a_group", &["ffmpeg"])? else { return Ok(()) };
    let stream = "[streams.cam]\ngroup = \"udp://239.1.1.1:5200\"\n";
    let mut a = Relay::start(&net.scene.paths.relay, &with_multicast("neighbours = [\"mid0\"]", stream))?;
    let mut b = between(&net.b, "")?;
    let copy = "[streams.copy]\nsource = \"udp://239.1.1.1:5200?interface=eth0\"\n";
    let mut d = Relay::start(&net.d, &with_multicast("neighbours = [\"eth0\"]", copy))?;
    let _coding = codes("cam", &net.scene)?;
    a.wait_up("cam")?;
    wait_route(&d, OWN, on(6, 1))?;
    d.wait_up("copy").context("it is there without receivers")?;
    wait_sent(&a, &[("mid0", 127)])?;
    let watches = |level: u8| {
        let url = format!("http://127.0.0.1:8080/copy.ts?level={level}");
        let line = format!("{} watch --json --duration 60s {url}", outflow_labs::relay::binary()?.display());
        Program::words(&line).within(&net.d).start()
    };
    let _low = watches(3)?;
    wait_sent(&a, &[("mid0", 3)])?;
    let best = watches(1)?;
    wait_sent(&a, &[("mid0", 1)])?;
    wait_for("the best comes", || {
        let levels = d.stream("copy")?["levels"].as_array().map_or(0, Vec::len);
        Ok(levels == 3)
    })?;
    drop(best);
    wait_sent(&a, &[("mid0", 3)])?;
    [&mut a, &mut b, &mut d].into_iter().try_for_each(Relay::healthy)
}

/// A member that sees what packets say of themselves.
fn sees(host: &Namespace, own: Ipv4Addr) -> Result<UdpSocket> {
    host.run(|| {
        let socket = UdpSocket::bind((GROUP, PORT))?;
        socket.join_multicast_v4(&GROUP, &own)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    })
}

/// Layers of the next packets, between which none is missing.
fn layers(at: &UdpSocket, count: usize) -> Result<BTreeSet<u8>> {
    at.set_nonblocking(true)?;
    let mut buffer = [0; 2048];
    // What came until now is of before.
    while at.recv(&mut buffer).is_ok() {}
    at.set_nonblocking(false)?;
    let (mut layers, mut last) = (BTreeSet::new(), None::<u16>);
    for _ in 0..count {
        let length = at.recv(&mut buffer).context("packets come")?;
        let packet = &buffer[..length];
        let sequence = RtpHeader::new_checked(packet)?.sequence();
        let gap = last.replace(sequence).map(|last| sequence.wrapping_sub(last));
        ensure!(gap.is_none_or(|gap| gap == 1), "{gap:?} before {sequence}");
        layers.insert(Mark::read(packet).context("it says what it is")?.layer);
    }
    Ok(layers)
}

#[test]
fn of_what_a_relay_sends_each_link_on_the_way_carries_the_best_that_is_wanted_behind_it() -> Result<()> {
    let Some(net) = Routers::new("each_link_carries_the_best_that_is_wanted", &["ffmpeg"])? else {
        return Ok(());
    };
    let other = Namespace::new("best")?;
    link(&other, ("eth0", on(9, 2)), &net.d, ("out1", on(9, 1)))?;
    let stream = "[streams.cam]\ngroup = \"rtp://239.1.1.1:5200\"\n";
    let mut a = Relay::start(&net.scene.paths.relay, &with_multicast("neighbours = [\"mid0\"]", stream))?;
    let mut b = between(&net.b, "")?;
    let interfaces = "interfaces = [\"out0\", \"out1\"]\nneighbours = [\"eth0\"]";
    let mut d = Relay::start(&net.d, &with_multicast(interfaces, ""))?;
    let _coding = codes("cam", &net.scene)?;
    a.wait_up("cam")?;
    wait_route(&d, OWN, on(6, 1))?;
    let low = sees(&net.host, HOST)?;
    let program = LevelProgram::start(&net.host, Family::V4)?;
    program.says(GROUP, Some(3))?;
    wait_sent(&a, &[("mid0", 3)])?;
    wait_for("the intra pictures alone come", || Ok(layers(&low, 30).is_ok_and(|seen| seen == [0].into())))?;
    let best = sees(&other, on(9, 2))?;
    wait_sent(&a, &[("mid0", 1)])?;
    wait_for("the other one gets all", || Ok(layers(&best, 200).is_ok_and(|seen| seen == [0, 1, 2].into())))?;
    ensure!(layers(&low, 100)? == [0].into(), "the first gets what it did");
    let flows = d.json("/api/v1/multicast")?["flows"].clone();
    let thinned = serde_json::json!([{ "interface": "out0", "level": 3 }]);
    ensure!(flows[0]["thinned"] == thinned, "{flows:#}");
    [&mut a, &mut b, &mut d].into_iter().try_for_each(Relay::healthy)
}
