//! Core time a packet: of the emulator, and of the kernel that forwards; and how many the emulator sustains.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::bench::{OTHER_CPU, RELAY_CPU};
use outflow_labs::core_time::CoreTime;
use outflow_labs::figures::{progress, quantile};
use outflow_labs::net::{Namespace, PLAYER, Paths, RELAY_IN};

use crate::receiver::PORT;
use crate::sender::Behind;

/// Bytes of the media in a packet.
const PAYLOAD: usize = 1200;

/// Packets of a round, below what either sustains: none is lost.
const PACKETS: u64 = 40_000;
const BURST: u64 = 32;
const APART: Duration = Duration::from_micros(1000);

/// Packets that wait in the emulator's device, at most.
const DEVICE_QUEUE: u64 = 10_000;

/// For packets that are still on their way.
const DRAIN: Duration = Duration::from_millis(200);
const IDLE: Duration = Duration::from_millis(600);

/// Nanoseconds a packet: emulated, and forwarded.
pub(crate) fn measure(rounds: usize) -> Result<(f64, f64)> {
    let paths = Paths::new()?;
    paths.relay.sysctl("net.ipv4.ip_forward", "1")?;
    paths.source.ip(&["route", "add", &format!("{PLAYER}/32"), "via", &RELAY_IN.to_string()])?;
    paths.relay_receives_on(RELAY_CPU)?;
    paths.players_receive_on(OTHER_CPU)?;
    let _sink = paths.players.run(|| UdpSocket::bind((PLAYER, PORT)))?;
    let from = paths.source.run(|| UdpSocket::bind(("0.0.0.0", 0)))?;
    from.connect((PLAYER, PORT))?;
    let core = CoreTime::watch(RELAY_CPU)?;
    let (mut emulated, mut forwarded) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        core.measure(&[])?;
        let before = received(&paths.players)?;
        let kernel = cost(&core, &from)? / PACKETS as f64;
        let lost = PACKETS.saturating_sub(received(&paths.players)? - before);
        ensure!(lost * 1000 < PACKETS, "the kernel lost {lost} of {PACKETS} packets");
        let mut behind = Behind::new("0 ms")?;
        core.measure(&[behind.emulator.pid()])?;
        let user = cost(&core, &behind.socket)? / PACKETS as f64;
        let lost = PACKETS.saturating_sub(behind.came()?.len() as u64);
        ensure!(lost * 1000 < PACKETS, "the emulator lost {lost} of {PACKETS} packets");
        progress(format!("round {round} of {rounds}: emulated {user:.0} ns, forwarded {kernel:.0} ns"));
        emulated.push(user);
        forwarded.push(kernel);
    }
    Ok((quantile(&emulated, 0.5), quantile(&forwarded, 0.5)))
}

/// Packets a second that go through the emulator on its core, when more are sent than that.
pub(crate) fn sustained(rounds: usize, lasts: Duration) -> Result<f64> {
    let mut counts = Vec::new();
    for round in 1..=rounds {
        let through = Behind::new("0 ms")?.flood(lasts, &[7; PAYLOAD])?;
        // What waited in the device in the end has come after that time.
        let count = through.saturating_sub(DEVICE_QUEUE) as f64 / lasts.as_secs_f64();
        progress(format!("round {round} of {rounds}: {count:.0} packets a second"));
        counts.push(count);
    }
    Ok(quantile(&counts, 0.5))
}

/// Nanoseconds that the core spends on a round.
fn cost(core: &CoreTime, socket: &UdpSocket) -> Result<f64> {
    let idle = core.idle(IDLE)?;
    let (reading, start, mut payload) = (core.read()?, Instant::now(), [7; PAYLOAD]);
    for number in 0..PACKETS {
        let due = APART * (number / BURST) as u32;
        while start.elapsed() < due {
            std::hint::spin_loop();
        }
        payload[..8].copy_from_slice(&number.to_be_bytes());
        socket.send(&payload)?;
    }
    std::thread::sleep(DRAIN);
    let used = core.since(&reading)?;
    Ok((used.load() - idle.load()) * used.wall.as_secs_f64() * 1e9)
}

/// Packets that have come to the players.
fn received(players: &Namespace) -> Result<u64> {
    let text = players.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).context("eth0")?;
    Ok(line.split_whitespace().nth(1).context("packets")?.parse()?)
}
