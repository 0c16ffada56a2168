//! A relay that runs from a copy of its program, three publishers, and the viewers.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::media::{By, Sender, Shape};
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::relay::{HTTP_PORT, PATIENCE, RTSP_PORT, Relay, binary, listen};
use tempfile::TempDir;

use crate::tally::Got;
use crate::viewers::{Audience, Viewer};

/// The streams, by how they are published: RTSP over UDP, RTSP over TCP, HTTP PUT.
pub(crate) const STREAMS: [&str; 3] = ["by-udp", "by-tcp", "by-put"];
pub(crate) const POC_PORT: u16 = 7000;
/// Some 48 datagrams a second to each viewer.
const SHAPE: Shape = Shape::of_rate(512_000);
const CONTROL: &str = "control-of-upgrades";
/// User and password of the right to publish, and the latter alone.
const PUBLISHER: &str = "YW55OnB1Ymxpc2g=";
const PUBLISH: &str = "publish";
/// How long viewers may take at the end until they have all that was sent.
const CATCH_UP: Duration = Duration::from_secs(3);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// All that is there.
pub(crate) struct Scene<'p> {
    audience: Audience,
    senders: [Sender; STREAMS.len()],
    pub(crate) relay: Relay<'p>,
    program: Copied,
}

impl<'p> Scene<'p> {
    /// Starts everything, and waits until each viewer gets its stream.
    pub(crate) fn open(paths: &'p Paths, viewers: &[Viewer], log: Option<&Path>) -> Result<Self> {
        let program = Copied::new()?;
        let steps = if log.is_some() { "[log]\nlevel = \"debug\"\n" } else { "" };
        let relay = Relay::start_as(&paths.relay, &(configuration(viewers) + steps), |relay| {
            let relay = relay.at(&program.file()).on_any_cpu().preferred();
            match log {
                Some(log) => relay.stderr_to(log.to_owned()),
                None => relay,
            }
        })?;
        let relay = relay.with_token(CONTROL);
        let source = &paths.source;
        let record = |stream: usize, by| {
            let path = format!("{}?token={PUBLISH}", STREAMS[stream]);
            Sender::record(source, (RELAY_IN, RTSP_PORT).into(), &path, by, SHAPE)
        };
        let path = format!("/{}.ts", STREAMS[2]);
        let put = Sender::put(source, (RELAY_IN, HTTP_PORT).into(), &path, PUBLISHER, SHAPE)?;
        let senders = [record(0, By::Udp)?, record(1, By::Tcp)?, put];
        for stream in STREAMS {
            relay.wait_up(stream)?;
        }
        let audience = Audience::open(paths, viewers)?;
        let scene = Self { audience, senders, relay, program };
        scene.all_watch(viewers)?;
        Ok(scene)
    }

    fn all_watch(&self, viewers: &[Viewer]) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let meters = self.audience.split()?;
            let mut waiting = meters.iter().zip(viewers).filter(|(meter, _)| meter.newest().is_none());
            let Some((meter, viewer)) = waiting.next() else { return Ok(()) };
            let count = 1 + waiting.count();
            ensure!(
                Instant::now() < until,
                "{count} viewers get nothing, such as {viewer:?}: {}",
                meter.summary()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// What each viewer has got since this was called last.
    pub(crate) fn got(&self) -> Result<Vec<Got>> {
        let meters = self.audience.split()?;
        let now = outflow_labs::media::wall_nanos();
        Ok(meters.iter().map(|meter| Got::of(meter, now)).collect())
    }

    /// Waits until viewers have all that has been sent up to now, for a while at most, and calls `take` with what each
    /// has got.
    pub(crate) fn catch_up(&self, viewers: &[Viewer], mut take: impl FnMut(&[Got])) -> Result<[u32; 3]> {
        let sent = self.senders.each_ref().map(Sender::sent);
        let until = Instant::now() + CATCH_UP;
        loop {
            let got = self.got()?;
            take(&got);
            let lags = |(viewer, got): (&Viewer, &Got)| got.has_less_than(sent[viewer.stream]);
            if !viewers.iter().zip(&got).any(lags) || Instant::now() > until {
                return Ok(sent);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// From now on this is what lies where the relay's program lay.
    pub(crate) fn replace_program(&self, content: &[u8]) -> Result<()> {
        self.program.replace(content)
    }

    /// The relay's program lies there again.
    pub(crate) fn restore_program(&self) -> Result<()> {
        self.program.replace(&std::fs::read(binary()?)?)
    }
}

/// The relay's program in a folder of its own.
struct Copied(TempDir);

impl Copied {
    fn new() -> Result<Self> {
        let copied = Self(tempfile::tempdir()?);
        copied.replace(&std::fs::read(binary()?)?)?;
        Ok(copied)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("outflow")
    }

    /// Another file takes its place: a program that runs cannot be written to.
    fn replace(&self, content: &[u8]) -> Result<()> {
        let new = self.0.path().join("new");
        put(&new, content).with_context(|| format!("{} cannot be written", new.display()))?;
        Ok(std::fs::rename(new, self.file())?)
    }
}

fn put(file: &Path, content: &[u8]) -> std::io::Result<()> {
    std::fs::write(file, content)?;
    std::fs::set_permissions(file, Permissions::from_mode(0o755))
}

fn configuration(viewers: &[Viewer]) -> String {
    let streams = STREAMS.map(|stream| format!("[streams.{stream}]\nring = \"4 MB\"\nsource = \"push\"\n"));
    let sinks: String = viewers.iter().filter_map(Viewer::sink).collect();
    listen()
        + &format!(
            "poc = \"0.0.0.0:{POC_PORT}\"\n[poc]\nencryption = \"off\"\n\
             [access]\npublish = [\"{PUBLISH}\"]\ncontrol = [\"{CONTROL}\"]\n\
             [limits]\nworkers = 2\n{}{sinks}",
            streams.concat()
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_runs_can_be_replaced_and_what_replaces_it_can_be_run() {
        let folder = Copied(tempfile::tempdir().expect("there is room"));
        let run = || std::process::Command::new(folder.file()).status().expect("it runs").code();
        for status in [3, 4] {
            folder.replace(format!("#!/bin/sh\nexit {status}\n").as_bytes()).expect("there is room");
            assert_eq!(run(), Some(status));
        }
    }
}
