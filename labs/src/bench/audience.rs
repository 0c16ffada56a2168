//! Viewers by WebRTC: they come, say now and then that they are there, and some of them open what they get.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use outflow_dtls::Identity;
use outflow_dtls::testing::Version;
use outflow_srtp::Profile;

use super::janus;
use super::place::STREAM;
use crate::arrivals::Arrivals;
use crate::net::{Paths, RELAY_OUT, sink};
use crate::receive::{Opened, Told, Viewer, description};
use crate::relay::{HTTP_PORT, PATIENCE};

/// Viewers that open what they get: the first ones. Their media goes through the kernel to a socket, which is part of
/// the relay's core time, so they are few.
pub(super) const SAMPLE: usize = 8;
/// Viewers that come at the same time: the relay has always one at work.
const COMING: usize = 8;
/// Time for answers to come back.
const ANSWERED: Duration = Duration::from_millis(100);

/// How viewers ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// WHEP; DTLS 1.3.
    Whep,
    /// The same with DTLS 1.2, for a relay that has no other.
    Whep12,
    /// The API of Janus, whose streams begin with an offer of the relay's; DTLS 1.2.
    Janus,
}

impl Door {
    fn version(self) -> Version {
        match self {
            Door::Whep => Version::V13,
            Door::Whep12 | Door::Janus => Version::V12,
        }
    }

    /// Asks for the stream.
    fn ask(self, agent: &ureq::Agent, (number, identity): (usize, &Identity)) -> Result<Told> {
        match self {
            Door::Whep | Door::Whep12 => post(agent, &description(number, identity, "actpass")),
            Door::Janus => janus::ask(agent, &description(number, identity, "active")),
        }
    }

    fn port(self) -> u16 {
        if self == Door::Janus { janus::PORT } else { HTTP_PORT }
    }
}

/// Those that have come to a relay.
pub(super) struct Audience {
    door: Door,
    identity: Identity,
    viewers: Vec<Viewer>,
    /// From asking to having keys, of each.
    pub(super) took: Vec<Duration>,
}

impl Audience {
    /// None yet; the relay takes requests.
    pub(super) fn new(paths: &Paths, door: Door) -> Result<Self> {
        paths.own_sinks()?;
        let until = Instant::now() + PATIENCE;
        while paths.players.run(|| TcpStream::connect((RELAY_OUT, door.port()))).is_err() {
            ensure!(Instant::now() < until, "the relay takes no requests");
            std::thread::sleep(ANSWERED);
        }
        let identity = Identity::generate().context("a certificate")?;
        Ok(Self { door, identity, viewers: Vec::new(), took: Vec::new() })
    }

    /// How many have come.
    pub(super) fn len(&self) -> usize {
        self.viewers.len()
    }

    /// Has viewers come until there are this many.
    pub(super) fn grow(&mut self, paths: &Paths, viewers: usize) -> Result<()> {
        let (door, identity, first) = (self.door, &self.identity, self.viewers.len());
        let one = move |agent: &ureq::Agent, number: usize| -> Result<(Viewer, Duration)> {
            let began = Instant::now();
            let told = door.ask(agent, (number, identity))?;
            let place = (number, sink(number));
            let viewer = Viewer::come(place, told, (identity, door.version()), number < SAMPLE)?;
            Ok((viewer, began.elapsed()))
        };
        let share = move |thread: usize| (first + thread..viewers).step_by(COMING);
        let come = |thread: usize| {
            let agent = agent();
            share(thread).map(|number| Ok((number, one(&agent, number)?))).collect::<Result<Vec<_>>>()
        };
        let come = &come;
        let come = paths.players.run(|| {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..COMING).map(|n| scope.spawn(move || come(n))).collect();
                let all = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
                all.collect::<Result<Vec<_>>>()
            })
        });
        let mut come: Vec<_> = come.context("a viewer did not get in")?.into_iter().flatten().collect();
        come.sort_by_key(|(number, _)| *number);
        for (_, (viewer, took)) in come {
            self.viewers.push(viewer);
            self.took.push(took);
        }
        Ok(())
    }

    /// Has all of them say that they are there, so that they need not while something is measured, and reads what has
    /// come until now.
    pub(super) fn refresh(&mut self) -> Result<()> {
        self.viewers.iter().try_for_each(Viewer::consent)?;
        std::thread::sleep(ANSWERED);
        self.viewers.iter_mut().try_for_each(|viewer| viewer.read().map(drop))
    }

    /// Fails if what came to the viewers of the sample is not what the source sent, well sealed.
    pub(super) fn check(&mut self, arrived: &Arrivals) -> Result<()> {
        for (number, viewer) in self.viewers.iter_mut().take(SAMPLE).enumerate() {
            let Opened { packets, refused, strange } = viewer.read()?;
            let came = arrived.counts.get(number).copied().unwrap_or(0);
            if (packets, refused, strange) != (came, 0, 0) {
                let of = format!("viewer {number} got {came} packets and opened {packets}");
                bail!("{of}; {refused} were refused, {strange} are not what was sent");
            }
        }
        Ok(())
    }

    /// What their packets are sealed with.
    pub(super) fn profile(&self) -> Option<Profile> {
        self.viewers.first().map(|viewer| viewer.profile)
    }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
    config.build().into()
}

/// Posts an offer, as WHEP has it.
fn post(agent: &ureq::Agent, offer: &str) -> Result<Told> {
    let url = format!("http://{RELAY_OUT}:{HTTP_PORT}/play/{STREAM}");
    let mut answer = agent.post(&url).header("content-type", "application/sdp").send(offer)?;
    let text = answer.body_mut().read_to_string()?;
    ensure!(answer.status().as_u16() == 201, "{}: {text}", answer.status());
    Told::read(&text)
}
