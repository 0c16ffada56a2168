//! What fan-outs are measured with counts right: at its ends, and of a core's time.

use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Result, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use outflow_labs::bench::{Bench, Contender, Door, Ends, Outcome, RELAY_CPU, Setup};
use outflow_labs::core_time::CoreTime;
use outflow_labs::drain::{Drain, Hook};
use outflow_labs::media::rtp::Pictures;
use outflow_labs::media::{Pulses, monotonic_nanos};
use outflow_labs::net::sink;
use outflow_labs::process::{Program, Running};
use outflow_labs::scene::{scene, skipped, wait_for};

const SINKS: usize = 103;

/// Sends pictures to every sink, some of them to every sink but one.
fn send(socket: &UdpSocket, packets: u16) -> Result<u64> {
    let mut pictures = Pictures::new(Pulses { payload: 1400, packets, per_second: 25.0 });
    for round in 0..3 {
        let picture = pictures.next_picture(monotonic_nanos()).to_vec();
        for number in (0..SINKS).filter(|number| (round, *number) != (1, 50)) {
            ensure!(socket.send_to(&picture, sink(number))? == picture.len());
        }
    }
    Ok(3 * u64::from(packets))
}

#[test]
fn a_drain_counts_what_comes_to_each_sink() -> Result<()> {
    for (hook, packets) in [(Hook::Tc, 1), (Hook::Tc, 10), (Hook::Xdp, 1)] {
        let Some(paths) = scene("drain", &[])? else { return Ok(()) };
        let paths = paths.with_sinks()?;
        let drain = Drain::attach(&paths.players, "eth0", hook, SINKS, Some(1400))?;
        let socket = paths.relay.run(|| UdpSocket::bind("0.0.0.0:0"))?;
        if packets > 1 {
            setsockopt(&socket, sockopt::UdpGsoSegment, &1400)?;
        }
        let sent = send(&socket, packets)?;
        // RTCP goes to the odd ports, and is not counted.
        let mut rtcp = sink(7);
        rtcp.set_port(rtcp.port() + 1);
        setsockopt(&socket, sockopt::UdpGsoSegment, &0)?;
        socket.send_to(&[0x80; 28], rtcp)?;
        wait_for(
            "all has come",
            || Ok(drain.read()?.total() >= (SINKS as u64 * 3 - 1) * u64::from(packets)),
        )?;
        let arrivals = drain.read()?;
        arrivals.sound(sent)?;
        assert_eq!(arrivals.lost(sent), u64::from(packets), "{hook:?}");
        assert_eq!(arrivals.merged, if packets > 1 { arrivals.total() } else { 0 });
        let p99 = arrivals.delay_us(0.99);
        assert!(p99 > 0.0 && p99 < 10e6, "{hook:?}: {p99} us");

        // What is not as announced is told.
        socket.send_to(&[0; 100], sink(0))?;
        wait_for("it has come", || Ok(drain.read()?.strange == 1))?;
        assert!(drain.read()?.sound(sent).is_err());
    }
    Ok(())
}

#[test]
fn a_drain_of_viewers_counts_media_and_lets_the_rest_through() -> Result<()> {
    let Some(paths) = scene("drain of viewers", &[])? else { return Ok(()) };
    let paths = paths.with_sinks()?;
    paths.own_sinks()?;
    let drain = Drain::attach_media(&paths.players, "eth0", 2, 1)?;
    let socket = paths.relay.run(|| UdpSocket::bind("0.0.0.0:0"))?;
    let starts: [[u8; 2]; 4] = [[0x80, 96], [0x80, 200], [0, 1], [22, 254]];
    for (number, expected) in [(0, &starts[..]), (1, &starts[1..])] {
        let viewer = paths.players.run(|| UdpSocket::bind(sink(number)))?;
        viewer.set_read_timeout(Some(Duration::from_secs(20)))?;
        for start in starts {
            socket.send_to(&[&start[..], &[0; 30]].concat(), sink(number))?;
        }
        for start in expected {
            let mut buffer = [0; 64];
            assert_eq!((viewer.recv(&mut buffer)?, &buffer[..2]), (32, &start[..]), "viewer {number}");
        }
        assert_eq!(drain.read()?.counts[number], 1, "media alone");
    }
    assert_eq!(drain.read_of(1)?.counts.len(), 1);
    Ok(())
}

#[test]
fn viewers_by_webrtc_open_what_was_sent() -> Result<()> {
    if let Some(why) = outflow_labs::net::cannot_make_namespaces() {
        skipped("viewers by WebRTC", &why);
        return Ok(());
    }
    let bench = Bench::new()?;
    let pulses = Pulses { payload: 1157, packets: 9, per_second: 30.0 };
    let (contender, ends) = (Contender::outflow("", ""), Ends::WebRtc(Door::Whep));
    let mut stage = bench.open(&Setup { contender, way: None, ends, sinks: 20, pulses })?;
    let Outcome { lost, delivered, .. } = stage.measure(Duration::from_secs(1))?;
    assert_eq!((lost, delivered), (0, 270 * 20));
    assert!(stage.joining().is_some_and(|joining| joining.took.len() == 20 && joining.profile.is_some()));
    stage.resize(30)?;
    let Outcome { lost, delivered, .. } = stage.measure(Duration::from_secs(1))?;
    assert_eq!((lost, delivered), (0, 270 * 30));
    Ok(())
}

/// A program that does nothing but use the relay's core, and what it has used of it.
fn burner() -> Result<(Running, impl Fn() -> Result<Duration>)> {
    let running = Program::new("sh").args(["-c", "while :; do :; done"]).on_cpu(RELAY_CPU).start()?;
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(running.pid().cast_signed()))?;
    Ok((running, move || Ok(clock_gettime(clock)?.into())))
}

#[test]
fn time_of_a_core_is_told_apart_by_whose_it_is() -> Result<()> {
    let Some(_paths) = scene("core time", &["chrt"])? else { return Ok(()) };
    let core = CoreTime::watch(RELAY_CPU)?;
    for ours in [true, false] {
        let (running, used) = burner()?;
        core.measure(
            if ours { std::slice::from_ref(&running.pid()).to_vec() } else { Vec::new() }.as_slice(),
        )?;
        let (reading, before) = (core.read()?, used()?);
        wait_for("it has used a while", || Ok(used()? > before + Duration::from_millis(300)))?;
        // What it burns is read within what is looked at, and what the host took may be part of it.
        let burnt = used()? - before;
        let all = core.since(&reading)?;
        let theirs = if ours { all.busy } else { all.strangers };
        assert!(theirs + all.stolen >= burnt.mul_f64(0.95), "ours: {ours}: {burnt:?} of {all:?}");
        assert!(all.busy + all.strangers <= all.wall, "{all:?}");
        if !ours {
            assert!(all.busy < burnt, "a stranger's time is not counted: {burnt:?} of {all:?}");
        }
    }
    Ok(())
}

#[test]
fn the_plain_relays_deliver_everything() -> Result<()> {
    if let Some(why) = outflow_labs::net::cannot_make_namespaces() {
        skipped("plain relays", &why);
        return Ok(());
    }
    let bench = Bench::new()?;
    for ends in [Ends::Udp(Hook::Tc), Ends::Tcp] {
        let pulses = Pulses { payload: 1000, packets: 1, per_second: 100.0 };
        let setup = Setup { contender: Contender::Baseline, way: None, ends, sinks: 40, pulses };
        let Outcome { lost, delivered, ns, .. } = bench.measure(&setup, Duration::from_millis(500))?;
        assert_eq!((lost, delivered), (0, 50 * 40), "{ends:?}");
        assert!(ns.is_finite(), "{ends:?}: {ns}");
    }
    Ok(())
}
