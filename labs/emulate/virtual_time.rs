//! A transport stream through a link, in virtual time and live; and files with simulated nodes, which run both ways.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use outflow_labs::figures::progress;
use outflow_labs::process::Program;
use outflow_labs::relay::binary;
use outflow_labs::scene::PATIENCE;
use outflow_media::Time;
use outflow_sim::capture::{Capture, CapturedPacket};
use outflow_sim::network::{Counting, Network, account, play};
use outflow_ts::TsFramer;

use crate::receiver::number;
use crate::sender::Behind;

/// A link, in a line and as a table of a scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    line: &'static str,
    table: &'static str,
}

/// Too narrow, without and with a policy that knows what packets mean; and one that loses some.
pub(crate) const SCENARIOS: [Scenario; 3] = [
    Scenario {
        line: "600 kbit/s, 20 ms, buffer 20 kB",
        table: "rate = '600 kbit/s'\ndelay = '20 ms'\nbuffer = '20 kB'\npolicy = 'shb'",
    },
    Scenario {
        line: "600 kbit/s, 20 ms, buffer 20 kB, policy elastic",
        table: "rate = '600 kbit/s'\ndelay = '20 ms'\nbuffer = '20 kB'\npolicy = 'elastic'",
    },
    Scenario { line: "20 ms, loss 2 %", table: "delay = '20 ms'\nimpairments = { loss = '2 %' }" },
];

/// A file, and the node in it whose goodput is compared: the ends of the partial-order transport over a path that
/// loses some; routers of multicast and a host at the second of four levels; relays of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nodes {
    name: &'static str,
    text: &'static str,
    node: &'static str,
}

/// Each runs for ten seconds, in which nothing runs at its end.
pub(crate) const NODES: [Nodes; 3] = [
    Nodes {
        name: "transport",
        text: "[links.there]\nrate = '20 Mbit/s'\nbuffer = '250 kB'\ndelay = '40 ms'\n\
               impairments = { loss = '2 %' }\n[links.back]\ndelay = '40 ms'\n\
               [segments.path]\njoins = ['studio', 'viewer']\n\
               from = { studio = ['there'], viewer = ['back'] }\n\
               [nodes.studio]\nkind = 'poc-sender'\nto = 'viewer'\nlatency = '200 ms'\n\
               [nodes.viewer]\nkind = 'poc-receiver'\n",
        node: "viewer",
    },
    Nodes {
        name: "multicast",
        text: "[links.narrow]\nrate = '3 Mbit/s'\nbuffer = '20 kB'\npolicy = 'shb'\n\
               [segments.a]\njoins = ['studio', 'core']\n[segments.b]\njoins = ['core', 'edge']\n\
               via = ['narrow']\n[segments.c]\njoins = ['edge', 'viewer']\n\
               [nodes.studio]\nkind = 'host'\n[nodes.core]\nkind = 'router'\n\
               [nodes.edge]\nkind = 'router'\nabove = 'core'\n\
               [nodes.viewer]\nkind = 'host'\nwants = [{ group = '239.1.1.1', level = 2 }]\n",
        node: "viewer",
    },
    Nodes {
        name: "tree",
        text: "[links.up]\nrate = '6 Mbit/s'\nbuffer = '100 kB'\n\
               [segments.net]\njoins = ['studio', 'near', 'viewer', 'book']\nfrom = { near = ['up'] }\n\
               [nodes.book]\nkind = 'tree-directory'\n\
               [nodes.studio]\nkind = 'tree-relay'\ndirectory = 'book'\nchildren_max = 1\n\
               [nodes.near]\nkind = 'tree-relay'\ndirectory = 'book'\nwants = [{ at = '1 s' }]\n\
               [nodes.viewer]\nkind = 'tree-relay'\ndirectory = 'book'\nwants = [{ at = '2 s' }]\n",
        node: "viewer",
    },
];

/// H.264 of 3 Mbit/s; video of four layers and 4 Mbit/s to a group.
const H264: &str = "model = 'h264'\nframes_per_second = 25\ngop_frames = 25\nkey_frame_bytes = 60000\n\
                    frame_bytes = 13000\nsize_spread = 0.3\npacket_bytes = 1200\n";
const LAYERED: &str = "model = 'layered'\nlayers = 4\nrate = '4 Mbit/s'\nto = '239.1.1.1:5004'\n";

/// How far the shares of packets that come are apart, in percent.
pub(crate) fn nodes_apart(nodes: Nodes) -> Result<f64> {
    let traffic = if nodes.name == "multicast" { LAYERED } else { H264 };
    let text = format!(
        "seed = 1\nduration = '10 s'\n[ends.clock]\nrun = ['sleep', '9.5']\n{}\
         [traffic.video]\nfrom = 'studio'\n{traffic}",
        nodes.text
    );
    let expected = play(&Network::parse(&text)?)?;
    let expected = goodput(|figure| expected.nodes[nodes.node].get(figure).copied())?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), &text)?;
    let arguments = ["emulate".to_owned(), "--json".to_owned(), file.path().display().to_string()];
    let finished = Program::new(binary()?.display().to_string()).args(arguments).finish(PATIENCE)?;
    let report = finished.stderr.lines().last().context("nothing is reported")?;
    let report: serde_json::Value = serde_json::from_str(report)?;
    let live = goodput(|figure| report["nodes"][nodes.node][figure].as_f64())?;
    progress(format!("{}: goodput {expected:.4} in virtual time, {live:.4} live", nodes.name));
    Ok((expected - live).abs() * 100.0)
}

/// The share of packets that come, of those that are sent to a node.
fn goodput(figure: impl Fn(&str) -> Option<f64>) -> Result<f64> {
    let (came, missing) = (figure("packets").context("packets")?, figure("missing").context("missing")?);
    Ok(came / (came + missing))
}

/// The clip that is sent.
const CLIP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo.ts");

/// How far the goodputs are apart, in percent of all bytes.
pub(crate) fn apart(scenario: Scenario) -> Result<f64> {
    let (expected, live) = (in_virtual_time(scenario)?, live(scenario)?);
    progress(format!("{}: goodput {expected:.4} in virtual time, {live:.4} live", scenario.line));
    Ok((expected - live).abs() * 100.0)
}

/// By the same numbers of links, so that chance brings the same.
fn in_virtual_time(scenario: Scenario) -> Result<f64> {
    let text = format!(
        "seed = 1\nduration = '600 s'\n[links.back]\n[links.there]\n{}\n\
         [traffic.clip]\nmodel = 'capture'\nfile = '{CLIP}'\nvia = ['there']\n",
        scenario.table
    );
    let outcome = play(&Network::parse(&text)?)?;
    Ok(outcome.traffic.get("clip").context("it was sent")?.goodput())
}

fn live(scenario: Scenario) -> Result<f64> {
    let bytes = Bytes::from(std::fs::read(CLIP)?);
    let capture = Capture::parse(&bytes, CLIP)?;
    let packets: &[CapturedPacket] = &capture.flows.first().context("a flow")?.packets;
    let mut framer = TsFramer::default();
    framer.push(bytes);
    let datagrams: Vec<Bytes> = std::iter::from_fn(|| framer.next_datagram()).collect();
    ensure!(packets.len() == datagrams.len(), "a packet is a datagram");
    let mut behind = Behind::new(scenario.line)?;
    let start = Instant::now();
    for (packet, datagram) in packets.iter().zip(&datagrams) {
        let due = Duration::from_nanos(packet.at.as_nanos());
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        behind.socket.send(datagram)?;
    }
    // Equal ones are as many as came.
    let mut came: BTreeMap<u64, usize> = BTreeMap::new();
    behind.came()?.iter().for_each(|packet| *came.entry(packet.number).or_default() += 1);
    let mut has_come = |datagram: &Bytes| match came.get_mut(&number(datagram)) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let fates = packets.iter().zip(&datagrams).map(|(packet, datagram)| (*packet, has_come(datagram)));
    Ok(account(Counting::Frames, Time::ZERO, fates).goodput())
}
