//! The harness measures what is there: without a relay, nothing is lost, and a gap is seen.

use std::time::{Duration, Instant};

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use outflow_labs::cage::{Cage, Limits};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::RELAY_IN;
use outflow_labs::process::Program;
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::scene::{PATIENCE, scene, skipped, wait_for};

#[test]
fn a_direct_path_loses_nothing() -> Result<()> {
    let Some(paths) = scene("harness", &[])? else { return Ok(()) };
    let open = || Receiver::open(How::Udp(5000), &Target::new("none"));
    let crowd = Crowd::start(vec![paths.relay.run(open)?], Duration::ZERO)?;
    let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), Shape::of_rate(4_000_000))?;
    wait_for("a hundred datagrams are sent", || Ok(sender.sent() > 100))?;
    drop(sender);
    let period = crowd.split()?;
    let meter = &period.meters[0];
    assert!(meter.perfect() && meter.datagrams > 100, "{meter:?}");
    assert!(meter.first_whole.is_some_and(|whole| whole > 0));
    Ok(())
}

#[test]
fn namespaces_are_gone_when_dropped() -> Result<()> {
    let Some(paths) = scene("harness", &[])? else { return Ok(()) };
    let names = [&paths.source, &paths.relay, &paths.players].map(|namespace| namespace.name().to_owned());
    let there = |name: &String| std::path::Path::new("/run/netns").join(name).exists();
    assert!(names.iter().all(there));
    drop(paths);
    assert!(!names.iter().any(there));
    Ok(())
}

#[test]
fn a_cage_holds_its_programs() -> Result<()> {
    let limits =
        Limits { core: Duration::from_millis(1), period: Duration::from_millis(20), memory: 16 << 20 };
    let cage = match Cage::with(Some(limits)) {
        Ok(cage) => cage,
        Err(error) => {
            skipped("cage", format!("{error:#}"));
            return Ok(());
        }
    };
    let began = Instant::now();
    let burner = Program::new("sh").args(["-c", "while :; do :; done"]).caged(&cage).start()?;
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(burner.pid().cast_signed()))?;
    // What it used before it moved in is little.
    wait_for("it has used a while", || Ok(Duration::from(clock_gettime(clock)?).as_millis() >= 40))?;
    assert!(began.elapsed() > Duration::from_millis(400), "a twentieth of a core: {:?}", began.elapsed());
    assert!(cage.memory()? > 0);
    drop(burner);

    // It keeps what it reads until it knows the last line.
    let mut glutton = Program::new("tail").args(["/dev/zero"]).caged(&cage).start()?;
    let status = glutton.wait(PATIENCE)?;
    assert!(!status.success(), "a program that wants more memory than there is does not end well: {status}");
    Ok(())
}
