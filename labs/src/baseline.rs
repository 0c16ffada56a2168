//! The relays that Outflow is compared with: plain C, as one would write it first (`labs/baseline`).
//! `place` says where and how they run.

use std::net::SocketAddrV4;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::net::{SINK_PORT, SINK_PORTS, SINKS_FIRST};
use crate::process::{Program, Running};
use crate::relay::PATIENCE;

/// Where the baseline for TCP takes its receivers.
pub const TCP_PORT: u16 = 8200;

/// Sends each datagram that comes to `port` to each sink by a `sendto`.
pub fn udp(port: u16, sinks: usize, place: impl FnOnce(Program) -> Program) -> Result<Running> {
    let program = Program::new(concat!(env!("OUT_DIR"), "/baseline-udp")).args([
        port.to_string(),
        sinks.to_string(),
        SINKS_FIRST.to_string(),
        SINK_PORT.to_string(),
        SINK_PORTS.to_string(),
    ]);
    ready(&place(program))
}

/// Writes each datagram that comes to `port` to each of `sinks` connections by a `write`.
pub fn tcp(port: u16, sinks: usize, place: impl FnOnce(Program) -> Program) -> Result<Running> {
    let program = Program::new(concat!(env!("OUT_DIR"), "/baseline-tcp")).args([
        port.to_string(),
        sinks.to_string(),
        TCP_PORT.to_string(),
    ]);
    ready(&place(program))
}

/// Receives whole images at `port`, and sends each on to an address: as it is ("forward"), gray
/// ("gray"), or gray with a value a pixel ("pgm").
pub fn images(
    port: u16,
    to: SocketAddrV4,
    work: &str,
    place: impl FnOnce(Program) -> Program,
) -> Result<Running> {
    let program = Program::new(concat!(env!("OUT_DIR"), "/baseline-images"));
    let to = [to.ip().to_string(), to.port().to_string()];
    ready(&place(program.arg(port.to_string()).args(to).arg(work)))
}

fn ready(program: &Program) -> Result<Running> {
    let mut running = program.start()?;
    let until = Instant::now() + PATIENCE;
    while !running.stdout().contains("ready") {
        if !running.alive() || Instant::now() > until {
            bail!("the baseline did not get ready: {}", running.account());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(running)
}
