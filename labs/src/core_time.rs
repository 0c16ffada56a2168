//! How much of a core's time is used, to the microsecond, whatever uses it and in whatever context.
//!
//! A thread of the idle class spins on the core and reads the clock all the time. Where two of its
//! readings are close together the core had nothing better to do; any gap is work: the relay, its
//! system calls, softirqs (those, too, that interrupt the spinning thread and that the kernel's own
//! accounting would give to it). What programs that are not measured took of the core (and the
//! kernel's threads, which write their files) is told by a BPF program at the scheduler's switches
//! (`labs/bpf/core.c`) and left out, and so is what the host took of it.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use aya::maps::{Array, MapData};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

use crate::process::keep_to_cpu;
use crate::stolen::stolen_from;

static PROGRAM: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/core.o"));

/// Two readings of the clock further apart than this have work between them. A reading takes some
/// 30 ns; the shortest interrupt takes longer than this.
const GAP: Duration = Duration::from_nanos(400);
/// Processes that are no strangers: as `OURS` in `core.c`.
const OURS: usize = 4;

/// Looks at a core at rest.
const IDLE_LOOKS: u32 = 9;

/// A core that is watched.
pub struct CoreTime {
    cpu: usize,
    spinner: Arc<Spinner>,
    thread: Option<JoinHandle<()>>,
    /// Keeps the program at the scheduler's switches.
    _program: Ebpf,
    ours: Mutex<Array<MapData, u32>>,
    /// The kernel's thread for softirqs that would keep a system call for too long.
    softirqs: u32,
    state: Array<MapData, u64>,
}

#[derive(Debug, Default)]
struct Spinner {
    stop: AtomicBool,
    idle_nanos: AtomicU64,
}

/// A moment, and what had been counted until then.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    at: Instant,
    idle: Duration,
    strangers: Duration,
    stolen: Duration,
}

/// What became of a core's time between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Use {
    /// All of it.
    pub wall: Duration,
    /// Used by the programs that are measured, and by the kernel for them.
    pub busy: Duration,
    /// Used by programs that have nothing to do with what is measured.
    pub strangers: Duration,
    /// Taken by the host, to a tick (a hundredth of a second, mostly).
    pub stolen: Duration,
}

impl Use {
    /// The share of the time that was used.
    pub fn load(&self) -> f64 {
        self.busy.as_secs_f64() / self.wall.as_secs_f64().max(f64::EPSILON)
    }
}

impl CoreTime {
    /// Begins to watch a core.
    pub fn watch(cpu: usize) -> Result<Self> {
        let mut program = EbpfLoader::new()
            .override_global("cpu", &u32::try_from(cpu).context("no such core")?, true)
            .load(PROGRAM)?;
        let switches: &mut BtfTracePoint =
            program.program_mut("switched").context("no program at switches")?.try_into()?;
        switches.load("sched_switch", &Btf::from_sys_fs()?)?;
        switches.attach()?;
        let ours = Mutex::new(program.take_map("ours").context("no map of ours")?.try_into()?);
        let state = program.take_map("state").context("no map of the state")?.try_into()?;
        let spinner = Arc::new(Spinner::default());
        let theirs = Arc::clone(&spinner);
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let prepared = become_idle(cpu);
            let good = prepared.is_ok();
            let _not_awaited = ready.send(prepared);
            if good {
                theirs.spin();
            }
        });
        started.recv().context("the spinning thread ended")??;
        let softirqs = kernel_thread(&format!("ksoftirqd/{cpu}"))?;
        let watched = Self { cpu, spinner, thread: Some(thread), _program: program, ours, softirqs, state };
        watched.measure(&[])?;
        Ok(watched)
    }

    /// Says whose time counts as used: these processes', and what the kernel does for them.
    pub fn measure(&self, processes: &[u32]) -> Result<()> {
        let own = [std::process::id(), self.softirqs];
        ensure!(own.len() + processes.len() <= OURS, "that many programs cannot be measured");
        let mut all = own.iter().chain(processes).copied();
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in 0..OURS as u32 {
            ours.set(slot, all.next().unwrap_or(0), 0)?;
        }
        Ok(())
    }

    /// The counts of now.
    pub fn read(&self) -> Result<Reading> {
        let stolen = stolen_from(self.cpu)?;
        let state = |key| self.state.get(&key, 0).context("cannot read the core's state");
        let (mut strangers, since, runs) = (state(0)?, state(1)?, state(2)?);
        let now = u64::try_from(Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?).as_nanos())?;
        if runs != 0 {
            strangers += now.saturating_sub(since);
        }
        let idle = self.spinner.idle_nanos.load(Ordering::Relaxed);
        let [idle, strangers] = [idle, strangers].map(Duration::from_nanos);
        Ok(Reading { at: Instant::now(), idle, strangers, stolen })
    }

    /// What became of the core's time since a reading.
    pub fn since(&self, then: &Reading) -> Result<Use> {
        let now = self.read()?;
        let wall = now.at - then.at;
        let strangers = now.strangers.saturating_sub(then.strangers);
        let stolen = now.stolen.saturating_sub(then.stolen);
        let others = now.idle - then.idle + strangers + stolen;
        Ok(Use { wall, busy: wall.saturating_sub(others), strangers, stolen })
    }

    /// How the core is used for so long while nothing is measured: the median of short times, because
    /// interrupts for others come in swarms.
    pub fn idle(&self, time: Duration) -> Result<Use> {
        let mut all = Vec::with_capacity(IDLE_LOOKS as usize);
        for _ in 0..IDLE_LOOKS {
            let reading = self.read()?;
            std::thread::sleep(time / IDLE_LOOKS);
            all.push(self.since(&reading)?);
        }
        all.sort_by(|a, b| a.load().total_cmp(&b.load()));
        Ok(all[all.len() / 2])
    }
}

impl Drop for CoreTime {
    fn drop(&mut self) {
        self.spinner.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Spinner {
    fn spin(&self) {
        let mut idle = Duration::ZERO;
        let mut last = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            let step = now - last;
            if step < GAP {
                idle += step;
                self.idle_nanos.store(u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            last = now;
        }
    }
}

/// Has this thread run on the core, and only when nothing else wants to.
fn become_idle(cpu: usize) -> Result<()> {
    keep_to_cpu(cpu)?;
    let thread = gettid().to_string();
    let done = Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status();
    ensure!(done.context("cannot run chrt")?.success(), "chrt refuses the idle class");
    Ok(())
}

/// The id of a thread of the kernel.
fn kernel_thread(name: &str) -> Result<u32> {
    for process in std::fs::read_dir("/proc")?.flatten() {
        let its_name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        if its_name.trim_end() == name {
            return Ok(process.file_name().to_string_lossy().parse()?);
        }
    }
    bail!("the kernel has no thread {name}")
}
