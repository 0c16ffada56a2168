//! `outflow sim --replay`: the planner's question in one command.

use std::path::{Path, PathBuf};

use clap::Args;
use outflow_link::{Policy, Scheduling};
use outflow_sim::capture::{Capture, FlowKind};
use outflow_study::Study;
use toml::{Table, Value};

/// How long a link's buffers hold at its rate if nothing is said.
const BUFFER_S: f64 = 0.1;

/// A capture through a link.
#[derive(Debug, Clone, Args)]
#[group(id = "replaying", multiple = true)]
pub(super) struct Replay {
    /// A capture (pcap, pcapng) or a transport stream to send through a link instead of a scenario
    #[arg(long, value_name = "CAPTURE", conflicts_with = "file", requires = "link")]
    replay: Option<PathBuf>,
    /// The session description of what was captured
    #[arg(long, value_name = "FILE", requires = "replay")]
    sdp: Option<PathBuf>,
    /// The link's rate, as '20 Mbit/s'
    #[arg(long, value_name = "RATE", requires = "replay")]
    link: Option<String>,
    /// The buffers' size, as '45 kB'; what passes in 100 ms if not given
    #[arg(long, value_name = "SIZE", requires = "replay")]
    buffer: Option<String>,
    /// Policies to compare; all if not given
    #[arg(long, value_name = "POLICIES", value_delimiter = ',', requires = "replay", value_parser = policy)]
    policies: Vec<Policy>,
    /// Whose turn it is among buffers
    #[arg(long, value_name = "SCHEDULER", requires = "replay", value_parser = scheduler)]
    scheduler: Option<Scheduling>,
}

fn policy(name: &str) -> Result<Policy, String> {
    let names = || Policy::ALL.iter().map(|policy| policy.as_str()).collect::<Vec<_>>().join(", ");
    Policy::from_name(name).ok_or_else(|| format!("possible are {}", names()))
}

fn scheduler(name: &str) -> Result<Scheduling, String> {
    let names = || Scheduling::ALL.iter().map(|way| way.as_str()).collect::<Vec<_>>().join(", ");
    Scheduling::from_name(name).ok_or_else(|| format!("possible are {}", names()))
}

impl Replay {
    /// What is asked, as a study; `None` if nothing is.
    pub(super) fn study(&self) -> Result<Option<Study>, String> {
        let (Some(file), Some(rate)) = (&self.replay, &self.link) else { return Ok(None) };
        let sdp = self.sdp.as_ref().map(|sdp| {
            std::fs::read_to_string(sdp).map_err(|error| format!("cannot read {}: {error}", sdp.display()))
        });
        let capture =
            Capture::open_with(file, sdp.transpose()?.as_deref()).map_err(|error| error.to_string())?;
        describe(&capture);
        let study = Study::from_table(self.table(file, rate, &capture)?);
        study.map(Some).map_err(|error| error.to_string())
    }

    fn table(&self, file: &Path, rate: &str, capture: &Capture) -> Result<Table, String> {
        let bps: outflow_config::BitRate =
            rate.parse().map_err(|error: outflow_config::Invalid| format!("--link: {error}"))?;
        let buffer = self.buffer.clone();
        let buffer = buffer.unwrap_or_else(|| format!("{} B", (bps.0 as f64 / 8.0 * BUFFER_S) as u64));
        let text = |text: &str| Value::String(text.to_owned());
        let mut link = Table::new();
        link.insert("rate".into(), text(rate));
        link.insert("buffer".into(), Value::String(buffer));
        if let Some(scheduler) = self.scheduler {
            link.insert("scheduler".into(), text(scheduler.as_str()));
        }
        let mut traffic = Table::new();
        for only in ["media", "data"] {
            let mut model = Table::new();
            model.insert("model".into(), text("capture"));
            model.insert("file".into(), Value::String(file.display().to_string()));
            if let Some(sdp) = &self.sdp {
                model.insert("sdp".into(), Value::String(sdp.display().to_string()));
            }
            model.insert("only".into(), text(only));
            model.insert("via".into(), Value::Array(vec![text("link")]));
            traffic.insert(only.into(), Value::Table(model));
        }
        let policies = if self.policies.is_empty() { Policy::ALL } else { &self.policies };
        let mut sweep = Table::new();
        sweep.insert("name".into(), text("policy"));
        let names = policies.iter().map(|policy| text(policy.as_str())).collect();
        sweep.insert("links.link.policy".into(), Value::Array(names));
        let last = capture.flows.iter().flat_map(|flow| &flow.packets).map(|packet| packet.at.as_nanos());
        // Long enough for what waits to go, too.
        let lasts = last.max().unwrap_or(0) + 60_000_000_000;
        let mut table = Table::new();
        table.insert("seed".into(), Value::Integer(1));
        table.insert("duration".into(), Value::String(format!("{lasts} ns")));
        table.insert(
            "links".into(),
            Value::Table([("link".to_owned(), Value::Table(link))].into_iter().collect()),
        );
        table.insert("traffic".into(), Value::Table(traffic));
        table.insert("sweep".into(), Value::Array(vec![Value::Table(sweep)]));
        Ok(table)
    }
}

/// Says what is in a capture.
fn describe(capture: &Capture) {
    for flow in &capture.flows {
        let bytes: usize = flow.packets.iter().map(|packet| packet.bytes).sum();
        let lasts = flow.packets.last().map_or(0.0, |last| last.at.as_nanos() as f64 / 1e9);
        let kind = match flow.kind {
            FlowKind::Rtp => "RTP",
            FlowKind::Ts => "transport stream",
            FlowKind::Data => "data",
        };
        let packets = flow.packets.len();
        let mbit = bytes as f64 * 8e-6 / lasts.max(1e-9);
        eprintln!("{}: {kind} ({}), {packets} packets, {mbit:.2} Mbit/s", flow.name, flow.carries);
    }
    for (reason, count) in &capture.skipped {
        eprintln!("skipped: {reason}: {count}");
    }
}
