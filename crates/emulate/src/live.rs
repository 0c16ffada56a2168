//! An emulation in real time: devices are read and written, programs run at the ends.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a driver owns clock, devices, processes and threads"
)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outflow_rtp::sdp::MediaDescription;
use outflow_sim::network::{Network, NetworkError, On, PortPlace, Report, World, ports};
use outflow_socket::Tap;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::drive::{Device, Drive, punctual};
use crate::space::{Behind, Space};

/// How long programs have to end when they are told to. Then they are ended.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// How long is waited for packets that are on their way when the programs have ended.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);

/// What is at an end of the network, in the order of their names.
#[derive(Debug)]
pub struct End {
    /// The end is where this process is; else it is a network namespace of its own.
    pub is_here: bool,
    /// What runs there. It finds its own address in `EMULATE_ADDRESS`, that of an end in `EMULATE_NAME`.
    pub program: Option<Command>,
}

/// Why it cannot be emulated.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The network is none.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The system refused something.
    #[error("{what}: {error}{}", hint(error))]
    System {
        /// What was tried.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
    /// There is nothing to wait for.
    #[error("no program runs at any end: name one")]
    NoProgram,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ": run it as root (CAP_NET_ADMIN and CAP_SYS_ADMIN)",
        _ => "",
    }
}

fn failed(what: &str) -> impl Fn(io::Error) -> LiveError + '_ {
    move |error| LiveError::System { what: what.to_owned(), error }
}

/// A network in real time, with what runs at its ends.
pub struct Live {
    drive: Drive<World>,
    programs: Vec<Running>,
}

/// A program that runs, or has ended.
struct Running {
    child: Child,
    /// Ready when it ends.
    ends: OwnedFd,
    status: Option<ExitStatus>,
}

impl Live {
    /// Makes the ends and starts the programs. Session descriptions say what media that go through it may be.
    ///
    /// # Errors
    /// The network is none, or the system refuses something.
    pub fn new(
        network: &Network,
        described: &[MediaDescription],
        mut ends: Vec<End>,
    ) -> Result<Self, LiveError> {
        let number = |tap: &Tap| tap.name.trim_start_matches(char::is_alphabetic).parse().ok();
        let ports = ports(network, 0)?;
        let make = |end: &End| if end.is_here { Ok(Space::here()) } else { Space::apart() };
        let made: io::Result<Vec<Space>> = ends.iter().map(make).collect();
        let spaces = made.map_err(failed("cannot make a network namespace"))?;
        let mut devices = Vec::new();
        for (port, place) in ports.iter().enumerate().filter(|(_, place)| place.place < spaces.len()) {
            let tap = spaces[place.place].device().map_err(failed("cannot make a network device"))?;
            devices.push(Device { port, tap });
        }
        // Where the process is may be other such devices: the number of the network is that of ours.
        let here = devices.iter().find(|device| ends[ports[device.port].place].is_here);
        let number = here.and_then(|device| number(&device.tap)).unwrap_or(0);
        let world = World::new(network, described, number)?;
        for Device { port, tap } in &devices {
            let (place, behind) = (&world.ports()[*port], behind(world.ports(), *port, spaces.len()));
            let set_up = spaces[place.place].set_up(tap, place.addresses, behind, place.number == 0);
            set_up.map_err(failed("cannot give a network device its address"))?;
        }
        let mut live = Live { drive: Drive::new(world, devices), programs: Vec::new() };
        for (at, end) in ends.iter_mut().enumerate() {
            let Some(program) = &mut end.program else { continue };
            name_addresses(program, network, live.drive.carries.ports(), at);
            let name = program.get_program().to_string_lossy().into_owned();
            let running = Running::start(&spaces[at], program);
            live.programs.push(running.map_err(failed(&format!("cannot start {name}")))?);
        }
        if live.programs.is_empty() {
            return Err(LiveError::NoProgram);
        }
        Ok(live)
    }

    /// Runs until all programs have ended. They are told to once `stop` is true, or it has lasted so long.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn run(&mut self, stop: &Arc<AtomicBool>, lasts: Option<Duration>) -> Result<Report, LiveError> {
        punctual();
        let (mut told, mut ended): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            let running = self.programs.iter().filter(|program| program.status.is_none());
            let ends = running.map(|program| program.ends.as_fd());
            if self.drive.wait(ends).map_err(failed("cannot wait for packets"))? {
                self.reap();
            }
            self.drive.turn();
            if self.have_ended() {
                // What they have sent last still arrives.
                let ended = *ended.get_or_insert_with(Instant::now);
                if self.drive.carries.held() == 0 || ended.elapsed() > ARRIVES_WITHIN {
                    return Ok(self.drive.carries.report());
                }
            }
            let is_over = lasts.is_some_and(|lasts| self.drive.began().elapsed() >= lasts);
            if told.is_none() && (is_over || stop.load(Ordering::Relaxed)) {
                told = Some(Instant::now());
                self.programs.iter().for_each(|program| program.signal(Signal::TERM));
            }
            if told.is_some_and(|told| told.elapsed() > ENDS_WITHIN) {
                self.programs.iter().for_each(|program| program.signal(Signal::KILL));
            }
        }
    }

    /// How the programs ended, in the order of the ends.
    pub fn statuses(&self) -> impl Iterator<Item = Option<ExitStatus>> + '_ {
        self.programs.iter().map(|program| program.status)
    }

    /// Takes the statuses of programs that have ended.
    fn reap(&mut self) {
        for program in &mut self.programs {
            program.status = program.status.or_else(|| program.child.try_wait().ok().flatten());
        }
    }

    /// Whether all programs have ended.
    fn have_ended(&self) -> bool {
        self.programs.iter().all(|program| program.status.is_some())
    }
}

/// What the device of a port leads to.
fn behind(ports: &[PortPlace], port: usize, ends: usize) -> Behind {
    match ports[port].on {
        On::Segment(_) => Behind::Network,
        // With two ends, each is the other's neighbour; else each has all behind its device.
        On::Paths if ends == 2 => {
            let other =
                ports.iter().position(|other| other.on == On::Paths && other.place != ports[port].place);
            Behind::Addresses(ports[other.unwrap_or(port)].addresses)
        }
        On::Paths => Behind::Addresses(ports[port].addresses),
    }
}

/// Tells a program at an end its address and those of all others: of those that it shares a segment with, the ones
/// there.
fn name_addresses(program: &mut Command, network: &Network, ports: &[PortPlace], end: usize) {
    let own: Vec<&PortPlace> = ports.iter().filter(|port| port.place == end).collect();
    if let Some(first) = own.first() {
        program.env("EMULATE_ADDRESS", first.addresses[0].to_string());
    }
    for (place, name) in network.ends.keys().chain(network.nodes.keys()).enumerate() {
        let of = || ports.iter().filter(|port| port.place == place);
        let near = of().find(|port| own.iter().any(|own| own.on == port.on));
        if let Some(port) = near.or_else(|| of().next()) {
            program.env(format!("EMULATE_{}", name.to_uppercase()), port.addresses[0].to_string());
        }
    }
}

impl Running {
    fn start(space: &Space, program: &mut Command) -> io::Result<Self> {
        let child = space.start(program)?;
        let pid = Pid::from_child(&child);
        Ok(Running { child, ends: pidfd_open(pid, PidfdFlags::empty())?, status: None })
    }

    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            // It may have ended by now.
            let _gone = kill_process(Pid::from_child(&self.child), signal);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().filter(|program| program.status.is_none()) {
            let _gone = program.child.kill().and_then(|()| program.child.wait());
        }
    }
}
