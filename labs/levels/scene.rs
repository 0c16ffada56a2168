//! What both parts of the lab have in common: a way out, and the relay's configuration for it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::bench::RELAY_CPU;
use outflow_labs::drain::Hook;
use outflow_labs::net::Paths;
use outflow_labs::relay::{PATIENCE, Relay, listen};
use serde_json::Value;

use super::video::Video;

/// Receivers of a stream.
pub(crate) const SINKS: usize = 1000;
/// When nothing has come for so long, nothing is on its way.
pub(crate) const QUIET: Duration = Duration::from_millis(150);
/// One worker on one core; silence between two measurements is nothing to tell of.
const LIMITS: &str = "[limits]\nreceivers = 10_000\nworkers = 1\n[log]\nlevel = \"warn\"\n";

/// A way by which packets leave the relay, and the end of it at which that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// Of `[fanout]`, and what the API calls it.
    pub(crate) name: &'static str,
    pub(crate) hook: Hook,
}

/// System calls; clones by the kernel's classifier; frames that are given to the device.
pub(crate) const WAYS: [Way; 3] = [
    Way { name: "user", hook: Hook::Tc },
    Way { name: "tc", hook: Hook::Tc },
    Way { name: "xdp", hook: Hook::Xdp },
];

/// A stream of the configuration that comes to this port; its description goes into `folder`.
pub(crate) fn stream(folder: &Path, video: &Video, name: &str, port: u16) -> Result<String> {
    let sdp = folder.join(format!("{name}.sdp"));
    std::fs::write(&sdp, video.description(port))?;
    let file = sdp.display();
    Ok(format!(
        "[streams.{name}]\nsource = \"rtp://0.0.0.0:{port}\"\nsdp = \"{file}\"\nsource_timeout = \"1 h\"\n\
         max_receivers = 10_000\n"
    ))
}

/// A receiver of the configuration.
pub(crate) fn receiver(stream: &str, to: impl std::fmt::Display, level: usize) -> String {
    format!("[[sinks]]\nstream = \"{stream}\"\nto = \"rtp://{to}\"\nlevel = {level}\n")
}

/// Starts a relay on its core, with these streams and receivers.
pub(crate) fn start<'p>(paths: &'p Paths, way: Way, streams: &str) -> Result<Relay<'p>> {
    let text = format!("{}{LIMITS}[fanout]\nudp = \"{}\"\n{streams}", listen(), way.name);
    Relay::start_as(&paths.relay, &text, |program| program.on_cpu(RELAY_CPU).preferred())
}

/// Waits until this many receivers of a stream are reached by this way; `send` has the source send a little.
pub(crate) fn wait_way(
    relay: &Relay<'_>,
    (stream, receivers): (&str, usize),
    way: Way,
    mut send: impl FnMut() -> Result<()>,
) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let state = relay.wait_receivers(stream, receivers)?;
        let all = state["receivers"].as_array().context("the relay shows no receivers")?;
        let is_other = |receiver: &&Value| receiver["path"] != way.name;
        let Some(other) = all.iter().find(is_other) else { return Ok(()) };
        ensure!(Instant::now() < until, "not all are reached by \"{}\": {other}", way.name);
        send()?;
    }
}
