//! `outflow emulate`: programs behind links.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{Namespace, cannot_make_namespaces};
use outflow_labs::process::Program;
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, binary, listen};
use outflow_labs::scene::{PATIENCE, skipped};

/// Where the near end answers.
const PORT: u16 = 5600;

/// The namespace in which the emulator runs, or why the test is skipped.
fn near(test: &str) -> Result<Option<Namespace>> {
    if let Some(why) = cannot_make_namespaces() {
        skipped(test, &why);
        return Ok(None);
    }
    Namespace::new("near").map(Some)
}

/// A program behind a link, not started yet.
fn emulate(near: &Namespace, options: &[&str], script: &str) -> Result<Program> {
    let emulate = Program::new(binary()?.display().to_string()).arg("emulate").args(options.to_vec());
    Ok(emulate.args(["--", "bash", "-c", script]).within(near))
}

/// What is reported in the end.
fn reported(stderr: &str) -> Result<serde_json::Value> {
    Ok(serde_json::from_str(stderr.lines().last().context("nothing is reported")?)?)
}

#[test]
fn a_program_is_as_far_away_as_its_link_says() -> Result<()> {
    let Some(near) = near("a_program_is_as_far_away_as_its_link_says")? else { return Ok(()) };
    let socket = near.run(|| UdpSocket::bind(("::", PORT)))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // It says something, is answered, and says that again: by IPv4, then by IPv6. Bash reads a byte of a datagram.
    let script = format!(
        "for here in $EMULATE_HERE fd6f:7574:666c::1; do exec 3<>/dev/udp/$here/{PORT}; \
         echo one >&3; read -u 3 -n 1 -t 30 answer; echo $answer >&3; done"
    );
    let mut running = emulate(&near, &["--json", "--link", "30 ms"], &script)?.start()?;
    for six in [false, true] {
        let mut bytes = [0; 64];
        let (length, from) = heard(&socket, &mut bytes).with_context(|| running.account())?;
        ensure!(&bytes[..length] == b"one\n" && from.ip().to_canonical().is_ipv6() == six, "{from}");
        let answered = Instant::now();
        socket.send_to(b"2", from)?;
        let (length, _) = heard(&socket, &mut bytes).with_context(|| running.account())?;
        // No packet comes too early; how late one may be depends on the machine.
        ensure!(answered.elapsed() >= Duration::from_millis(60), "{:?}", answered.elapsed());
        ensure!(&bytes[..length] == b"2\n", "{:?}", &bytes[..length]);
    }
    ensure!(running.wait(PATIENCE)?.success(), "{}", running.account());
    let report = reported(&running.stderr())?;
    ensure!(report["links"]["there"]["packets"].as_u64() >= Some(2), "{report}");
    ensure!(report["links"]["there"]["lost"] == 0 && report["refused"] == 0, "{report}");
    Ok(())
}

/// What comes. A socket that waits for a time is not waited for again by itself when a signal comes (signal(7)).
fn heard(socket: &UdpSocket, bytes: &mut [u8]) -> std::io::Result<(usize, SocketAddr)> {
    loop {
        match socket.recv_from(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            heard => return heard,
        }
    }
}

#[test]
fn what_is_lost_is_counted_and_nothing_is_left_behind() -> Result<()> {
    let Some(near) = near("what_is_lost_is_counted_and_nothing_is_left_behind")? else { return Ok(()) };
    let socket = near.run(|| UdpSocket::bind(("0.0.0.0", PORT)))?;
    socket.set_nonblocking(true)?;
    let script = format!("for n in 1 2 3; do echo $n > /dev/udp/$EMULATE_HERE/{PORT}; done; exit 7");
    let options = ["--link", "1 ms", "--back", "loss 100 %"];
    let mut running = emulate(&near, &options, &script)?.start()?;
    ensure!(running.wait(PATIENCE)?.code() == Some(7), "its status is the program's: {}", running.account());
    ensure!(socket.recv(&mut [0; 8]).is_err(), "all is lost");
    let lost = running.stderr().lines().find(|line| line.starts_with("back: ")).map(str::to_owned);
    ensure!(lost.as_ref().is_some_and(|line| !line.contains("lost 0")), "{lost:?}");
    ensure!(near.ip(&["-brief", "link"])?.lines().count() == 1, "{}", near.ip(&["-brief", "link"])?);
    Ok(())
}

/// A relay at one end, a player at another one, behind two links of a path.
#[test]
fn programs_at_the_ends_of_a_network_reach_each_other() -> Result<()> {
    let Some(near) = near("programs_at_the_ends_of_a_network_reach_each_other")? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let outflow = binary()?.display().to_string();
    std::fs::write(path("relay.toml"), format!("{}[streams.clip]\nsource = \"demo://\"\n", listen()))?;
    let (done, relay) = (path("done"), path("relay.toml"));
    let relays =
        format!("{outflow} run {relay} & until [ -e {done} ]; do sleep 0.05; done; kill $!; wait $!");
    let url = format!("rtsp://$EMULATE_RELAY:{RTSP_PORT}/clip");
    let watches = format!(
        "until {outflow} watch {url} --duration 2s --transport udp; do sleep 0.05; done; touch {done}"
    );
    let network = format!(
        "seed = 1\nduration = '120 s'\n\
         [links.uplink]\nrate = '20 Mbit/s'\nbuffer = '250 kB'\n[links.far]\ndelay = '10 ms'\n\
         [ends.relay]\nrun = ['sh', '-c', '{relays}']\n[ends.home]\nrun = ['sh', '-c', '{watches}']\n\
         [ends.spare]\n\
         [[paths]]\nfrom = 'relay'\nto = 'home'\nvia = ['uplink', 'far']\n\
         [[paths]]\nfrom = 'relay'\nto = 'spare'\nvia = []\n\
         [[paths]]\nfrom = 'home'\nto = 'relay'\nvia = ['far']\n"
    );
    std::fs::write(path("network.toml"), network)?;
    let emulate = Program::new(outflow).args(["emulate".into(), "--json".into(), path("network.toml")]);
    let finished = emulate.within(&near).finish(PATIENCE)?;
    let report = reported(&finished.stderr)?;
    let packets = |link: &str| report["links"][link]["packets"].as_u64().unwrap_or(0);
    ensure!(packets("uplink") > 100 && packets("far") > packets("uplink"), "{report}");
    let media = report["media"][0].as_str().unwrap_or_default();
    ensure!(media.starts_with("relay > home: 10.213.0.2:") && media.contains("H.264"), "{report}");
    Ok(())
}

/// A relay that runs, as a router between a simulated router and simulated hosts: each is sent the level that it wants.
#[test]
fn a_real_router_forwards_between_simulated_ones() -> Result<()> {
    let Some(near) = near("a_real_router_forwards_between_simulated_ones")? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let outflow = binary()?.display().to_string();
    // Devices of an end are in the order of its segments' names.
    let router = "[multicast]\nupstream = \"emulate0\"\ninterfaces = [\"emulate1\", \"emulate2\"]\n\
                  query_interval = \"4 s\"\nquery_response = \"1 s\"\nsources = [\"10.214.0.0/16\"]\n";
    std::fs::write(path("router.toml"), format!("{}{router}", listen()))?;
    let asks = format!("curl -sS -f http://127.0.0.1:{HTTP_PORT}/api/v1/multicast -o {}", path("flows.json"));
    let runs = format!("{outflow} run {} & sleep 9; {asks}; sleep 1; kill $!; wait $!", path("router.toml"));
    let network = format!(
        "seed = 1\nduration = '60 s'\n[links.loaded]\nrate = '10 Mbit/s'\nbuffer = '100 kB'\n\
         [ends.router]\nrun = ['sh', '-c', '{runs}']\n\
         [segments.above]\njoins = ['core', 'router']\nvia = ['loaded']\n\
         [segments.left]\njoins = ['router', 'tv']\n[segments.right]\njoins = ['router', 'wall']\n\
         [segments.studio]\njoins = ['camera', 'core']\n\
         [nodes.camera]\nkind = 'host'\n[nodes.core]\nkind = 'router'\n\
         [nodes.tv]\nkind = 'host'\nwants = [{{ group = '239.1.1.1', level = 3, at = '4 s' }}]\n\
         [nodes.wall]\nkind = 'host'\nwants = [{{ group = '239.1.1.1', at = '5 s', until = '7 s' }}]\n\
         [traffic.video]\nmodel = 'layered'\nlayers = 4\nrate = '800 kbit/s'\n\
         from = 'camera'\nto = '239.1.1.1:5004'\n\
         [traffic.other]\nmodel = 'data'\nvia = ['loaded']\n"
    );
    std::fs::write(path("network.toml"), network)?;
    let emulate = Program::new(outflow).args(["emulate".into(), "--json".into(), path("network.toml")]);
    let finished = emulate.within(&near).finish(PATIENCE)?;
    let report = reported(&finished.stderr)?;
    let of = |node: &str, figure: &str| report["nodes"][node][figure].as_f64().unwrap_or(-1.0);
    // Levels 3 and 1 of four layers; before the better one has come, there are frames as they were on the way.
    for (node, layers, frames) in [("tv", 2.0, 100.0), ("wall", 4.0, 25.0)] {
        let whole = (of(node, "missing"), of(node, "decodable_pct"));
        ensure!(whole == (0.0, 100.0) && of(node, "frames") >= frames, "{node}: {report}");
        ensure!((layers - 0.2..=layers).contains(&of(node, "layers")), "{node}: {report}");
    }
    ensure!(
        report["traffic"]["other"]["goodput_pct"] == 100.0,
        "traffic of the file is there, too: {report}"
    );
    let flows: serde_json::Value = serde_json::from_slice(&std::fs::read(path("flows.json"))?)?;
    ensure!(flows["flows"][0]["thinned_by"] == "kernel", "{flows}");
    Ok(())
}

#[test]
fn it_ends_with_its_program_when_it_is_told_to() -> Result<()> {
    let Some(near) = near("it_ends_with_its_program_when_it_is_told_to")? else { return Ok(()) };
    let socket = near.run(|| UdpSocket::bind(("0.0.0.0", PORT)))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let script = format!(
        "trap 'echo end > /dev/udp/$EMULATE_HERE/{PORT}; exit 3' TERM; \
         echo begun > /dev/udp/$EMULATE_HERE/{PORT}; while :; do sleep 0.05; done"
    );
    let mut running = emulate(&near, &["--link", "1 ms"], &script)?.start()?;
    let mut bytes = [0; 64];
    let begun = socket.recv(&mut bytes).with_context(|| running.account())?;
    ensure!(&bytes[..begun] == b"begun\n");
    running.signal(nix::sys::signal::Signal::SIGTERM)?;
    ensure!(running.wait(PATIENCE)?.code() == Some(3), "{}", running.account());
    Ok(())
}
