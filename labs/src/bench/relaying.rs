//! The relay of a stage: the plain one, or Outflow with its configuration.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::place::{SOURCE_PORT, STREAM};
use super::{Contender, Ends, RELAY_CPU, Setup};
use crate::baseline;
use crate::cage::Cage;
use crate::media::rtp;
use crate::net::{Paths, sink, sink_v6};
use crate::process::{Program, Running};
use crate::relay::{Relay, listen};

/// A relay that runs.
pub(super) enum Relaying<'b> {
    Program(Running),
    Outflow(Box<Relay<'b>>),
}

impl<'b> Relaying<'b> {
    /// Starts what the setup says on the relay's core.
    pub(super) fn start(paths: &'b Paths, setup: &Setup, cage: &Cage, folder: &Path) -> Result<Self> {
        let place = |program: Program| program.within(&paths.relay).on_cpu(RELAY_CPU).caged(cage).preferred();
        let (tables, stream) = match (&setup.contender, setup.ends) {
            (Contender::Outflow { tables, stream }, _) => (tables, stream),
            (Contender::Other(program), _) => return place(program.clone()).start().map(Self::Program),
            (Contender::Baseline, Ends::Udp(_)) => {
                return baseline::udp(SOURCE_PORT, setup.sinks, place).map(Self::Program);
            }
            (Contender::Baseline, Ends::UdpV6(_)) => bail!("the plain relay sends by IPv4 alone"),
            (Contender::Baseline, Ends::WebRtc(_)) => bail!("the plain relay does not encrypt"),
            (Contender::Baseline, Ends::Tcp) => {
                return baseline::tcp(SOURCE_PORT, setup.sinks, place).map(Self::Program);
            }
        };
        let sdp = folder.join("stream.sdp");
        let (description, browsers) = match setup.ends {
            Ends::WebRtc(_) => (rtp::bare_description(SOURCE_PORT), BROWSERS),
            _ => (rtp::description(SOURCE_PORT), ""),
        };
        std::fs::write(&sdp, description)?;
        let mut text = listen() + browsers + LIMITS + tables;
        text += &format!("[streams.{STREAM}]\nsource = \"rtp://0.0.0.0:{SOURCE_PORT}\"\n");
        text += &format!("sdp = \"{}\"\nmax_receivers = 1_000_000\n{stream}\n", sdp.display());
        for number in 0..setup.sinks {
            let to = match setup.ends {
                Ends::Udp(_) => SocketAddr::from(sink(number)),
                Ends::UdpV6(_) => sink_v6(number).into(),
                Ends::Tcp | Ends::WebRtc(_) => break,
            };
            text += &format!("[[sinks]]\nstream=\"{STREAM}\"\nto=\"rtp://{to}\"\n");
        }
        let relay = Relay::start_as(&paths.relay, &text, place)?;
        Ok(Self::Outflow(Box::new(relay)))
    }

    pub(super) fn process(&mut self) -> &mut Running {
        match self {
            Self::Program(running) => running,
            Self::Outflow(relay) => relay.process(),
        }
    }

    pub(super) fn healthy(&mut self) -> Result<()> {
        match self {
            Self::Program(running) => {
                ensure!(running.alive(), "it ended: {}", running.account());
                Ok(())
            }
            Self::Outflow(relay) => relay.healthy(),
        }
    }
}

/// The port of browsers, of `[listen]`.
const BROWSERS: &str = "webrtc = \"0.0.0.0:8189\"\n";

/// No limit is to be met but those of the machine; one core, one worker.
const LIMITS: &str = "[limits]\nreceivers = 1_000_000\nconnections = 1_000_000\n\
                      connections_per_address = 1_000_000\nworkers = 1\n[log]\nlevel = \"warn\"\n";
