//! A trial by HTTP: the stream is published by PUT, and taken by GET.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use outflow_labs::bench::{Bench, Outcome, RELAY_CPU};
use outflow_labs::cage::Cage;
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::RELAY_IN;
use outflow_labs::process::{Program, Running};
use outflow_labs::receive::{Crowd, How, Period, Receiver, Target};
use outflow_labs::relay::{HTTP_PORT, PATIENCE, Relay, listen};

/// Between two looks at the receivers' sockets: delays are the kernel's stamps all the same.
const NAP: Duration = Duration::from_millis(4);
/// "source:hackme", as the Authorization header has it (RFC 7617).
const USER: &str = "c291cmNlOmhhY2ttZQ==";

/// The program that serves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server {
    Icecast,
    Outflow { budget: &'static str },
}

/// A server that runs.
enum Serving<'b> {
    Icecast(Running),
    Outflow(Box<Relay<'b>>),
}

/// Measures a server with this many receivers.
pub(crate) fn measure(
    bench: &Bench,
    server: Server,
    sinks: usize,
    rate_bps: u64,
    time: Duration,
) -> Result<Outcome> {
    let began = Instant::now();
    let (paths, core) = (bench.paths(), bench.core());
    let cage = Cage::new()?;
    let folder = tempfile::tempdir()?;
    let mut serving = server.start(bench, &cage, folder.path(), sinks)?;
    core.measure(&[serving.process().pid()])?;
    let quiet = core.read()?;
    std::thread::sleep(time / 2);
    let idle = core.since(&quiet)?;

    let to = (RELAY_IN, HTTP_PORT).into();
    let _source = Sender::put(&paths.source, to, "/live.ts", USER, Shape::of_rate(rate_bps))?;
    let crowd = Crowd::start(Vec::new(), NAP)?;
    paths.players.run(|| connect(&crowd, sinks))?;
    let start = reach_everybody(&crowd, &mut serving, began)?;

    let reading = core.read()?;
    crowd.split()?;
    std::thread::sleep(time);
    let period = crowd.split()?;
    let used = core.since(&reading)?;
    let ended = period.meters.iter().filter(|meter| meter.ended.is_some()).count();
    if ended > 0 {
        bail!("{ended} receivers were disconnected: {}", serving.process().account());
    }
    let memory = cage.memory()?;
    Outcome::of_period(&period, used, idle).map(|outcome| Outcome { start, memory, ..outcome })
}

/// Has `sinks` receivers ask for the stream, each read as soon as it is there. The first may have to
/// wait until the stream has begun.
fn connect(crowd: &Crowd, sinks: usize) -> Result<()> {
    let target = Target::new("live");
    let until = Instant::now() + PATIENCE;
    let first = loop {
        match Receiver::open(How::Http, &target) {
            Ok(first) => break first,
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    crowd.add(first)?;
    (1..sinks).try_for_each(|_| crowd.add(Receiver::open(How::Http, &target)?))
}

/// Waits until every receiver is sent what is new, and what they got to begin with is over.
fn reach_everybody(crowd: &Crowd, serving: &mut Serving<'_>, began: Instant) -> Result<Duration> {
    let until = Instant::now() + PATIENCE;
    loop {
        let all = |period: &Period| period.meters.iter().all(|meter| meter.datagrams > 0);
        crowd.split()?;
        std::thread::sleep(Duration::from_secs(1));
        if all(&crowd.split()?) {
            return Ok(began.elapsed());
        }
        if Instant::now() > until {
            bail!("not every receiver gets the stream: {}", serving.process().account());
        }
    }
}

impl Server {
    fn start<'b>(self, bench: &'b Bench, cage: &Cage, folder: &Path, sinks: usize) -> Result<Serving<'b>> {
        let relay = &bench.paths().relay;
        let place = |program: Program| program.within(relay).on_cpu(RELAY_CPU).caged(cage).preferred();
        let count = sinks + 100;
        match self {
            Server::Icecast => {
                let file = folder.join("icecast.xml");
                std::fs::write(&file, icecast(folder, count))?;
                // It gives up root, and writes its log then.
                let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
                std::fs::set_permissions(folder, everybody)?;
                let program = Program::new("icecast2").args(["-c", &file.display().to_string()]);
                let mut running = place(program).start()?;
                listens(&mut running, bench)?;
                Ok(Serving::Icecast(running))
            }
            Server::Outflow { budget } => {
                let text = format!(
                    "{}[limits]\nreceivers = {count}\nconnections = {count}\n\
                     connections_per_address = {count}\nworkers = 1\n[log]\nlevel = \"warn\"\n\
                     [streams.live]\nsource = \"push\"\nmax_receivers = {count}\n\
                     latency_budget = \"{budget}\"\n",
                    listen()
                );
                let relay = Relay::start_as(relay, &text, place)?;
                Ok(Serving::Outflow(Box::new(relay)))
            }
        }
    }
}

/// Waits until it takes connections.
fn listens(running: &mut Running, bench: &Bench) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    let connect = || std::net::TcpStream::connect((RELAY_IN, HTTP_PORT));
    while let Err(error) = bench.paths().source.run(connect) {
        if !running.alive() || Instant::now() > until {
            return Err(error).with_context(|| running.account());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

impl Serving<'_> {
    fn process(&mut self) -> &mut Running {
        match self {
            Serving::Icecast(running) => running,
            Serving::Outflow(relay) => relay.process(),
        }
    }
}

/// Icecast as its package configures it, with room for the receivers and nothing to begin with: a
/// burst of what is old would count as late.
fn icecast(folder: &Path, clients: usize) -> String {
    let folder = folder.display();
    format!(
        "<icecast>
  <limits>
    <clients>{clients}</clients><sources>2</sources><queue-size>524288</queue-size>
    <client-timeout>30</client-timeout><header-timeout>15</header-timeout>
    <source-timeout>10</source-timeout><burst-on-connect>0</burst-on-connect>
  </limits>
  <authentication>
    <source-password>hackme</source-password><admin-user>admin</admin-user>
    <admin-password>hackme</admin-password>
  </authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>{HTTP_PORT}</port></listen-socket>
  <paths>
    <basedir>/usr/share/icecast2</basedir><logdir>{folder}</logdir>
    <webroot>/usr/share/icecast2/web</webroot><adminroot>/usr/share/icecast2/admin</adminroot>
  </paths>
  <logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>2</loglevel></logging>
  <security>
    <chroot>0</chroot>
    <changeowner><user>icecast2</user><group>icecast</group></changeowner>
  </security>
</icecast>
"
    )
}
