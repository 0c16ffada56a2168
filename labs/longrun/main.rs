//! Half an hour of coming and going: 2,000 receivers of a stream (sent to by UDP, RTSP over UDP,
//! HTTP), half of which stay while the others are replaced, 50 a second. Those that stay are to lose
//! nothing, and nothing is to be left of those that went: descriptor, memory, place in the kernel's
//! table.

mod visitors;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use outflow_labs::bench::{OTHER_CPU, RELAY_CPU};
use outflow_labs::cage::Cage;
use outflow_labs::figures::{Options, progress, rounded, run_lab};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::process::{be_preferred, keep_to_cpu};
use outflow_labs::relay::{Relay, listen};
use serde_json::{Value, json};

use visitors::{Door, OTHER_PORTS, Party};

const RATE_BPS: u64 = 256_000;
const STAY: usize = 1000;
const COME_AND_GO: usize = 1000;
/// This many join, and as many leave, at a time ...
const PARTY: usize = 25;
/// ... and so often: 50 a second.
const EVERY: Duration = Duration::from_millis(500);
/// Places in the kernel's table are few, so that it would soon be full if they were not given back.
const RECEIVERS_MAX: usize = 2500;
/// Between two reports of how it goes.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// Output that no receiver takes any more is kept for a while (`BRANCH_LINGER` of the relay).
const LINGER: Duration = Duration::from_secs(8);

fn main() -> ExitCode {
    run_lab("longrun", lab)
}

/// What the relay holds.
#[derive(Debug, Clone, Copy)]
struct Holds {
    descriptors: usize,
    resident: u64,
    /// With what the kernel holds for it.
    memory: u64,
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(OTHER_CPU)?;
    be_preferred();
    let (stay, come_and_go, time) =
        if options.quick { (STAY / 4, COME_AND_GO / 4, 20) } else { (STAY, COME_AND_GO, 1800) };
    let paths = Paths::new()?;
    paths.players.sysctl("net.ipv4.ip_local_port_range", OTHER_PORTS)?;
    let cage = Cage::new()?;
    let relay = Relay::start_as(&paths.relay, &configuration(), |program| {
        program.on_cpu(RELAY_CPU).caged(&cage).preferred()
    })?;
    let _source = Sender::start(&paths.source, (RELAY_IN, 5000).into(), Shape::of_rate(RATE_BPS))?;
    relay.wait_up("live")?;
    let mut house = House { relay, cage: &cage, door: Door::new(&paths.players) };
    let empty = house.holds()?;

    let stayed = house.let_in(stay)?;
    let parties = (0..come_and_go / PARTY).map(|_| house.let_in(PARTY)).collect::<Result<VecDeque<_>>>()?;
    let all = stay + come_and_go;
    house.relay.wait_receivers("live", all)?;
    let by_kernel_first = house.by_kernel()?;
    stayed.split()?;
    progress(format!("{all} receivers; for {time} s, {} a second come and go", 2 * PARTY));
    let came = house.come_and_go(&stayed, parties, Duration::from_secs(time))?;
    house.relay.wait_receivers("live", all)?;
    let by_kernel_last = house.by_kernel()?;

    came.parties.into_iter().chain([stayed]).try_for_each(|party| party.leave(&house.relay))?;
    let left = house.emptied(&empty)?;
    house.relay.healthy()?;
    let megabytes = |now: u64, then: u64| rounded((now as f64 - then as f64) / 1e6);
    Ok(json!({
        "stayed_lost": came.lost,
        "joins": came.joins,
        "joins_per_s": rounded(came.joins as f64 / came.took.as_secs_f64()),
        "fd_growth": left.descriptors as i64 - empty.descriptors as i64,
        "rss_growth_mb": megabytes(came.full.resident, came.settled.resident),
        "memory_growth_mb": megabytes(came.full.memory, came.settled.memory),
        "by_kernel_first": by_kernel_first,
        "by_kernel_last": by_kernel_last,
        "rss_empty_mb": megabytes(empty.resident, 0),
        "rss_full_mb": megabytes(came.full.resident, 0),
        "rss_left_mb": megabytes(left.resident, 0),
        "receivers": all,
        "seconds": rounded(came.took.as_secs_f64()),
    }))
}

/// The relay, and where receivers come in.
struct House<'p> {
    relay: Relay<'p>,
    cage: &'p Cage,
    door: Door<'p>,
}

/// What came of the coming and going.
struct Came {
    parties: VecDeque<Party>,
    joins: usize,
    lost: u64,
    took: Duration,
    /// After a quarter of the time, with as many receivers as at the end: memory has settled.
    settled: Holds,
    full: Holds,
}

impl House<'_> {
    fn let_in(&mut self, count: usize) -> Result<Party> {
        self.door.let_in(&self.relay, count)
    }

    /// Has a party leave and another one join, again and again.
    fn come_and_go(&mut self, stayed: &Party, mut parties: VecDeque<Party>, time: Duration) -> Result<Came> {
        let began = Instant::now();
        let (mut settled, mut lost, mut joins, mut reported) = (None, 0, 0, began);
        for turn in 1.. {
            parties.pop_front().context("somebody comes and goes")?.leave(&self.relay)?;
            parties.push_back(self.let_in(PARTY)?);
            joins += PARTY;
            let passed = began.elapsed();
            if settled.is_none() && passed >= time / 4 {
                settled = Some(self.holds()?);
            }
            if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                lost += stayed.split()?;
                let holds = self.holds()?;
                progress(format!("{} s: {joins} have joined, {lost} lost; {holds:?}", passed.as_secs()));
            }
            if passed >= time {
                break;
            }
            std::thread::sleep((began + EVERY * turn).saturating_duration_since(Instant::now()));
        }
        lost += stayed.split()?;
        let settled = settled.context("a quarter of the time has passed")?;
        Ok(Came { parties, joins, lost, took: began.elapsed(), settled, full: self.holds()? })
    }

    /// What is held when all have left: connections that ended are closed a moment later.
    fn emptied(&mut self, before: &Holds) -> Result<Holds> {
        self.relay.wait_receivers("live", 0)?;
        let until = Instant::now() + LINGER;
        loop {
            let left = self.holds()?;
            if left.descriptors <= before.descriptors || Instant::now() > until {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn holds(&mut self) -> Result<Holds> {
        let descriptors = self.relay.process().descriptors()?;
        Ok(Holds { descriptors, resident: self.relay.resident()?, memory: self.cage.memory()? })
    }

    /// Receivers that have a place in the kernel's table. One or two that have just joined may be about
    /// to get theirs.
    fn by_kernel(&self) -> Result<usize> {
        let state = self.relay.stream("live")?;
        let receivers = state["receivers"].as_array().context("no receivers shown")?;
        Ok(receivers.iter().filter(|one| one["path"] != "user").count())
    }
}

fn configuration() -> String {
    let mut text = listen() + "[log]\nlevel = \"warn\"\n[limits]\nworkers = 1\n";
    text += &format!("receivers = {RECEIVERS_MAX}\n");
    text += "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n";
    text
}
