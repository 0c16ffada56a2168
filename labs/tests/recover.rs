//! What viewers notice when a worker panics: another process goes on with the relay, once in a minute; the next time the
//! process ends with its reason.

use std::time::Duration;

use anyhow::{Result, ensure};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{PATIENCE, scene, wait_for};
use outflow_labs::supervisor::Supervisor;
use outflow_labs::trouble::Clock;

const STREAM: Shape = Shape::of_rate(2_000_000);
const PUSHED: u16 = 7000;
/// Sources have more of it than viewers are behind.
const A_WHILE: u32 = 200;
/// The status of a relay that cannot go on (docs/operations.md).
const FAILED: i32 = 70;

fn configuration() -> String {
    listen()
        + &format!(
            "[limits]\nworkers = 1\n[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n\
             [[sinks]]\nstream = \"live\"\nto = \"udp://{PLAYER}:{PUSHED}\"\n"
        )
}

/// A relay whose clock fails when it is to, and that tells which process it is.
struct Scene<'p> {
    paths: &'p Paths,
    relay: Relay<'p>,
    clock: Clock,
    supervisor: Supervisor,
    sender: Sender,
    _folder: tempfile::TempDir,
}

impl<'p> Scene<'p> {
    fn new(paths: &'p Paths) -> Result<Self> {
        let (folder, clock) = (tempfile::tempdir()?, Clock::new()?);
        let supervisor = Supervisor::new(folder.path())?;
        let relay = Relay::start_as(&paths.relay, &configuration(), |program| {
            // What a panic says of where it happened takes seconds to find out.
            supervisor.of(clock.of(program)).env("RUST_BACKTRACE", "0")
        })?;
        let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
        relay.wait_up("live")?;
        Ok(Scene { paths, relay, clock, supervisor, sender, _folder: folder })
    }

    fn join(&self, how: How) -> Result<Receiver> {
        self.paths.players.run(|| Receiver::open(how, &Target::new("live")))
    }

    /// Has a thread panic whose name begins so, while viewers come as long as it has not.
    fn panics(&mut self, threads: &str) -> Result<()> {
        self.clock.fail_once(threads)?;
        wait_for("the clock has failed", || {
            // Where it fails in the task of a connection, that connection ends, and nothing else.
            let _joins = self.join(How::Http);
            self.clock.has_failed()
        })
    }

    /// Waits until another process goes on with the relay. Whether one does.
    fn goes_on(&mut self) -> bool {
        let process = self.relay.process();
        match self.supervisor.wait(PATIENCE, || !process.alive()) {
            Some(pid) => process.follow(pid),
            None => return false,
        }
        true
    }
}

#[test]
fn viewers_stay_when_a_worker_panics_and_the_relay_ends_if_it_does_so_again() -> Result<()> {
    let Some(paths) = scene("a worker panics", &[])? else { return Ok(()) };
    let mut scene = Scene::new(&paths)?;
    let hows = [How::Udp(PUSHED), How::Http, How::RtspTcp, How::RtspUdp];
    let receivers = hows.iter().map(|how| scene.join(*how)).collect::<Result<Vec<_>>>()?;
    let crowd = Crowd::start(receivers, Duration::ZERO)?;
    let all_receive = || Ok(crowd.split()?.meters.iter().all(|meter| meter.bytes > 0));
    wait_for("all receive", all_receive)?;
    crowd.split()?;

    scene.panics("worker-")?;
    ensure!(scene.goes_on(), "it ended: {}", scene.relay.process().account());
    let before = scene.sender.sent();
    wait_for("a while more was sent", || Ok(scene.sender.sent() > before + A_WHILE))?;
    let period = crowd.split()?;
    period.all_unharmed()?;
    let newest = period.meters.iter().filter_map(|meter| meter.newest()).min();
    ensure!(newest > Some(before), "one gets nothing more: {newest:?}, {before} were sent");
    let metrics = scene.relay.get("/metrics")?;
    ensure!(metrics.contains("outflow_recoveries_total{} 1"), "{metrics}");

    scene.panics("worker-")?;
    ensure!(!scene.goes_on(), "what it goes on with may be what makes it panic");
    let account = scene.relay.process().account();
    ensure!(account.contains("worker-0 has ended (a panic"), "{account}");
    Ok(())
}

#[test]
fn a_relay_whose_supervisor_would_not_know_ends_when_a_worker_panics() -> Result<()> {
    let Some(paths) = scene("a worker panics, and nothing is told which process goes on", &[])? else {
        return Ok(());
    };
    let clock = Clock::new()?;
    let place = |program| clock.of(program).env("RUST_BACKTRACE", "0");
    let mut relay = Relay::start_as(&paths.relay, &configuration(), place)?;
    clock.fail_once("worker-")?;
    // It says in the log that one has come.
    relay
        .post(
            "/api/v1/streams/live/sinks",
            &serde_json::json!({ "to": format!("udp://{PLAYER}:{}", PUSHED + 2) }),
        )
        .ok();
    let status = relay.process().wait(PATIENCE)?;
    ensure!(status.code() == Some(FAILED), "{status}: {}", relay.process().account());
    Ok(())
}
