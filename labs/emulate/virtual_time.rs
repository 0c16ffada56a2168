//! A transport stream through a link, in virtual time and live.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use outflow_labs::figures::progress;
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
