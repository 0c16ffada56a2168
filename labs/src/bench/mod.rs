//! One measurement of a fan-out: what a core spends on each packet that it delivers.
//!
//! The relay has one core to itself (receive softirqs included), source and measuring the other. A
//! stage is a relay with its receivers; the source runs until every one of them has been reached,
//! and then for counted times. Before and after that it is quiet, so that nothing is on its way when
//! counts are read: lost is exactly what was sent and did not come.

mod audience;
mod janus;
mod outcome;
mod pion;
mod place;
mod relaying;
mod stage;

use std::time::Duration;

use anyhow::Result;

use crate::cage::{Cage, Limits};
use crate::core_time::CoreTime;
use crate::drain::Hook;
use crate::media::Pulses;
use crate::net::Paths;
use crate::process::{Program, be_preferred, keep_to_cpu};
use crate::receive::allow_many_files;

pub use audience::Door;
pub use janus::{PORT as JANUS_PORT, janus};
pub use outcome::Outcome;
pub use pion::pion;
pub use place::SOURCE_PORT;
pub use stage::{Joining, Stage};

/// The relay's core.
pub const RELAY_CPU: usize = 0;
/// Everything else's core.
pub const OTHER_CPU: usize = 1;

/// The program that relays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contender {
    /// The plain C program.
    Baseline,
    /// Outflow with these lines in its configuration.
    Outflow {
        /// Tables of their own, as in `[fanout]`.
        tables: String,
        /// Keys of the stream.
        stream: String,
    },
    /// Another program, which knows what to send where.
    Other(Program),
}

impl Contender {
    /// Outflow with the ways of `[fanout]` as given (nothing: as it chooses), and these keys of the
    /// stream.
    pub fn outflow(fanout: &str, stream: &str) -> Self {
        let tables = if fanout.is_empty() { String::new() } else { format!("[fanout]\n{fanout}\n") };
        Self::Outflow { tables, stream: stream.into() }
    }
}

/// Where packets end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Addresses that a BPF program counts for.
    Udp(Hook),
    /// The same, which are of IPv6.
    UdpV6(Hook),
    /// Connections that are emptied: RTSP with RTP on the same connection; bare from the baseline.
    Tcp,
    /// Viewers by WebRTC, which ask so. Their packets of media are counted by a BPF program; some of them open theirs.
    WebRtc(Door),
}

impl Ends {
    /// Where packets are taken that come without a connection.
    fn hook(self) -> Option<Hook> {
        match self {
            Self::Udp(hook) | Self::UdpV6(hook) => Some(hook),
            Self::Tcp | Self::WebRtc(_) => None,
        }
    }
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The program that relays.
    pub contender: Contender,
    /// By which way every receiver must be reached, if it matters: "user", "tc" or "xdp".
    pub way: Option<&'static str>,
    /// Where packets end.
    pub ends: Ends,
    /// How many receivers.
    pub sinks: usize,
    /// What the source sends.
    pub pulses: Pulses,
}

/// The place where it is measured.
pub struct Bench {
    paths: Paths,
    core: CoreTime,
    limits: Option<Limits>,
}

impl Bench {
    /// Makes the namespaces, and keeps this program (its threads to come) off the relay's core.
    pub fn new() -> Result<Self> {
        keep_to_cpu(OTHER_CPU)?;
        be_preferred();
        allow_many_files();
        let paths = Paths::new()?.with_sinks()?;
        paths.relay_receives_on(RELAY_CPU)?;
        // Whatever this machine has been set to: reno is everywhere, and paces nothing by timers. Nothing
        // is lost here, so it does as cubic would. And there must be ports for many connections.
        paths.relay.sysctl("net.ipv4.tcp_congestion_control", "reno")?;
        paths.players.sysctl("net.ipv4.tcp_congestion_control", "reno")?;
        paths.players.sysctl("net.ipv4.ip_local_port_range", "1024 65535")?;
        Ok(Self { paths, core: CoreTime::watch(RELAY_CPU)?, limits: None })
    }

    /// Holds relays to so much, with all that the kernel does for them. What it does for receivers is
    /// no part of that: they receive on the other core.
    pub fn held_to(mut self, limits: Limits) -> Result<Self> {
        self.paths.players_receive_on(OTHER_CPU)?;
        self.limits = Some(limits);
        Ok(self)
    }

    /// The namespaces, for what no stage does.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// What watches the relay's core.
    pub fn core(&self) -> &CoreTime {
        &self.core
    }

    /// Starts a relay and its receivers, and waits until every one of them has got something.
    ///
    /// # Errors
    /// The relay does not start, does not reach all receivers, or goes another way than it should.
    pub fn open(&self, setup: &Setup) -> Result<Stage<'_>> {
        Stage::open(&self.paths, &self.core, Cage::with(self.limits)?, setup)
    }

    /// Opens a stage and measures once.
    pub fn measure(&self, setup: &Setup, time: Duration) -> Result<Outcome> {
        self.open(setup)?.measure(time)
    }
}
