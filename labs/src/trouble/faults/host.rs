//! What the relay's own host does to it: its log, its descriptors, the programs and files that it needs.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};

use super::access::{connections_at, joins_at};
use crate::process::Program;
use crate::relay::PATIENCE;
use crate::trouble::fault::{Storm, Trouble};
use crate::trouble::places::{Places, RELAY_ATTACKED};
use crate::trouble::scene::{COPIER, HTTPS_PORT, Scene};

/// Descriptors that the relay may open beyond those that it has.
const SPARE: usize = 4;
/// Connections that are held then: many more, and few beside those of other faults, of which the lab may have only so
/// many.
const HELD: usize = 1_000;
/// How long the reload of a certificate may take.
const RELOADED_WITHIN: Duration = Duration::from_secs(1);

/// The relay cannot write its log any more, while viewers join and leave, of which it has to say something.
pub(super) fn log_fails(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    scene.log.jam(true)?;
    Ok(Box::new(LogFails(Storm(vec![joins_at(scene)]))))
}

struct LogFails(Storm);

impl Trouble for LogFails {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        let joins = Box::new(self.0).undo(scene);
        scene.log.jam(false)?;
        joins
    }
}

/// The relay may open hardly any descriptors more, and connections come all the time. What was done is how many.
pub(super) fn descriptors(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let relay = scene.relay.process();
    let pid = relay.pid();
    let asked = format!("prlimit --pid {pid} --nofile --raw --noheadings --output SOFT,HARD");
    let limits = Program::words(&asked).finish(PATIENCE)?.stdout;
    let before = limits.split_whitespace().collect::<Vec<_>>().join(":");
    set_descriptors(pid, &(relay.descriptors()? + SPARE).to_string())?;
    Ok(Box::new(Descriptors { pid, before, storm: Storm(vec![connections_at(scene, usize::MAX, HELD)]) }))
}

struct Descriptors {
    pid: u32,
    /// The limits as they were.
    before: String,
    storm: Storm,
}

impl Trouble for Descriptors {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        let Descriptors { pid, before, storm } = *self;
        let joins = Box::new(storm).undo(scene);
        set_descriptors(pid, &before)?;
        joins
    }
}

/// The soft limit, or both.
fn set_descriptors(pid: u32, limits: &str) -> Result<()> {
    let limits = if limits.contains(':') { limits.to_owned() } else { format!("{limits}:") };
    Program::words(&format!("prlimit --pid {pid} --nofile={limits}")).finish(PATIENCE)?;
    Ok(())
}

/// The program of an element is killed whenever it runs.
pub(super) fn program(_scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    Ok(Box::new(ProgramDies { kills: 0 }))
}

struct ProgramDies {
    kills: u64,
}

impl Trouble for ProgramDies {
    fn go_on(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        if let Some(program) = scene.relay.process().child(COPIER)? {
            let _gone_already = kill(program, Signal::SIGKILL);
            self.kills += 1;
        }
        Ok(())
    }

    fn undo(self: Box<Self>, _scene: &mut Scene<'_>) -> Result<u64> {
        Ok(self.kills)
    }
}

/// Another certificate, and a reload. What was done is 1 if it is shown to clients then.
pub(super) fn certificate(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    scene.exchange_certificate()?;
    let _seen_by_what_is_shown = scene.relay.status("POST", "/api/v1/reload", RELOADED_WITHIN);
    Ok(Box::new(Certificate))
}

struct Certificate;

impl Trouble for Certificate {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        let print = "openssl x509 -noout -fingerprint";
        let file = scene.certificate().display().to_string();
        let ours = shell(scene.places, &format!("{print} -in {file}"))?;
        let connect = format!("timeout 3 openssl s_client -connect {RELAY_ATTACKED}:{HTTPS_PORT}");
        // A relay that does not answer shows none.
        let shown = shell(scene.places, &format!("{connect} | {print} || true"))?;
        Ok(u64::from(ours == shown))
    }
}

fn shell(places: &Places, line: &str) -> Result<String> {
    let done = Program::new("sh").args(["-c", line]).within(&places.attacker).finish(PATIENCE);
    Ok(done.context("openssl has nothing to say")?.stdout)
}

/// NATS, in which relays of a tree find each other, is away.
pub(super) fn nats(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let nats = scene.nats.as_mut().context("nats-server is not installed: see scripts/setup")?;
    nats.kill();
    Ok(Box::new(NatsAway))
}

struct NatsAway;

impl Trouble for NatsAway {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        let nats = scene.nats.as_mut().context("it was there")?;
        nats.restart()?;
        Ok(0)
    }
}
