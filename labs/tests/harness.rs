//! The harness measures what is there: without a relay, nothing is lost, and a gap is seen.

use std::time::Duration;

use anyhow::Result;
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::RELAY_IN;
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::scene::{scene, wait_for};

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
