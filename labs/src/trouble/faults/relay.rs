//! What ends the relay's process. All viewers lose it, and come back when its supervisor has started it again. What was
//! done is 1 if it has ended as it should.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};

use super::access::joins_at;
use crate::trouble::fault::Trouble;
use crate::trouble::scene::Scene;

/// What the names of workers' threads begin with.
const WORKERS: &str = "worker-";
/// What those of control's do.
const CONTROL: &str = "tokio-rt";
/// The status of a relay that cannot go on (docs/operations.md).
const FAILED: i32 = 70;

/// A signal that no program can catch ends a worker, and with it the process (signal(7)).
pub(super) fn worker_killed(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let worker = scene.relay.process().thread(WORKERS)?.context("there is no worker")?;
    kill(worker, Signal::SIGKILL)?;
    revived(scene, |status| status.signal() == Some(Signal::SIGKILL as i32))
}

/// A worker panics, as the system does not tell it the time of day. It asks for it when a receiver joins, to say so in
/// the log.
pub(super) fn worker_panics(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    scene.clock.fail_to(WORKERS)?;
    let joins = joins_at(scene);
    let revived = revived(scene, has_failed);
    joins.stop();
    revived
}

/// A task of control panics in the same way: the one that watches which tokens hold asks all the time.
pub(super) fn control_panics(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    scene.clock.fail_to(CONTROL)?;
    revived(scene, has_failed)
}

fn has_failed(status: ExitStatus) -> bool {
    status.code() == Some(FAILED)
}

/// The end is waited for, and what its supervisor does.
fn revived(scene: &mut Scene<'_>, as_it_should: fn(ExitStatus) -> bool) -> Result<Box<dyn Trouble>> {
    let status = scene.ended();
    scene.clock.fail_to("")?;
    let is_as_it_should = as_it_should(status?);
    scene.revive()?;
    Ok(Box::new(Revived { is_as_it_should }))
}

struct Revived {
    is_as_it_should: bool,
}

impl Trouble for Revived {
    fn undo(self: Box<Self>, _scene: &mut Scene<'_>) -> Result<u64> {
        Ok(u64::from(self.is_as_it_should))
    }
}
