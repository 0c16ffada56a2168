//! Receivers that come together and leave together.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result};
use outflow_labs::net::{Namespace, PLAYER};
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::relay::Relay;
use serde_json::json;

/// Between two looks at the receivers' sockets.
const NAP: Duration = Duration::from_millis(20);
/// The ports of those that are sent to without asking, each used once: enough for half an hour.
const PORTS: Range<u16> = 2_000..40_000;
/// Those that the system chooses for other sockets.
pub(crate) const OTHER_PORTS: &str = "40000 65535";

/// Where they come in.
pub(crate) struct Door<'p> {
    players: &'p Namespace,
    target: Target,
    ports: Range<u16>,
    /// How the next one gets the stream: each way in turn.
    turn: usize,
}

/// Some receivers.
pub(crate) struct Party {
    crowd: Crowd,
    ports: Vec<u16>,
}

impl<'p> Door<'p> {
    pub(crate) fn new(players: &'p Namespace) -> Self {
        Self { players, target: Target::new("live"), ports: PORTS, turn: 0 }
    }

    /// `count` receivers join, and are read from then on.
    pub(crate) fn let_in(&mut self, relay: &Relay<'_>, count: usize) -> Result<Party> {
        let mut party = Party { crowd: Crowd::start(Vec::new(), NAP)?, ports: Vec::new() };
        for _ in 0..count {
            self.turn += 1;
            let how = match self.turn % 3 {
                0 => How::RtspUdp,
                1 => How::Http,
                _ => How::Udp(self.ports.next().context("all ports have been used")?),
            };
            party.crowd.add(self.players.run(|| Receiver::open(how, &self.target))?)?;
            if let How::Udp(port) = how {
                party.ports.push(port);
                let to = format!("udp://{PLAYER}:{port}");
                relay.post("/api/v1/streams/live/sinks", &json!({ "to": to, "name": name(port) }))?;
            }
        }
        Ok(party)
    }
}

impl Party {
    /// What they have lost since the last time; a disconnected one has lost one more.
    pub(crate) fn split(&self) -> Result<u64> {
        let period = self.crowd.split()?;
        Ok(period.sum(|meter| {
            let silent = meter.ended.is_some() || meter.bytes == 0;
            meter.lost + meter.rtp_lost + meter.continuity.gaps + u64::from(silent)
        }))
    }

    /// They all leave.
    pub(crate) fn leave(self, relay: &Relay<'_>) -> Result<()> {
        for port in &self.ports {
            relay.delete(&format!("/api/v1/streams/live/sinks/{}", name(*port)))?;
        }
        drop(self.crowd);
        Ok(())
    }
}

fn name(port: u16) -> String {
    format!("visitor-{port}")
}
