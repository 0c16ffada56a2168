//! The emulator with its receiver, and the sender at the near end.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use outflow_labs::bench::{OTHER_CPU, RELAY_CPU};
use outflow_labs::net::Namespace;
use outflow_labs::process::{Program, Running, be_preferred, keep_to_cpu};
use outflow_labs::relay::binary;
use outflow_labs::scene::wait_for;

use crate::receiver::{self, Came, PORT, WORD};

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// The emulator ends so long after its receiver at the latest.
const PATIENCE: Duration = Duration::from_secs(60);

/// The far end's address in a namespace where nothing else is emulated.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 2);

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Bits a second, headers included.
    pub(crate) bps: f64,
    /// Bytes of a packet, headers included.
    pub(crate) packet: usize,
    pub(crate) lasts: Duration,
}

/// A receiver behind a link.
pub(crate) struct Behind {
    _near: Namespace,
    pub(crate) emulator: Running,
    pub(crate) socket: UdpSocket,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Behind {
    /// Starts the emulator and the receiver.
    pub(crate) fn new(link: &str) -> Result<Self> {
        keep_to_cpu(OTHER_CPU)?;
        be_preferred();
        let (near, folder) = (Namespace::new("near")?, tempfile::tempdir()?);
        // What IPv6 says of its own would take chances, and a buffer, that what is measured has in virtual time.
        near.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        let file = folder.path().join("came");
        let own = std::env::current_exe()?;
        let emulate = Program::new(binary()?.display().to_string());
        let emulate = emulate.args(["emulate", "--json", "--link", link, "--back", "0 ms", "--"]);
        let emulate = emulate.args([own.display().to_string(), WORD.into(), file.display().to_string()]);
        let emulator = emulate.within(&near).on_cpu(RELAY_CPU).start()?;
        wait_for("the receiver is there", || Ok(file.exists()))?;
        let socket = near.run(|| UdpSocket::bind(("0.0.0.0", 0)))?;
        socket.connect((FAR, PORT))?;
        Ok(Behind { _near: near, emulator, socket, file, _folder: folder })
    }

    /// Sends a load evenly: when each packet was sent, and what came.
    pub(crate) fn send(mut self, load: Load) -> Result<(Vec<u64>, Vec<Came>)> {
        let apart = Duration::from_secs_f64(load.packet as f64 * 8.0 / load.bps);
        let count = (load.lasts.as_secs_f64() / apart.as_secs_f64()) as u64;
        let mut payload = vec![7; load.packet - HEADERS];
        let (mut sent, start) = (Vec::with_capacity(count as usize), Instant::now());
        for number in 0..count {
            let due = apart.mul_f64(number as f64);
            while start.elapsed() < due {
                std::hint::spin_loop();
            }
            payload[..8].copy_from_slice(&number.to_be_bytes());
            sent.push(now()?);
            self.socket.send(&payload)?;
        }
        Ok((sent, self.came()?))
    }

    /// Sends as much as this core can: how many packets went through the emulator.
    pub(crate) fn flood(mut self, lasts: Duration, payload: &[u8]) -> Result<u64> {
        let start = Instant::now();
        while start.elapsed() < lasts {
            self.socket.send(payload)?;
        }
        self.report()?["arrived"].as_u64().context("it counts packets")
    }

    /// What the emulator says in the end.
    fn report(&mut self) -> Result<serde_json::Value> {
        let status = self.emulator.wait(PATIENCE)?;
        ensure!(status.success(), "outflow emulate: {}", self.emulator.account());
        let report = self.emulator.stderr();
        Ok(serde_json::from_str(report.lines().last().context("it reports nothing")?)?)
    }

    /// What has come, once there is silence.
    pub(crate) fn came(&mut self) -> Result<Vec<Came>> {
        let report = self.report()?;
        // What the device had no room for was not emulated.
        ensure!(report["full"] == 0 && report["refused"] == 0, "packets were not emulated: {report}");
        let came = receiver::read(&self.file)?;
        ensure!(came.len() > 10, "{} packets came: {report}", came.len());
        Ok(came)
    }
}

/// Nanoseconds of the system's clock, which receivers' kernels stamp packets with.
pub(crate) fn now() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?)
}
