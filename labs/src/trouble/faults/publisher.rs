//! What becomes of the publisher of the stream in the middle.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::media::Sender;
use crate::net::Namespace;
use crate::process::Program;
use crate::relay::PATIENCE;
use crate::trouble::fault::Trouble;
use crate::trouble::scene::{STREAMS, STUDIO, Scene};

/// The table of packet filters that makes a path a black hole.
const TABLE: &str = "inet chaos";
/// How soon a publisher whose path is whole again sends, or hears that it was let go: its own TCP waits about as long
/// again as the path was broken, and one that sends nothing for `publish_timeout` (10 s) is let go meanwhile.
const HEARS_WITHIN: Duration = Duration::from_secs(12);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// It goes, and another one comes.
pub(super) fn killed(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let sent = scene.sent()[STUDIO];
    scene.senders[STUDIO] = None;
    Ok(Box::new(Killed { sent }))
}

struct Killed {
    sent: u32,
}

impl Trouble for Killed {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        scene.senders[STUDIO] = scene.publisher(self.sent).ok();
        Ok(0)
    }
}

/// Its packets vanish, and those to it, until its path is whole again.
pub(super) fn blackholed(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    black_hole(scene)?;
    Ok(Box::new(Blackholed))
}

struct Blackholed;

impl Trouble for Blackholed {
    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        path_is_whole(scene)?;
        let until = Instant::now() + HEARS_WITHIN;
        let is_refused = |scene: &Scene<'_>| scene.senders[STUDIO].as_ref().is_some_and(Sender::is_refused);
        while !is_refused(scene) && !is_up(scene)? && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        let sender = scene.senders[STUDIO].as_ref().context("it publishes")?;
        if sender.is_refused() {
            let sent = sender.sent();
            scene.senders[STUDIO] = scene.publisher(sent).ok();
        }
        Ok(0)
    }
}

/// Its packets vanish for good, and another one tries to publish. What was done is 1 if that was taken.
pub(super) fn replaced(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    black_hole(scene)?;
    Ok(Box::new(Replaced { newcomer: None }))
}

struct Replaced {
    newcomer: Option<Sender>,
}

impl Trouble for Replaced {
    fn go_on(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        if self.newcomer.as_ref().is_none_or(Sender::is_refused) {
            self.newcomer = scene.publisher(scene.sent()[STUDIO]).ok();
        }
        Ok(())
    }

    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        let taken = self.newcomer.filter(|newcomer| !newcomer.is_refused());
        if taken.is_none() {
            return Box::new(Blackholed).undo(scene);
        }
        scene.senders[STUDIO] = taken;
        path_is_whole(scene)?;
        Ok(1)
    }
}

/// Others try to publish while it sends. What was done is how many were refused.
pub(super) fn rivalled(_scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    Ok(Box::new(Rivalled { rival: None, refused: 0 }))
}

struct Rivalled {
    rival: Option<Sender>,
    refused: u64,
}

impl Trouble for Rivalled {
    fn go_on(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        let is_refused = self.rival.as_ref().is_some_and(Sender::is_refused);
        self.refused += u64::from(is_refused);
        if is_refused || self.rival.is_none() {
            self.rival = scene.publisher(scene.sent()[STUDIO]).ok();
        }
        Ok(())
    }

    fn undo(self: Box<Self>, scene: &mut Scene<'_>) -> Result<u64> {
        let is_ousted = scene.senders[STUDIO].as_ref().is_some_and(Sender::is_refused);
        let refused = self.refused + u64::from(self.rival.as_ref().is_some_and(Sender::is_refused));
        if is_ousted {
            scene.senders[STUDIO] = self.rival;
        }
        Ok(refused)
    }
}

/// Whether the published stream has a source that sends.
fn is_up(scene: &Scene<'_>) -> Result<bool> {
    Ok(scene.relay.stream(STREAMS[STUDIO])?["source"]["up"] == true)
}

/// Has all packets of the publisher's connection dropped at its own host.
fn black_hole(scene: &Scene<'_>) -> Result<()> {
    let sender = scene.senders[STUDIO].as_ref();
    let port = sender.and_then(Sender::address).context("it publishes by a connection")?.port();
    let source = &scene.places.paths.source;
    filter(source, &format!("add table {TABLE}"))?;
    for (hook, side) in [("output", "sport"), ("input", "dport")] {
        let chain = format!("add chain {TABLE} {hook} {{ type filter hook {hook} priority 0 ; }}");
        filter(source, &chain)?;
        filter(source, &format!("add rule {TABLE} {hook} tcp {side} {port} drop"))?;
    }
    Ok(())
}

fn path_is_whole(scene: &Scene<'_>) -> Result<()> {
    filter(&scene.places.paths.source, &format!("delete table {TABLE}"))
}

fn filter(at: &Namespace, command: &str) -> Result<()> {
    Program::new("nft").arg(command).within(at).finish(PATIENCE).context("no packet filter here")?;
    Ok(())
}
