//! An emulation in real time: devices are read and written, programs run at the ends.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a driver owns clock, devices, processes and threads"
)]

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use outflow_media::Time;
use outflow_sim::network::NetworkError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::emulation::{Arrived, Emulation};
use crate::limits::{PACKET_BYTES_MAX, READ_AT_ONCE};
use crate::network::Network;
use crate::report::Report;
use crate::space::{Space, addresses};

/// The longest that it waits without looking whether it is to end.
const LOOK_AFTER: Duration = Duration::from_millis(100);

/// How long programs have to end when they are told to. Then they are ended.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// How long is waited for packets that are on their way when the programs have ended.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);

/// Bytes that packets are put into, one behind the other.
const BLOCK: usize = 256 * 1024;

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
    emulation: Emulation,
    spaces: Vec<Space>,
    programs: Vec<Running>,
    began: Instant,
    scratch: Vec<u8>,
    block: BytesMut,
}

/// A program that runs, or has ended.
struct Running {
    child: Child,
    /// Ready when it ends.
    ends: OwnedFd,
    status: Option<ExitStatus>,
}

impl Live {
    /// Makes the ends and starts the programs.
    ///
    /// # Errors
    /// The network is none, or the system refuses something.
    pub fn new(network: &Network, mut ends: Vec<End>) -> Result<Self, LiveError> {
        network.ways()?;
        let make = |end: &End| if end.is_here { Space::here() } else { Space::apart() };
        let made: io::Result<Vec<Space>> = ends.iter().map(make).collect();
        let spaces = made.map_err(failed("cannot make a network device"))?;
        // Where the process is may be other such devices: the number of the network is that of ours.
        let here = spaces.iter().zip(&ends).find(|(_, end)| end.is_here).map(|(space, _)| &space.tun.name);
        let number = here.and_then(|name| name.trim_start_matches(char::is_alphabetic).parse().ok());
        let own: Vec<[IpAddr; 2]> =
            (1..=spaces.len()).map(|end| addresses(number.unwrap_or(0), end as u8)).collect();
        for (at, space) in spaces.iter().enumerate() {
            // With two ends, each is the other's neighbour; else each has all behind its device.
            let other = if spaces.len() == 2 { 1 - at } else { at };
            let pairs: Vec<_> = own[at].into_iter().zip(own[other]).collect();
            space.set_up(&pairs).map_err(failed("cannot give a network device its address"))?;
        }
        let emulation = Emulation::new(network, &own.iter().map(|ips| ips.to_vec()).collect::<Vec<_>>())?;
        let mut live = Live {
            emulation,
            spaces,
            programs: Vec::new(),
            began: Instant::now(),
            scratch: vec![0; PACKET_BYTES_MAX],
            block: BytesMut::new(),
        };
        for (at, end) in ends.iter_mut().enumerate() {
            let Some(program) = &mut end.program else { continue };
            program.env("EMULATE_ADDRESS", own[at][0].to_string());
            for (name, ips) in network.ends.keys().zip(&own) {
                program.env(format!("EMULATE_{}", name.to_uppercase()), ips[0].to_string());
            }
            let name = program.get_program().to_string_lossy().into_owned();
            let running = Running::start(&live.spaces[at], program);
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
        // A wait ends when it is over, not up to 50 µs later.
        let _as_before = nix::sys::prctl::set_timerslack(1);
        let (mut told, mut ended): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            self.wait().map_err(failed("cannot wait for packets"))?;
            self.pass();
            for at in 0..self.spaces.len() {
                self.read(at);
            }
            self.pass();
            if self.have_ended() {
                // What they have sent last still arrives.
                let ended = *ended.get_or_insert_with(Instant::now);
                if self.emulation.held() == 0 || ended.elapsed() > ARRIVES_WITHIN {
                    return Ok(self.emulation.report());
                }
            }
            let is_over = lasts.is_some_and(|lasts| self.began.elapsed() >= lasts);
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

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for a packet, for the time of one that travels, or for the end of a program.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.now();
        let wait = self.emulation.next_at().map_or(LOOK_AFTER, |at| at.since(now).min(LOOK_AFTER));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let devices = self.spaces.iter().map(|space| space.tun.file.as_fd());
        let running = self.programs.iter().filter(|program| program.status.is_none());
        let all = devices.chain(running.map(|program| program.ends.as_fd()));
        let mut all: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut all, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if all[self.spaces.len()..].iter().any(|end| !end.revents().is_empty()) {
            self.reap();
        }
        Ok(())
    }

    /// Takes the statuses of programs that have ended.
    fn reap(&mut self) {
        for program in &mut self.programs {
            program.status = program.status.or_else(|| program.child.try_wait().ok().flatten());
        }
    }

    /// Takes what programs at an end have sent.
    fn read(&mut self, end: usize) {
        for _ in 0..READ_AT_ONCE {
            let Ok(bytes) = (&self.spaces[end].tun.file).read(&mut self.scratch) else { return };
            if self.block.capacity() < bytes {
                self.block = BytesMut::with_capacity(BLOCK);
            }
            self.block.extend_from_slice(&self.scratch[..bytes]);
            let (now, packet) = (self.now(), self.block.split().freeze());
            self.emulation.handle(now, end, packet);
        }
    }

    /// Gives ends what has come to them.
    fn pass(&mut self) {
        self.emulation.advance(self.now());
        let arrived: Vec<Arrived> = self.emulation.arrived().collect();
        for Arrived { end, at, packet } in arrived {
            let written = (&self.spaces[end].tun.file).write(&packet);
            let behind = written.ok().map(|_| self.now().since(at));
            self.emulation.tell(behind);
        }
    }

    /// Whether all programs have ended.
    fn have_ended(&self) -> bool {
        self.programs.iter().all(|program| program.status.is_some())
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
