//! What ends the relay's process, or a part of it without which it cannot go on. Another process goes on with it, if that
//! can be; else all viewers lose it, and come back when its supervisor has started it again. What was done is 1 if it
//! was as it should be.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};

use super::access::joins_at;
use crate::trouble::clock::Clock;
use crate::trouble::fault::Trouble;
use crate::trouble::scene::Scene;

/// What the names of workers' threads begin with.
const WORKERS: &str = "worker-";
/// What those of control's do.
const CONTROL: &str = "tokio-rt";
/// The status of a relay that cannot go on (docs/operations.md).
const FAILED: i32 = 70;
/// How long a relay has to have gone on until another process goes on with it again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How far that may be told otherwise here.
const SLACK: Duration = Duration::from_secs(5);
/// How often it is tried to have something panic without which the relay cannot go on.
const TRIES: usize = 10;

/// A signal that no program can catch ends a worker, and with it the process (signal(7)).
pub(super) fn worker_killed(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let worker = scene.relay.process().thread(WORKERS)?.context("there is no worker")?;
    kill(worker, Signal::SIGKILL)?;
    let by_that = |status: ExitStatus| status.signal() == Some(Signal::SIGKILL as i32);
    // It is not told how a process has ended that another one had started.
    Ok(Box::new(revived(scene, |status| status.is_none_or(by_that))?))
}

/// A worker panics, as the system does not tell it the time of day. It asks for it when a receiver joins, to say so in
/// the log.
pub(super) fn worker_panics(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let joins = joins_at(scene);
    let recovered = recovered(scene, |clock| clock.fail_once(WORKERS));
    joins.stop();
    recovered
}

/// A task of control panics in the same way: the one that watches which tokens hold asks twice a second.
pub(super) fn control_panics(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    recovered(scene, |clock| clock.fail_once_to_one_that_asks_seldom(CONTROL))
}

/// A thread panics, and what comes of that is waited for: another process, or the end if the last time is less than a
/// minute ago.
fn recovered(scene: &mut Scene<'_>, fail: impl Fn(&Clock) -> Result<()>) -> Result<Box<dyn Trouble>> {
    let must_end = scene.has_recovered_within(AGAIN_AFTER - SLACK);
    let may_end = scene.has_recovered_within(AGAIN_AFTER + SLACK);
    for _ in 0..TRIES {
        fail(&scene.clock)?;
        if scene.goes_on_elsewhere() {
            return Ok(Box::new(Revived { is_as_it_should: !must_end }));
        }
        if !scene.relay.process().alive() {
            let mut revived =
                revived(scene, |status| status.is_none_or(|status| status.code() == Some(FAILED)))?;
            revived.is_as_it_should &= may_end;
            return Ok(Box::new(revived));
        }
        // It was a task of one connection.
    }
    bail!("nothing of the relay has ended in {TRIES} tries")
}

/// The end is waited for, and what its supervisor does.
fn revived(scene: &mut Scene<'_>, as_it_should: impl Fn(Option<ExitStatus>) -> bool) -> Result<Revived> {
    let is_as_it_should = as_it_should(scene.ended()?);
    scene.revive()?;
    Ok(Revived { is_as_it_should })
}

struct Revived {
    is_as_it_should: bool,
}

impl Trouble for Revived {
    fn undo(self: Box<Self>, _scene: &mut Scene<'_>) -> Result<u64> {
        Ok(u64::from(self.is_as_it_should))
    }
}
